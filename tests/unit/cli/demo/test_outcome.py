from __future__ import annotations

import argparse
import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tidegate.cli.demo.answers import Verdict, WindowVerdict
from tidegate.cli.demo.outcome import (
    Latency,
    OnTime,
    Outcome,
    print_outcome,
    say,
    verdict_lines,
    write_figures,
)
from tidegate.observe.tally import Moved, Tally

EXACT = Verdict(pairs=5, pairs_exact=5, false_pairs=0, repeated=0)
WHOLE = WindowVerdict(windows=8, missing=0, longest_gap=0, wrong=0)
LATENCY = Latency(goal=2.0, p95=1.234, in_burst=None)


def printed(outcome: Outcome) -> dict[str, str]:
    file = StringIO()
    print_outcome(Console(file=file), outcome)
    lines = [line.strip().split("  ", 1) for line in file.getvalue().splitlines() if "  " in line.strip()]
    return {line[0]: line[-1].strip() for line in lines}


def test_the_lines_say_exact_only_when_it_is() -> None:
    pairs, windows = verdict_lines(EXACT, WHOLE)
    assert pairs.startswith("Checked against the exact answer: all 5 pairs")
    assert windows == "All 8 windows that were over are there, and exact."
    (stopped,) = verdict_lines(None, None)
    assert stopped.startswith("Stopped before all rows were in")


def test_what_was_left_out_is_no_fault_and_said_in_numbers() -> None:
    pairs, windows = verdict_lines(replace(EXACT, pairs=4), replace(WHOLE, missing=3, longest_gap=2))
    assert "4 of 5 pairs are there, all of them right" in pairs
    assert windows.endswith("3 were dropped whole, never more than 2 in a row.")


def test_a_wrong_answer_is_said_in_numbers() -> None:
    pairs, windows = verdict_lines(replace(EXACT, pairs=4, false_pairs=1), replace(WHOLE, wrong=2))
    assert pairs.startswith("NOT right: 4 pairs of 5, 1 false, 0 repeated")
    assert windows.startswith("NOT right: 2 rows of windows are wrong")


def test_an_outcome_is_right_if_nothing_that_came_out_is_wrong() -> None:
    outcome = Outcome(Tally(), LATENCY, replace(EXACT, pairs=1), WHOLE)
    assert outcome.right
    assert not replace(outcome, pairs=replace(EXACT, repeated=1)).right
    assert not replace(outcome, windows=replace(WHOLE, wrong=1)).right
    assert not replace(outcome, pairs=None).right


def test_the_table_says_what_was_lost_and_why_and_what_was_made_up_for() -> None:
    tally = Tally(rows_in=9, batch_seconds=[0.5, 0.6], moved=Moved(7, 1), repaired=1)
    gone = replace(WHOLE, missing=3, longest_gap=2)
    cells = printed(Outcome(tally, LATENCY, replace(EXACT, pairs=4), gone))
    assert cells["pairs of an order and a cab"] == "4 (80.0 % of all)"
    assert (cells["with their own batch"], cells["made up for in a later one"]) == ("3", "1")
    assert cells["left out: more work than time"] == "1"
    assert cells["dropped: more work than time"] == "3, at most 2 in a row"
    assert cells["latency of rows, p95"] == "1.23 s (goal 2.00 s)"
    assert cells["moved to another instance"] == "7 rows, once"


def test_a_run_that_was_stopped_has_a_table_too() -> None:
    assert printed(Outcome(Tally(rows_in=9, rows_out=4), LATENCY))["rows out"] == "4"


@pytest.mark.parametrize(
    ("p95", "early", "said"),
    [
        (1.2, 0, "The goal was kept: 95 % of the rows within 1.20 s of 2.00 s."),
        (1.2, 3, "of 2.00 s. 3 windows were dropped before the burst, too."),
        (2.4, 0, "The goal was MISSED: 95 % of the rows within 2.40 s, the goal is 2.00 s."),
    ],
)
def test_the_last_line_says_whether_the_goal_was_kept(p95: float, early: int, said: str) -> None:
    outcome = Outcome(Tally(), replace(LATENCY, p95=p95), EXACT, WHOLE, OnTime(0.9, 0.75, early))
    file = StringIO()
    print_outcome(Console(file=file, width=300), outcome)
    assert said in file.getvalue()
    assert "batches within the goal" in file.getvalue()
    assert outcome.kept == (p95 <= 2.0)


def test_the_figures_are_those_that_were_printed(tmp_path: Path) -> None:
    windows = replace(WHOLE, missing=3, longest_gap=2)
    tally = Tally(rows_in=9, batch_seconds=[0.5, 0.6], repaired=1)
    outcome = Outcome(tally, LATENCY, replace(EXACT, pairs=4), windows, OnTime(0.9, 0.6, 2))
    arguments = argparse.Namespace(seconds=60, rate=3000.0, rush=10.0, seed=7)
    write_figures(tmp_path / "demo.json", arguments, outcome)
    found = json.loads((tmp_path / "demo.json").read_text())
    (row,) = found["rows"]
    assert (row["p95_seconds"], row["goal_seconds"], row["goal_kept"]) == (1.234, 2.0, True)
    assert (row["batches_on_time_ratio"], row["pairs_on_time_ratio"]) == (0.9, 0.6)
    assert (row["recall_first"], row["recall"], row["union_exact"]) == (0.6, 0.8, False)
    assert {bar["id"]: bar["holds"] for bar in found["bars"]} == {
        "demo_p95_seconds": True,
        "demo_windows_missing_before_burst": False,
        "demo_union_exact": False,
    }


def test_a_run_that_was_stopped_has_figures_too(tmp_path: Path) -> None:
    arguments = argparse.Namespace(seconds=60, rate=3000.0, rush=10.0, seed=7)
    write_figures(tmp_path / "demo.json", arguments, Outcome(Tally(), replace(LATENCY, p95=None)))
    found = json.loads((tmp_path / "demo.json").read_text())
    assert [bar["holds"] for bar in found["bars"]] == [False]


def test_a_long_path_stays_in_one_line() -> None:
    file = StringIO()
    say(Console(file=file, width=20), "/tmp/" + "x" * 100 + "[a]")
    assert file.getvalue() == "/tmp/" + "x" * 100 + "[a]\n"
