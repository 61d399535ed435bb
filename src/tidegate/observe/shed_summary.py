"""What a query does about too much work, in plain words: as it is now, and when it changes.

    more work than time: the join looks at 43 % of the pairs in reach
    2 keys and 1 partition moved to another instance with 12,340 rows; none was copied
    there is time again: all pairs are looked at

Reads the reports of batches and nothing else; what a version does not report is not said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tidegate.observe import units

Report = Mapping[str, Any]


def doing(report: Report) -> str:
    """What is going on, in one line."""
    found = [f"looks at {_share(_fraction(report))} of the pairs"] if _fraction(report) < 1 else []
    if _fresh(report) < 1:
        found.append(f"lets in the freshest {_share(_fresh(report))} of the rows")
    if _dropped(report):
        found.append(f"drops {_share(_dropped(report))} of the windows")
    if _kept(report) < 1:
        found.append(f"estimates windows from {_share(_kept(report))} of the rows")
    if _paid(report):
        found.append(f"repairs {units.count(_paid(report))} pairs")
    if _owed(report):
        found.append(f"owes {units.count(_owed(report))} pairs")
    return ", ".join(found) or "everything is processed"


class Changes:
    """Says what has changed since the report before; each batch counts once."""

    def __init__(self) -> None:
        self._batch = -1
        self._skips = self._drops = self._samples = self._owes = self._loses = False

    def of(self, reports: Iterable[Report]) -> Iterator[str]:
        for report in reports:
            if report["batch"] > self._batch:
                self._batch = report["batch"]
                yield from self._of_one(report)

    def _of_one(self, report: Report) -> Iterator[str]:
        yield from map(_moved, _moves(report))
        skips, drops, owes = _fraction(report) < 1, bool(_dropped(report)), bool(_owed(report))
        samples, loses = _kept(report) < 1, _fresh(report) < 1
        if skips and not self._skips:
            looks = _share(_fraction(report))
            yield f"more work than time: the join looks at {looks} of the pairs in reach, the best ones first"
        if self._skips and not skips:
            yield "there is time again: all pairs are looked at"
        if loses and not self._loses:
            kept = _share(_fresh(report))
            yield f"nothing else is enough: only the freshest {kept} of the rows are let in, others are lost"
        if self._loses and not loses:
            yield "all rows are let in again"
        if drops and not self._drops:
            yield f"{_share(_dropped(report))} of the windows will be missing; all others stay exact"
        if self._drops and not drops:
            yield "no more windows are dropped"
        if samples and not self._samples:
            yield f"windows are estimated from {_share(_kept(report))} of the rows, with 95 % intervals"
        if self._samples and not samples:
            yield "windows are made of all rows again"
        if self._owes and not owes:
            given_up = bool((report.get("debts") or {}).get("forgiven"))
            yield "debts were given up" if given_up else "all that was left out has been made up for"
        self._skips, self._drops, self._samples, self._owes = skips, drops, samples, owes
        self._loses = loses


def _fraction(report: Report) -> float:
    return float(min((one["fraction"] for one in report.get("shed", {}).values()), default=1.0))


def _fresh(report: Report) -> float:
    """The part of the rows that joins let in, where older ones were too much."""
    stale = max((sum(one.get("stale", ())) for one in report.get("shed", {}).values()), default=0)
    return 1 - stale / max(1, report["input_rows"]) if stale else 1.0


def _dropped(report: Report) -> float:
    drops = (report.get("windows") or {}).get("drops", {})
    return float(max((one["p"] for one in drops.values()), default=0.0))


def _kept(report: Report) -> float:
    """The part of their rows that approximate windows kept, of the one that kept least."""
    return float(min((one["kept"] for one in report.get("estimates", {}).values()), default=1.0))


def _owed(report: Report) -> int:
    return int((report.get("debts") or {}).get("comparisons", 0))


def _paid(report: Report) -> int:
    return int((report.get("debts") or {}).get("paid", {}).get("comparisons", 0))


def _moves(report: Report) -> list[Mapping[str, Any]]:
    moves = [one["moved"] for one in report.get("balance", {}).values()]
    return [move for move in moves if move and move["rows"]]


def _moved(move: Mapping[str, Any]) -> str:
    keys, partitions = _counted(move["keys"], "key"), _counted(move["partitions"], "partition")
    what = " and ".join(one for one in (keys, partitions) if one)
    return (
        f"balance: {what} moved to another instance, with {units.count(move['rows'])} rows; none was copied"
    )


def _counted(number: int, name: str) -> str:
    return f"{number} {name}{'s' * (number != 1)}" if number else ""


def _share(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.1f} %"
