"""What the demo has to say at its end: what went in and out, how fast, and whether it was right."""

from __future__ import annotations

from rich.console import Console

from tidegate.papers.partners import Verdict
from tidegate.report import units
from tidegate.report.table import print_table
from tidegate.report.tally import Tally, percentile


def print_outcome(console: Console, tally: Tally, verdict: Verdict | None) -> None:
    """The verdict is None when the run was stopped early."""
    first, took = tally.batch_seconds[:1], tally.batch_seconds[1:]
    rows = [
        ("rows in", units.count(tally.rows_in)),
        ("rows out", units.count(tally.rows_out)),
        *_answer(verdict),
        ("batches", units.count(len(tally.batch_seconds))),
        ("first batch, which starts workers", units.seconds(percentile(first, 0.5))),
        ("batch time after that, median", units.seconds(percentile(took, 0.5))),
        ("batch time after that, 95th percentile", units.seconds(percentile(took, 0.95))),
        ("state at its peak, rows", units.count(tally.state_rows_peak)),
        ("state at its peak, size", units.size(tally.state_bytes_peak)),
        ("late rows", units.count(tally.late)),
    ]
    print_table(console, "Orders and the free cabs near them", ("", ""), rows)
    say(console, verdict_line(verdict))


def verdict_line(verdict: Verdict | None) -> str:
    """One sentence; a wrong answer is said in numbers."""
    if verdict is None:
        return "Stopped before all rows were in: the pairs so far are written, the rest was not joined."
    pairs = units.count(verdict.pairs)
    if verdict.exact:
        return f"Checked against the exact answer: all {pairs} pairs are there, once each, and no other."
    return (
        f"NOT the exact answer: {pairs} pairs of {units.count(verdict.pairs_exact)}, "
        f"{units.count(verdict.false_pairs)} false, {units.count(verdict.repeated)} repeated, "
        f"{units.count(verdict.false_unmatched)} orders wrongly without a cab. "
        "This is a fault in Tidegate: please report it with the settings and the seed of this run."
    )


def say(console: Console, line: str) -> None:
    """A line as it is: a path that is broken in two cannot be copied."""
    console.print(line, soft_wrap=True, markup=False, highlight=False)


def _answer(verdict: Verdict | None) -> list[tuple[str, str]]:
    if verdict is None:
        return []
    return [
        ("  pairs", units.count(verdict.pairs)),
        ("  orders without a cab", units.count(verdict.unmatched)),
        ("orders that may still find one", units.count(verdict.waiting)),
    ]
