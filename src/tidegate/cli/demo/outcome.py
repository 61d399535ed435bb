"""Prints the outcome of the demo: results, losses, latency and correctness."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from tidegate.cli.demo.answers import Verdict, WindowVerdict
from tidegate.observe import units
from tidegate.observe.json_frame import Bar, Frame, write_frame
from tidegate.observe.table import print_table
from tidegate.observe.tally import Tally, percentile


@dataclass(frozen=True)
class Latency:
    """What 95 % of the rows did not exceed, in seconds from their arrival to the commit of their batch."""

    goal: float
    p95: float | None
    #: Of the batches in the burst.
    in_burst: float | None


@dataclass(frozen=True)
class OnTime:
    """Shares that kept the goal; without the first second, in which the workers were cold."""

    #: Of the batches, by the p95 latency of their rows.
    batches: float
    #: Of the pairs of the exact answer: written at most the goal after the later row had arrived.
    pairs: float
    #: Windows that were dropped although they were over before the burst.
    windows_before_burst: int


@dataclass(frozen=True)
class Outcome:
    """A run of the demo; the verdicts are None when it was stopped early."""

    tally: Tally
    latency: Latency
    pairs: Verdict | None = None
    windows: WindowVerdict | None = None
    on_time: OnTime | None = None

    @property
    def kept(self) -> bool:
        """Whether the goal was kept: 95 % of the rows were published in time."""
        return self.latency.p95 is not None and self.latency.p95 <= self.latency.goal

    @property
    def right(self) -> bool:
        """Whether everything that was written is correct."""
        pairs, windows = self.pairs, self.windows
        return pairs is not None and pairs.right and windows is not None and not windows.wrong


def print_outcome(console: Console, outcome: Outcome) -> None:
    tally, latency = outcome.tally, outcome.latency
    took = tally.batch_seconds[1:]
    moves = "once" if tally.moved.plans == 1 else f"{tally.moved.plans} times"
    rows = [
        ("rows in", units.count(tally.rows_in)),
        *_pairs(outcome.pairs, tally),
        *_windows(outcome.windows),
        ("latency of rows, p95", f"{_seconds(latency.p95)} (goal {units.seconds(latency.goal)})"),
        ("  in the burst", _seconds(latency.in_burst)),
        *_on_time(outcome.on_time),
        ("batches", units.count(len(tally.batch_seconds))),
        ("  time after the first, median", units.seconds(percentile(took, 0.5))),
        ("  time after the first, p95", units.seconds(percentile(took, 0.95))),
        ("moved to another instance", f"{units.count(tally.moved.rows)} rows, {moves}"),
        ("state at its peak", f"{units.count(tally.state_peak.rows)} rows, {_size(tally)}"),
        ("late rows", units.count(tally.late)),
    ]
    print_table(console, "Orders, the free cabs near them, and the districts", ("", ""), rows)
    for line in verdict_lines(outcome.pairs, outcome.windows):
        say(console, line)
    if outcome.pairs is not None:
        say(console, _of_goal(outcome))


def verdict_lines(verdict: Verdict | None, windows: WindowVerdict | None) -> list[str]:
    """A sentence for the pairs and one for the windows; a wrong answer is given in numbers."""
    if verdict is None or windows is None:
        return ["Stopped before all rows were in: results so far are written, the rest was not processed."]
    return [_of_pairs(verdict), _of_windows(windows)]


def say(console: Console, line: str) -> None:
    """Print a line without wrapping, so that paths can be copied."""
    console.print(line, soft_wrap=True, markup=False, highlight=False)


def _of_pairs(verdict: Verdict) -> str:
    pairs, exact = units.count(verdict.pairs), units.count(verdict.pairs_exact)
    if verdict.exact:
        return f"Checked against the exact answer: all {pairs} pairs are there, once each, and no other."
    if verdict.right:
        return (
            f"Checked against the exact answer: {pairs} of {exact} pairs are there, all of them right and "
            "once each. The others were left out to stay on time."
        )
    return (
        f"NOT right: {pairs} pairs of {exact}, {units.count(verdict.false_pairs)} false, "
        f"{units.count(verdict.repeated)} repeated. {_FAULT}"
    )


def _of_windows(windows: WindowVerdict) -> str:
    if windows.wrong:
        return f"NOT right: {units.count(windows.wrong)} rows of windows are wrong. {_FAULT}"
    out = units.count(windows.windows)
    if not windows.missing:
        return f"All {out} windows that were over are there, and exact."
    return (
        f"{out} windows are there, and exact; {units.count(windows.missing)} were dropped whole, "
        f"never more than {windows.longest_gap} in a row."
    )


def _of_goal(outcome: Outcome) -> str:
    """Whether the goal was kept, and what that cost before there was any overload."""
    p95, goal = _seconds(outcome.latency.p95), units.seconds(outcome.latency.goal)
    early = outcome.on_time.windows_before_burst if outcome.on_time is not None else 0
    cost = f" {units.count(early)} windows were dropped before the burst, too." if early else ""
    if outcome.kept:
        return f"The goal was kept: 95 % of the rows within {p95} of {goal}.{cost}"
    return (
        f"The goal was MISSED: 95 % of the rows within {p95}, the goal is {goal}. On a machine that is slow "
        f"or busy with other work, give a longer --goal or a smaller --rate.{cost}"
    )


def _on_time(on_time: OnTime | None) -> list[tuple[str, str]]:
    if on_time is None:
        return []
    return [
        ("  batches within the goal", units.percent(on_time.batches)),
        ("  pairs within the goal", units.percent(on_time.pairs)),
    ]


_FAULT = "This is a fault in Tidegate: please report it with the settings and the seed of this run."


def _pairs(verdict: Verdict | None, tally: Tally) -> list[tuple[str, str]]:
    if verdict is None:
        return [("rows out", units.count(tally.rows_out))]
    missing = verdict.pairs_exact - verdict.pairs
    share = verdict.pairs / verdict.pairs_exact if verdict.pairs_exact else 1.0
    rows = [
        ("pairs of an order and a cab", f"{units.count(verdict.pairs)} ({100 * share:.1f} % of all)"),
        ("  with their own batch", units.count(verdict.pairs - tally.repaired)),
        ("  made up for in a later one", units.count(tally.repaired)),
        ("  left out: more work than time", units.count(missing)),
    ]
    return [*rows, ("  debts given up", units.count(tally.written_off))] if tally.written_off else rows


def _windows(windows: WindowVerdict | None) -> list[tuple[str, str]]:
    if windows is None:
        return []
    gap = f", at most {windows.longest_gap} in a row" if windows.missing else ""
    return [
        ("windows of districts", units.count(windows.windows)),
        ("  dropped: more work than time", f"{units.count(windows.missing)}{gap}"),
    ]


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else units.seconds(seconds)


def _size(tally: Tally) -> str:
    return units.size(tally.state_peak.bytes)


def write_figures(target: str | Path, arguments: argparse.Namespace, outcome: Outcome) -> None:
    """Write them to a file, or to standard output for `-`."""
    rows, bars = [_row(arguments, outcome)], [*_bars(outcome)]
    write_frame(Frame("demo", arguments.seed, rows, bars), target)


def _row(arguments: argparse.Namespace, outcome: Outcome) -> dict[str, Any]:
    """The run in numbers; None where it was stopped before they were known."""
    tally, latency, pairs, windows = outcome.tally, outcome.latency, outcome.pairs, outcome.windows
    row: dict[str, Any] = {
        "seconds": arguments.seconds,
        "rate": arguments.rate,
        "burst_factor": arguments.rush,
        "goal_seconds": latency.goal,
        "rows": tally.rows_in,
        "p95_seconds": latency.p95,
        "burst_p95_seconds": latency.in_burst,
        "batch_seconds": tally.batch_seconds,
        "batch_p95_seconds": [None if one is None else one.p95_seconds for _, one in tally.latencies],
        "goal_kept": outcome.kept,
        "right": outcome.right,
    }
    if outcome.on_time is not None:
        row["batches_on_time_ratio"] = outcome.on_time.batches
        row["pairs_on_time_ratio"] = outcome.on_time.pairs
        row["windows_missing_before_burst"] = outcome.on_time.windows_before_burst
    if windows is not None:
        row |= {"windows": windows.windows, "windows_missing": windows.missing}
    if pairs is not None:
        exact = max(1, pairs.pairs_exact)
        row |= {
            "pairs": pairs.pairs,
            "pairs_exact": pairs.pairs_exact,
            "pairs_repaired": tally.repaired,
            # Before and after repair.
            "recall_first": (pairs.pairs - tally.repaired) / exact,
            "recall": pairs.pairs / exact,
            "union_exact": pairs.exact,
        }
    return row


def _bars(outcome: Outcome) -> Iterator[Bar]:
    goal, p95 = outcome.latency.goal, outcome.latency.p95
    yield Bar("demo_p95_seconds", p95, "s", f"<= {goal:g}", outcome.kept)
    if outcome.on_time is not None:
        early = outcome.on_time.windows_before_burst
        yield Bar("demo_windows_missing_before_burst", early, "windows", "0", not early)
    if outcome.pairs is not None:
        recall = outcome.pairs.pairs / max(1, outcome.pairs.pairs_exact)
        exact = outcome.pairs.exact and outcome.right
        yield Bar("demo_union_exact", recall, "share of the exact pairs", "1, and all right", exact)
