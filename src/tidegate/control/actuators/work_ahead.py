"""What each basic window will cost the next batch: rows that are stored there, and that new rows can reach.

    stored        |    5    |    6    |    7    |    8  |            as the manifest lists them, by slot
    next batch                                          [ ░░░░░ ]    some moments, each with its reach

A row meets only those rows in reach that lie with its own instance: half of them where there are two and keys
are spread evenly, more where keys are split. Which part that is follows from the last batch: what its rows
had in reach, as instances counted it, of what they would have had, were all rows in one place.

Guarantee: a function of two manifests, of the reports between them and of what is expected; nothing is read
but their lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidegate.control.actuators.join_policies import JoinShape
from tidegate.control.actuators.policy import Work
from tidegate.join.selective.reach import Ages
from tidegate.model.manifest import Manifest
from tidegate.model.pieces import Piece
from tidegate.model.reports import TaskReport
from tidegate.model.times import BEGINNING_US, LEFT, RIGHT

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Moments of the next batch for which the rows in reach are counted.
_MOMENTS = 4
#: Fewer pairs than this say nothing about which part of them meets, and no part is larger than this.
_INFORMATIVE, _MOST = 1e4, 1.5


def work_ahead(
    shape: JoinShape,
    before: Manifest,
    after: Manifest,
    name: str,
    growth: float,
    reports: Sequence[TaskReport],
) -> Work:
    """Stored rows that a new row will meet, per window and age, as far as manifests and reports tell."""
    mine = [report for report in reports if report.operator == name]
    left, right = rows_ahead(shape, before, after, name, growth, sum(one.rows.offered[RIGHT] for one in mine))
    parts = _met(shape, before, after, name, mine)
    return parts[LEFT] * left, parts[RIGHT] * right


def rows_ahead(
    shape: JoinShape, before: Manifest, after: Manifest, name: str, growth: float, right_rows: int
) -> Work:
    """Stored rows that a new row will have in reach, wherever they lie.

    New rows will lie in the time that follows the newest ones, as much of it as the last batch brought. Left
    ones also meet the right ones that come with them.
    """
    mine = _pieces(after, name)
    spans = [_span(before.pieces, mine, name, side, growth) for side in (LEFT, RIGHT)]
    return _in_reach(shape, mine, spans, growth * right_rows)


def _met(
    shape: JoinShape, before: Manifest, after: Manifest, name: str, reports: Sequence[TaskReport]
) -> tuple[float, float]:
    """By window: the part of what rows of the last batch had in reach that they could meet."""
    stored = _pieces(before, name)
    new = [
        sum(one.rows.offered[side] - one.rows.dropped[side] - one.rows.stale[side] for one in reports)
        for side in (LEFT, RIGHT)
    ]
    spans = [_span_behind(stored, _pieces(after, name), name, side) for side in (LEFT, RIGHT)]
    would = _in_reach(shape, stored, spans, new[RIGHT])
    left, right = (
        _part(
            sum(sum(one.probes[side].candidates) for one in reports if one.probes),
            new[1 - side] * float(would[side].sum()),
        )
        for side in (LEFT, RIGHT)
    )
    return left, right


def _part(met: float, would: float) -> float:
    # Joins that do not count what is in reach are taken to meet all of it.
    return min(met / would, _MOST) if would >= _INFORMATIVE and met else 1.0


def _pieces(manifest: Manifest, name: str) -> list[Piece]:
    """Rows that a join stores and finds by their keys."""
    return [one for one in manifest.pieces if one.operator == name and not (one.keyless or one.marks)]


def _in_reach(
    shape: JoinShape, pieces: Sequence[Piece], spans: Sequence[tuple[int, int]], right_rows: float
) -> Work:
    """Rows of these pieces, and of so many new right ones, in reach of new rows of these times."""
    stored = [
        _rows_by_slot(shape.sides[side], [piece for piece in pieces if piece.side == side])
        for side in (LEFT, RIGHT)
    ]
    left, right = (
        _rows_by_age(shape.sides[side], stored[side], _moments(*spans[1 - side])) for side in (LEFT, RIGHT)
    )
    if shape.sides[RIGHT].slot_us:
        right = right + _rows_by_age_of_new(shape.sides[RIGHT], spans, right_rows)
    return left, right


def _span(
    before: Sequence[Piece], after: Sequence[Piece], name: str, side: int, growth: float
) -> tuple[int, int]:
    """When the next rows of a side will lie: from the newest on, as far as the last ones went."""
    begin = newest(after, name, side)
    if begin == BEGINNING_US:
        begin = newest(after, name, 1 - side)
    if begin == BEGINNING_US:
        # Nothing is stored anywhere: any time will do.
        return 0, 0
    earlier = newest([piece for piece in before if not piece.keyless], name, side)
    brought = begin - earlier if earlier != BEGINNING_US else 0
    return begin, begin + int(growth * max(0, brought))


def _span_behind(before: Sequence[Piece], after: Sequence[Piece], name: str, side: int) -> tuple[int, int]:
    """When the last rows of a side lay: from the newest before them to the newest of them."""
    begin, end = newest(before, name, side), newest(after, name, side)
    if begin == BEGINNING_US:
        begin = min((piece.first_us for piece in after if piece.side == side), default=end)
    return (begin, max(begin, end)) if end != BEGINNING_US else (0, 0)


def _moments(begin_us: int, end_us: int) -> NDArray[np.int64]:
    """Some moments evenly spread over a span."""
    return begin_us + (end_us - begin_us) * (2 * np.arange(_MOMENTS) + 1) // (2 * _MOMENTS)


class _Stored(NamedTuple):
    """Pieces in arrays: the slots that each spans, and its rows per slot, as if they lay evenly in them."""

    first: NDArray[np.int64]
    last: NDArray[np.int64]
    rows: NDArray[np.float64]


def _rows_by_slot(ages: Ages, pieces: Sequence[Piece]) -> _Stored:
    counts = [sum(piece.bounds[1::2]) - sum(piece.bounds[::2]) for piece in pieces]
    times = np.array([(piece.first_us, piece.last_us) for piece in pieces], np.int64).reshape(-1, 2)
    first, last = (times // ages.slot_us if ages.slot_us else 0 * times).T
    return _Stored(first, last, np.array(counts, np.float64) / (last - first + 1))


def _rows_by_age(ages: Ages, stored: _Stored, moments_us: NDArray[np.int64]) -> NDArray[np.float64]:
    """Rows in reach of a new row, on average over these moments."""
    if not ages.slot_us:
        return np.array([stored.rows.sum()])
    near, far = moments_us.min() - ages.back_us, moments_us.max() + ages.ahead_us
    slots = np.arange(near // ages.slot_us, far // ages.slot_us + 1)
    spanned = (stored.first <= slots[:, None]) & (slots[:, None] <= stored.last)
    own_us = moments_us[:, None]
    reached = ages.candidate_part(own_us, slots) * (spanned @ stored.rows)
    numbers = ages.numbers(own_us // ages.slot_us, slots)
    return np.bincount(numbers.ravel(), reached.ravel(), ages.count) / _MOMENTS


def _rows_by_age_of_new(ages: Ages, spans: Sequence[tuple[int, int]], count: float) -> NDArray[np.float64]:
    """The same for right rows that will come in the same batch."""
    own, at = (_moments(*spans[side]) // ages.slot_us for side in (LEFT, RIGHT))
    numbers = ages.numbers(own[:, None], at)
    return np.bincount(numbers.ravel(), minlength=ages.count).astype(np.float64) * (count / numbers.size)


def newest(pieces: Sequence[Piece], name: str, side: int) -> int:
    times = [piece.last_us for piece in pieces if piece.operator == name and piece.side == side]
    return max(times, default=BEGINNING_US)


def rows_a_second(pieces: Sequence[Piece], name: str, side: int) -> float:
    """At which rate, in event time, the rows came that a side stores."""
    mine = [piece for piece in pieces if piece.operator == name and piece.side == side and not piece.marks]
    if not mine:
        return 0.0
    span_us = max(piece.last_us for piece in mine) - min(piece.first_us for piece in mine) + 1
    return 1e6 * sum(piece.rows for piece in mine) / span_us
