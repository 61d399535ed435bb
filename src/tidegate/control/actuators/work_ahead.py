"""Forecast of the cost of each basic window in the next batch: the stored rows that new rows can match.

    stored        |    5    |    6    |    7    |    8  |            as the manifest lists them, by slot
    next batch                                          [ ░░░░░ ]    some moments, each with its reach

A row probes only the candidates on its own instance: half of them with two instances and evenly spread keys,
more where keys are split. That part follows from the last batch: candidate pairs as instances counted them,
relative to those with all rows in one place.

Guarantee: a function of two manifests, the reports between them and the expected rows; reads no files.
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

#: Moments of the next batch for which candidates are counted.
_MOMENTS = 4
#: Fewest pairs from which the part on one instance is estimated, and the largest such part.
_INFORMATIVE, _MOST = 1e4, 1.5


def work_ahead(
    shape: JoinShape,
    before: Manifest,
    after: Manifest,
    name: str,
    growth: float,
    reports: Sequence[TaskReport],
) -> Work:
    """Stored rows that a new row will probe, per window and age, from manifests and reports."""
    mine = [report for report in reports if report.operator == name]
    entered = sum(one.rows.offered[RIGHT] - one.rows.dropped[RIGHT] for one in mine)
    left, right = rows_ahead(shape, before, after, name, growth, entered)
    parts = _met(shape, before, after, name, mine)
    return parts[LEFT] * left, parts[RIGHT] * right


def rows_ahead(
    shape: JoinShape, before: Manifest, after: Manifest, name: str, growth: float, right_rows: int
) -> Work:
    """Stored rows that are candidates of a new row, on any instance.

    New rows are expected in the time after the newest ones, over as long a span as the last batch. Left rows
    also probe the right rows of the same batch.
    """
    mine = _pieces(after, name)
    spans = [_span(before.pieces, mine, name, side, growth) for side in (LEFT, RIGHT)]
    return _in_reach(shape, mine, spans, growth * right_rows)


def _met(
    shape: JoinShape, before: Manifest, after: Manifest, name: str, reports: Sequence[TaskReport]
) -> tuple[float, float]:
    """By window: the part of the candidates of the last batch's rows that lay on their own instance."""
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
    # Joins that do not count candidate pairs are assumed to probe all of them.
    return min(met / would, _MOST) if would >= _INFORMATIVE and met else 1.0


def _pieces(manifest: Manifest, name: str) -> list[Piece]:
    """Pieces whose rows a join finds by key."""
    return [one for one in manifest.pieces if one.operator == name and not (one.keyless or one.marks)]


def _in_reach(
    shape: JoinShape, pieces: Sequence[Piece], spans: Sequence[tuple[int, int]], right_rows: float
) -> Work:
    """Candidates among these pieces, and among this many new right rows, for new rows of these times."""
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
    """Expected times of the next rows of a side: from the newest on, as long as the last span."""
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
    """Times of the last rows of a side: from the newest before them to the newest of them."""
    begin, end = newest(before, name, side), newest(after, name, side)
    if begin == BEGINNING_US:
        begin = min((piece.first_us for piece in after if piece.side == side), default=end)
    return (begin, max(begin, end)) if end != BEGINNING_US else (0, 0)


def _moments(begin_us: int, end_us: int) -> NDArray[np.int64]:
    """Some moments evenly spread over a span."""
    return begin_us + (end_us - begin_us) * (2 * np.arange(_MOMENTS) + 1) // (2 * _MOMENTS)


class _Stored(NamedTuple):
    """Pieces as arrays: the slots that each spans, and its rows per slot, assumed uniform."""

    first: NDArray[np.int64]
    last: NDArray[np.int64]
    rows: NDArray[np.float64]


def _rows_by_slot(ages: Ages, pieces: Sequence[Piece]) -> _Stored:
    counts = [sum(piece.bounds[1::2]) - sum(piece.bounds[::2]) for piece in pieces]
    times = np.array([(piece.first_us, piece.last_us) for piece in pieces], np.int64).reshape(-1, 2)
    first, last = (times // ages.slot_us if ages.slot_us else 0 * times).T
    return _Stored(first, last, np.array(counts, np.float64) / (last - first + 1))


def _rows_by_age(ages: Ages, stored: _Stored, moments_us: NDArray[np.int64]) -> NDArray[np.float64]:
    """Candidates of a new row, averaged over these moments."""
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
    """The same for right rows that arrive in the same batch.

    Where rows of equal times match, all of them count: the spans are too coarse to say more. Otherwise only
    those at a distance at which they can match.
    """
    own_us, at_us = _moments(*spans[LEFT])[:, None], _moments(*spans[RIGHT])
    near = (own_us - at_us <= ages.back_us) & (at_us - own_us <= ages.ahead_us)
    near |= min(ages.back_us, ages.ahead_us) >= 0
    numbers = ages.numbers(own_us // ages.slot_us, at_us // ages.slot_us)
    return np.asarray(np.bincount(numbers.ravel(), near.ravel(), ages.count) * (count / numbers.size))


def newest(pieces: Sequence[Piece], name: str, side: int) -> int:
    times = [piece.last_us for piece in pieces if piece.operator == name and piece.side == side]
    return max(times, default=BEGINNING_US)


def rows_a_second(pieces: Sequence[Piece], name: str, side: int) -> float:
    """Rate, in event time, of the rows that a side stores."""
    mine = [piece for piece in pieces if piece.operator == name and piece.side == side and not piece.marks]
    if not mine:
        return 0.0
    span_us = max(piece.last_us for piece in mine) - min(piece.first_us for piece in mine) + 1
    return 1e6 * sum(piece.rows for piece in mine) / span_us
