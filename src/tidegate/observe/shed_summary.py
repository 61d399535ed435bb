"""Describes in words what a query does under overload: the present state, and changes.

    more work than time: the join looks at 43 % of the pairs in reach
    2 keys and 1 partition moved to another instance with 12,340 rows; none was copied
    there is time again: all pairs are looked at

It reads only the progress of batches; what is not reported is not mentioned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tidegate.observe import units

Report = Mapping[str, Any]


def doing(report: Report) -> str:
    """The present state in one line."""
    found = [f"looks at {_share(_fraction(report))} of the pairs"] if _fraction(report) < 1 else []
    if _fresh(report) < 1:
        found.append(f"lets in the freshest {_share(_fresh(report))} of the rows")
    if _dropped(report):
        found.append(f"drops {_share(_dropped(report))} of the windows")
    if _kept(report) < 1:
        found.append(f"estimates windows from {_share(_kept(report))} of the rows")
    if _paid(report):
        found.append(f"repairs {units.count(_paid(report))} pairs")
    if _debt(report):
        found.append(f"owes {units.count(_debt(report))} pairs")
    return ", ".join(found) or "everything is processed"


def explained(report: Report) -> str:
    """What a batch shed and why: the whole first, then each operator."""
    lines = [f"Batch {report['batch']}: {doing(report)}."]
    for name, one in report.get("shed", {}).items():
        pairs = [(side, window) for side, window in zip(("left", "right"), one["windows"], strict=True)]
        skipped = sum(window["skipped"] for _, window in pairs)
        candidates = sum(window["in_reach"] for _, window in pairs)
        if skipped:
            shares = ", ".join(
                f"{_share(window['fraction'])} of the {side} window"
                for side, window in pairs
                if window["fraction"] is not None
            )
            lines.append(
                f"{name}: skipped {units.count(skipped)} of {units.count(candidates)} candidate pairs; "
                f"probes {shares}."
            )
        dropped = sum(one["dropped"]) + sum(one["stale"])
        if dropped:
            lines.append(f"{name}: dropped {units.count(dropped)} rows before the join.")
    for name, one in report.get("sift", {}).items():
        if one["dropped"]:
            dropped, offered = units.count(one["dropped"]), units.count(one["offered"])
            lines.append(f"{name}: the sifter dropped {dropped} of {offered} rows.")
    lines += [str(one["message"]) for one in report.get("warnings", ())]
    return "\n".join(lines)


class Changes:
    """Yields a line for each change since the previous report; each batch counts once."""

    def __init__(self) -> None:
        self._batch = -1
        #: The conditions that hold, by name.
        self._on: dict[str, bool] = {}

    def of(self, reports: Iterable[Report]) -> Iterator[str]:
        for report in reports:
            if report["batch"] > self._batch:
                self._batch = report["batch"]
                yield from self._of_one(report)

    def _of_one(self, report: Report) -> Iterator[str]:
        yield from map(_moved, _moves(report))
        for name, (on, begins, ends) in _STATES.items():
            now, before = on(report), self._on.get(name, False)
            if now != before:
                said = (begins if now else ends)(report)
                self._on[name] = now
                if said:
                    yield said


def _fraction(report: Report) -> float:
    return float(min((one["fraction"] for one in report.get("shed", {}).values()), default=1.0))


def _fresh(report: Report) -> float:
    """The share of rows that joins admit; below 1 under stale-row shedding."""
    stale = max((sum(one.get("stale", ())) for one in report.get("shed", {}).values()), default=0)
    return 1 - stale / max(1, report["input_rows"]) if stale else 1.0


def _dropped(report: Report) -> float:
    drops = (report.get("windows") or {}).get("drops", {})
    return float(max((one["p"] for one in drops.values()), default=0.0))


def _kept(report: Report) -> float:
    """The smallest share of rows that an approximate window kept."""
    return float(min((one["kept"] for one in report.get("estimates", {}).values()), default=1.0))


def _debt(report: Report) -> int:
    return int((report.get("debts") or {}).get("comparisons", 0))


def _paid(report: Report) -> int:
    return int((report.get("debts") or {}).get("repaired", {}).get("comparisons", 0))


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


def _repaired(report: Report) -> str:
    written_off = bool((report.get("debts") or {}).get("written_off"))
    return "debts were given up" if written_off else "all that was left out has been made up for"


def _always(text: str) -> Callable[[Report], str]:
    return lambda report: text


#: Per condition: whether it holds, and the lines for its beginning and its end.
_STATES: Mapping[str, tuple[Callable[[Report], bool], Callable[[Report], str], Callable[[Report], str]]] = {
    "skips": (
        lambda report: _fraction(report) < 1,
        lambda report: (
            f"more work than time: the join looks at {_share(_fraction(report))} of the pairs in "
            "reach, the best ones first"
        ),
        _always("there is time again: all pairs are looked at"),
    ),
    "loses": (
        lambda report: _fresh(report) < 1,
        lambda report: (
            f"nothing else is enough: only the freshest {_share(_fresh(report))} of the rows are "
            "let in, others are lost"
        ),
        _always("all rows are let in again"),
    ),
    "drops": (
        lambda report: bool(_dropped(report)),
        lambda report: f"{_share(_dropped(report))} of the windows will be missing; all others stay exact",
        _always("no more windows are dropped"),
    ),
    "samples": (
        lambda report: _kept(report) < 1,
        lambda report: f"windows are estimated from {_share(_kept(report))} of the rows, with 95 % intervals",
        _always("windows are made of all rows again"),
    ),
    "debts": (lambda report: bool(_debt(report)), _always(""), _repaired),
}
