"""The figures of the window drop paper, short: what they are made of, and the bars."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidegate.cli.main import main
from tidegate_lab.reproduce.experiment import Options
from tidegate_lab.reproduce.window_drop.overhead_table import ratio, table_4
from tidegate_lab.reproduce.window_drop.placement_figures import figure_10, figure_11
from tidegate_lab.reproduce.window_drop.window_figures import figure_12, figure_13

QUICK = Options((0,), quick=True)


def test_in_a_pipeline_the_earliest_drop_loses_least_and_delivers_where_random_drop_does_not() -> None:
    outcome = figure_10(QUICK)
    assert all(bar.holds for bar in outcome.bars)
    assert all(line.agrees for line in outcome.lines)
    random_drop, nested_1, nested_2 = (list(curve.y) for curve in outcome.plots[0].panels[0].curves)
    assert all(low < middle < high for low, middle, high in zip(nested_2, nested_1, random_drop, strict=True))
    assert random_drop[-1] == 1.0


def test_in_a_fan_out_one_shared_drop_loses_less_than_one_behind_each_arm_of_the_split() -> None:
    outcome = figure_11(QUICK)
    assert all(line.agrees for line in outcome.lines)
    rows, split, shared = (list(curve.y) for curve in outcome.plots[0].panels[0].curves)
    assert all(low < middle < high for low, middle, high in zip(shared, split, rows, strict=True))


def test_at_a_quarter_too_much_the_size_of_a_window_does_not_matter() -> None:
    outcome = figure_12(QUICK)
    assert [bar.holds for bar in outcome.bars] == [True, True]
    assert all(line.agrees for line in outcome.lines)


def test_the_load_model_foresees_what_each_slide_loses() -> None:
    outcome = figure_13(QUICK)
    assert [bar.holds for bar in outcome.bars] == [True]
    assert outcome.lines[0].agrees
    assert [panel.title for panel in outcome.plots[0].panels] == [
        "counted",
        "load model, ours",
        "load model, as printed",
    ]


def test_marks_cost_less_the_larger_the_window_and_more_the_more_a_filter_rejects() -> None:
    assert len(table_4(QUICK).lines) == 8
    sizes = [ratio(size, 0.5, 40, seed=1) for size in (25, 50, 100)]
    assert sizes == sorted(sizes)
    assert ratio(25, 1.0, 40, seed=1) > ratio(25, 0.5, 40, seed=1) > 0.95


def test_the_command_reproduces_a_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "figure.json"
    arguments = ["reproduce", "window-drop", "--quick", "--figure", "12", "--out", str(tmp_path)]
    assert main([*arguments, "--json", str(target)]) == 0
    assert "0.2 by formula" in capsys.readouterr().out
    frame = json.loads(target.read_text())
    assert [bar["id"] for bar in frame["bars"]] == ["figure12-tumbling.quick", "figure12-slide-1.quick"]
    assert (tmp_path / "figure-12.png").exists()
