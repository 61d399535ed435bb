"""The figures of `tidegate demo --json`, in the format of all measuring commands."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tidegate.cli.demo.outcome import Outcome
from tidegate.observe.json_frame import Bar, Frame, write_frame


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
