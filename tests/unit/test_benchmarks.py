"""BENCHMARKS.md is what the committed results say, and no result claims more than its value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scripts import benchmarks
from tidegate.observe.json_frame import Bar, Frame, write_frame


def record(**row: Any) -> dict[str, Any]:
    figure = {"id": "a.b", "what": "rate", "value": 2.0, "unit": "×", "target": ">= 1", "met": True, **row}
    return {"command": "tidegate x", "date": "2026-11-17", "machine": "m", "commit": "abc", "rows": [figure]}


def written(folder: Path, name: str, content: Any) -> Path:
    file = folder / name
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


def test_the_page_is_up_to_date() -> None:
    assert benchmarks.main(["--check"]) == 0


def test_a_page_that_differs_from_the_results_fails_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, "a.json", record())
    monkeypatch.setattr(benchmarks, "RESULTS", tmp_path)
    monkeypatch.setattr(benchmarks, "PAGE", tmp_path / "PAGE.md")
    assert benchmarks.main(["--check"]) == 1
    assert benchmarks.main([]) == 0
    assert benchmarks.main(["--check"]) == 0
    written(tmp_path, "a.json", record(value=3.0))
    assert benchmarks.main(["--check"]) == 1


def test_a_missed_target_is_named_first_and_in_its_row(tmp_path: Path) -> None:
    result = benchmarks.read(written(tmp_path, "a.json", record(value=0.5, met=False)))
    text = benchmarks.page([result])
    assert "**0 of 1 targets are met.** Missed: `a.b`." in text
    assert "| `a.b` | rate | 0.5 × | ≥ 1 | **no** |" in text


@pytest.mark.parametrize(
    ("row", "met"),
    [({"value": 0.5}, True), ({"value": 2.0}, False), ({"target": None}, True), ({"value": None}, True)],
)
def test_a_result_that_claims_more_than_its_value_is_refused(
    row: dict[str, Any], met: bool, tmp_path: Path
) -> None:
    with pytest.raises(benchmarks.ResultError, match=r"a\.json.*a\.b says met"):
        benchmarks.read(written(tmp_path, "a.json", record(**row, met=met)))


def test_what_a_measuring_command_writes_is_a_result_as_it_is(tmp_path: Path) -> None:
    bars = [
        Bar("skew.x", 1.25, "×", "<= 1.15", False),
        Bar("skew.y", 0.0, "rows", "<= 0", True),
        Bar("skew.z", None, "s", "<= 2", False),
    ]
    write_frame(Frame("bench skew", 7, [{"samples": [1, 2]}], bars), tmp_path / "skew.2026-11-20.json")
    result = benchmarks.read(tmp_path / "skew.2026-11-20.json")
    assert (result.command, result.date) == ("tidegate bench skew", "2026-11-20")
    assert [figure.met for figure in result.figures] == [False, True, None]
    text = benchmarks.page([result])
    assert "Not measured: `skew.z`." in text
    assert "**1 of 2 targets are met.** Missed: `skew.x`." in text


def test_a_frame_without_a_date_is_refused_with_what_to_do(tmp_path: Path) -> None:
    write_frame(Frame("bench skew", 7), tmp_path / "skew.json")
    with pytest.raises(benchmarks.ResultError, match="let the file's name end with it"):
        benchmarks.read(tmp_path / "skew.json")
