"""Stale-row shedding: which rows are too old to be let in when the deepest levels do not suffice.

Ours, the last step of the goal loop. `control/goal/level_controller.py` says which part of the rows fits;
here that becomes a time per stream, planned before the rows are read. New rows of joins below it are *stale*:
they are not stored and not probed, and the receipt counts them (`control/receipts/ledger.py`). Two properties
of every stream are learnt:

    pace     event time per second: 1 in live streams, more while a source that is read in portions drains a
             backlog
    delay    by how much the newest tenth, two tenths … of a batch's rows are older than in a stream in
             perfect order: zero in a stream that arrives in order

    event time    ──┤ seen            ┊                  ├──▶
                    ┃░░░░░░░░░░░░░░░░░┊▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓┃          moves by pace · (now − last heard)
                            stale     ┊  the freshest, k of it       less the delay of the newest k

When a batch is planned its rows have arrived, so the time they took is known. The pace is the median of the
last batches: a backlog that comes at once is let in and does not make later rows stale. A source read in
portions gives the same amount however long it waited: if moves vary far less than paces, the median move is
expected. A stream behind the wall clock is not expected to pass it.

Only joins use it. A window that lacks rows would be wrong; a match can already drop up to all rows by its
sifter.

Guarantee: pure functions; if all rows fit, and until something was learnt, no row is stale; a smaller part
never lets in older rows. Stale rows advance time too, so no stream is shut out for good.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.model.graph import OperatorTraits
from tidegate.model.json_values import Snapshot
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.reports import TaskReport
from tidegate.model.skip_plan import Skipping
from tidegate.model.times import BEGINNING_US

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Key in the manifest's control state.
CONTROL = "freshest"
#: Batches whose pace is remembered.
_KEPT = 5
#: The parts of the rows, newest first, whose delay is known.
TENTHS = np.linspace(0, 1, 11)


def learn(
    before: Manifest,
    plan: Plan,
    reports: Sequence[TaskReport],
    after: Manifest,
    operators: Mapping[str, OperatorTraits],
    joins: Collection[str],
    keep_share: float,
) -> Snapshot:
    """What is known after a batch: goes into its manifest, with the part of the rows that fits next."""
    known = before.control.get(CONTROL, {}).get("streams", {})
    streams = {}
    for name, (operator, side) in _readers(operators, joins, after.clocks).items():
        mine = [report for report in reports if report.operator == operator]
        if not sum(report.rows.offered[side] for report in mine):
            streams.update({name: known[name]} if name in known else {})
            continue
        clock, newest_us = before.clocks[name], after.clocks[name].seen_us
        # The first rows of a stream arrived over an unknown time.
        moved_us = None if clock.seen_us == BEGINNING_US else newest_us - clock.seen_us
        spans = _spans(mine, side, plan.batch)
        stale = sum(report.rows.stale[side] for report in mine)
        streams[name] = _learnt(
            known.get(name, {}), spans, stale, newest_us, moved_us, plan.now_us - clock.heard_us
        )
    return {"keep_share": keep_share, "streams": streams}


def decide(manifest: Manifest, now_us: int) -> dict[str, int]:
    """By stream: the time from which on a batch planned now admits rows; other streams admit all rows."""
    known = manifest.control.get(CONTROL, {})
    if known.get("keep_share", 1.0) >= 1:
        return {}
    return {
        name: fresh_from(
            known["keep_share"],
            manifest.clocks[name].seen_us,
            ahead_us(
                one["paces"],
                one["moves_us"],
                manifest.clocks[name].seen_us,
                now_us,
                now_us - manifest.clocks[name].heard_us,
            ),
            one["delays_us"],
        )
        for name, one in known["streams"].items()
        if one["paces"] and one["delays_us"]
    }


def applied(
    skipping: Mapping[str, Skipping],
    fresh_us: Mapping[str, int],
    operators: Mapping[str, OperatorTraits],
    joins: Collection[str],
) -> dict[str, Skipping]:
    """The skip plans of joins, with the stale times added."""
    found = dict(skipping)
    for name in joins if fresh_us else ():
        sides = zip(operators[name].inputs, skipping[name].fresh_us, strict=True)
        left, right = (fresh_us.get(stream, all_of_it) for stream, all_of_it in sides)
        found[name] = replace(skipping[name], fresh_us=(left, right))
    return found


def fresh_from(keep_share: float, seen_us: int, moves_us: float, delays_us: Sequence[float]) -> int:
    """The time at which the freshest part of the rows begins, in a stream that advances by this much."""
    delay_us = float(np.interp(keep_share, TENTHS, delays_us))
    return seen_us + round((1 - keep_share) * moves_us - delay_us)


def ahead_us(
    paces: Sequence[float], moves_us: Sequence[float], seen_us: int, now_us: int, elapsed_us: int
) -> float:
    """By how much a stream is expected to advance in a batch whose rows took this long to arrive."""
    in_portions = 2 * _spread(moves_us) < _spread(paces)
    expected = float(np.median(moves_us) if in_portions else np.median(paces) * max(0, elapsed_us))
    return min(expected, now_us - seen_us) if seen_us <= now_us else expected


def _spread(values: Sequence[float]) -> float:
    """Relative spread, robust against a single large value."""
    usual = np.sort(values)[:-1] if len(values) > 2 else np.array(values)
    return float(np.ptp(usual)) / max(float(np.median(values)), 1e-9)


def delays(
    spans: NDArray[np.float64], stale: int, newest_us: int, moved_us: float, known: Sequence[float]
) -> list[float]:
    """By how much the newest tenths of a batch's rows are older than in a stream in order.

    `spans`: first time, last time and number of rows that were let in. The age of stale rows is unknown: for
    them the last values stay.
    """
    first, last, rows = spans.T
    # Rows are assumed uniform in their span: their cumulative number is piecewise linear in age.
    youngest, oldest = newest_us - last, newest_us - first + 1
    density = rows / (oldest - youngest)
    order = np.argsort(ages := np.concatenate((youngest, oldest)), kind="stable")
    ages, rises = ages[order], np.cumsum(np.concatenate((density, -density))[order])
    shares = np.append(0.0, np.cumsum(rises[:-1] * np.diff(ages))) / (rows.sum() + stale)
    found = np.interp(TENTHS, shares, ages) - TENTHS * moved_us
    if stale and len(known):
        found = np.where(TENTHS <= shares[-1], found, known)
    # Delays are made monotone, so that a smaller part never lets in older rows.
    rising: list[float] = np.maximum.accumulate(np.maximum(0.0, found)).tolist()
    return rising


def _learnt(
    known: Mapping[str, Any],
    spans: NDArray[np.float64],
    stale: int,
    newest_us: int,
    moved_us: float | None,
    elapsed_us: int,
) -> Snapshot:
    """Pace and delays of one stream."""
    known = known or {"paces": [], "moves_us": [], "delays_us": []}
    if moved_us is None or elapsed_us <= 0:
        return {**known}
    measured = delays(spans, stale, newest_us, moved_us, known["delays_us"]) if len(spans) else []
    return {
        "paces": [*known["paces"], moved_us / elapsed_us][-_KEPT:],
        "moves_us": [*known["moves_us"], moved_us][-_KEPT:],
        "delays_us": measured or known["delays_us"],
    }


def _readers(
    operators: Mapping[str, OperatorTraits], joins: Collection[str], streams: Collection[str]
) -> dict[str, tuple[str, int]]:
    """By stream: the first side of a join that reads its rows."""
    found: dict[str, tuple[str, int]] = {}
    for name in joins:
        for side, source in enumerate(operators[name].inputs):
            if source in streams:
                found.setdefault(source, (name, side))
    return found


def _spans(reports: Iterable[TaskReport], side: int, batch: int) -> NDArray[np.float64]:
    """First time, last time and number of rows of every run that a batch stored."""
    added = [piece for report in reports for piece in report.state.added]
    found = [
        (piece.first_us, piece.last_us, piece.rows)
        for piece in added
        if piece.side == side and piece.first_batch == batch and not piece.marks
    ]
    return np.array(found, np.float64).reshape(-1, 3)
