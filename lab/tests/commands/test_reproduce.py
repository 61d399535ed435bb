from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidegate.cli.main import main

QUICK = ["reproduce", "selective-join", "--quick", "--seeds", "1"]


def test_a_figure_gives_a_table_bars_a_frame_and_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "figures.json"
    arguments = [
        "--figure",
        "3",
        "--figure",
        "4",
        "--seed",
        "2",
        "--out",
        str(tmp_path),
        "--json",
        str(target),
    ]
    assert main([*QUICK, *arguments]) == 0
    printed = capsys.readouterr().out
    assert "paper said" in printed
    assert "around +100 %" in printed
    frame = json.loads(target.read_text())
    assert (frame["command"], frame["seed"]) == ("reproduce selective-join", 2)
    assert [bar["id"] for bar in frame["bars"]] == [
        "figure4-500.quick",
        "figure4-500-last-third.quick",
        "figure4-500-model.quick",
        "figure4-300.quick",
        "figure4-300-model.quick",
    ]
    claims = [row for row in frame["rows"] if row["kind"] == "claim"]
    assert {claim["figure"] for claim in claims} == {"3", "4"}
    assert all(claim["samples"] for claim in claims)
    plots = [row for row in frame["rows"] if row["kind"] == "plot"]
    assert [plot["name"] for plot in plots] == ["figure-3", "figure-4"]
    assert all((tmp_path / f"{plot['name']}.png").stat().st_size > 10_000 for plot in plots)


def test_a_dash_keeps_standard_output_for_the_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*QUICK, "--figure", "6", "--out", str(tmp_path), "--json", "-"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["command"] == "reproduce selective-join"
    assert "Figure 6" in captured.err


def test_an_unknown_figure_is_answered_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QUICK, "--figure", "10"]) == 2
    assert "Use one of 3, 4, 5, 6, 7, 8, 9, beyond" in capsys.readouterr().err


def test_plots_go_to_a_folder_named_after_the_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*QUICK, "--figure", "3"]) == 0
    assert [path.name for path in (tmp_path / "reproduce-selective-join").iterdir()] == ["figure-3.png"]


def test_ls_stream_is_reproduced_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "figures.json"
    figures = ["--figure", "8", "--figure", "partitions", "--figure", "table"]
    arguments = ["reproduce", "ls-stream", "--quick", "--seeds", "1", *figures]
    assert main([*arguments, "--out", str(tmp_path), "--json", str(target)]) == 0
    assert "more than 2 ×" in capsys.readouterr().out
    frame = json.loads(target.read_text())
    assert [bar["id"] for bar in frame["bars"]] == [
        "ls_stream.throughput_over_hash.quick",
        "ls_stream.table_growth.quick",
    ]
    assert all(
        (tmp_path / f"{name}.png").stat().st_size > 10_000 for name in ("figure-8", "partitions", "table")
    )
