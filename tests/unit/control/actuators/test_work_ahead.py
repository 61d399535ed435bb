from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.control import planning
from tidegate.control.actuators.join_policies import JoinShape
from tidegate.control.actuators.work_ahead import rows_ahead, work_ahead
from tidegate.join.within import TimeCondition, Unbounded, Within
from tidegate.model.graph import OperatorTraits
from tidegate.model.manifest import Manifest
from tidegate.model.pieces import ByteRange, Piece
from tidegate.model.reports import ProbeCounts, SideRows, TaskReport
from tidegate.model.times import LEFT, RIGHT

SECOND = 1_000_000


def shape_of(within: TimeCondition) -> JoinShape:
    return JoinShape(OperatorTraits("near", ("a", "b"), within, (False, False), (False, False)))


def manifest(*pieces: tuple[int, int, int, int]) -> Manifest:
    """Pieces by side, first and last time and rows."""
    stored = tuple(
        Piece(
            "near", side, None, 0, rows, first, last, (0, 0), False, (0,), (0, rows), ByteRange("f", k, 1, "")
        )
        for k, (side, first, last, rows) in enumerate(pieces)
    )
    return replace(planning.first_manifest({}, ["a", "b"], {}, 0), pieces=stored)


def counted(shape: JoinShape, side: int, after: Manifest, moments: list[float]) -> list[float]:
    """Rows of a side that new rows of these moments have in reach, by age: piece by piece, slot by slot."""
    ages = shape.sides[side]
    rows = [0.0] * ages.count
    for own in moments:
        for piece in (piece for piece in after.pieces if piece.side == side):
            slots = range(piece.first_us // ages.slot_us, piece.last_us // ages.slot_us + 1)
            for slot in slots:
                begin = max(slot * ages.slot_us, own - ages.back_us)
                end = min((slot + 1) * ages.slot_us, own + ages.ahead_us)
                part = max(0.0, end - begin) / ages.slot_us
                if part:
                    age = ages.number(int(own // ages.slot_us), slot)
                    rows[age] += part * piece.rows / len(slots) / len(moments)
    return rows


span = st.tuples(st.integers(0, 1), st.integers(0, 60), st.integers(0, 8), st.integers(1, 1000))


@given(st.lists(span, max_size=8), st.integers(-12, 12), st.integers(-12, 12))
def test_rows_in_reach_are_those_of_every_piece_and_slot(
    spans: list[tuple[int, int, int, int]], back: int, ahead: int
) -> None:
    shape = shape_of(Within(-ahead * SECOND, max(back, -ahead) * SECOND))
    after = manifest(*((side, at * SECOND, (at + n) * SECOND, rows) for side, at, n, rows in spans))
    # Nothing was stored before: the next rows all come at the newest time there is.
    both = rows_ahead(shape, manifest(), after, "near", 1.0, 0)
    newest = [
        max((piece.last_us for piece in after.pieces if piece.side == side), default=None)
        for side in (LEFT, RIGHT)
    ]
    for side in (LEFT, RIGHT):
        at = newest[1 - side] if newest[1 - side] is not None else newest[side]
        expected = counted(shape, side, after, [at if at is not None else 0])
        assert both[side].tolist() == pytest.approx(expected)


def test_right_rows_of_the_same_batch_are_in_reach_of_left_ones() -> None:
    shape = shape_of(Within(0, 10 * SECOND))
    before = manifest((LEFT, 0, SECOND, 10), (RIGHT, 0, SECOND, 10))
    after = manifest((LEFT, 0, SECOND, 10), (LEFT, SECOND, 3 * SECOND, 80), (RIGHT, SECOND, 3 * SECOND, 40))
    without, with_new = (rows_ahead(shape, before, after, "near", 2.0, new)[RIGHT] for new in (0, 40))
    assert (with_new - without).sum() == pytest.approx(80)


def test_rows_of_the_same_batch_that_cannot_match_are_not_counted() -> None:
    shape = shape_of(Within(5 * SECOND, 10 * SECOND))
    before = manifest((LEFT, 0, SECOND, 10), (RIGHT, 0, SECOND, 10))
    after = manifest((LEFT, 0, 3 * SECOND, 90), (RIGHT, 0, 3 * SECOND, 50))
    assert rows_ahead(shape, before, after, "near", 1.0, 40)[RIGHT].sum() == 0


def test_where_nothing_is_stored_only_rows_of_the_same_batch_are_in_reach() -> None:
    left, right = rows_ahead(shape_of(Within(-SECOND, SECOND)), manifest(), manifest(), "near", 1.0, 12)
    assert left.sum() == 0
    assert right.sum() == 12


def test_without_a_window_everything_stored_is_in_reach() -> None:
    shape = shape_of(Unbounded())
    left, right = rows_ahead(shape, manifest(), manifest((LEFT, 0, 9, 30), (RIGHT, 5, 6, 4)), "near", 1.0, 2)
    assert left.tolist() == [30.0]
    assert right.tolist() == [4.0]


def test_of_rows_in_reach_those_are_met_that_lie_with_the_same_instance() -> None:
    shape = shape_of(Within(-10 * SECOND, 10 * SECOND))
    before = manifest(*((side, 0, 10 * SECOND, 1000) for side in (LEFT, RIGHT)))
    after = manifest(
        *((side, 0, 10 * SECOND, 1000) for side in (LEFT, RIGHT)),
        *((side, 10 * SECOND, 11 * SECOND, 100) for side in (LEFT, RIGHT)),
    )
    everywhere = rows_ahead(shape, before, after, "near", 1.0, 100)
    # In each of two instances half of the rows meet half of the stored ones.
    would = rows_ahead(shape, manifest(), before, "near", 1.0, 0)
    apart = [reported(shape, [50 * window.sum() / 2 for window in would]) for _ in range(2)]
    left, right = work_ahead(shape, before, after, "near", 1.0, apart)
    assert left == pytest.approx(everywhere[LEFT] / 2, rel=0.1)
    assert right == pytest.approx(everywhere[RIGHT] / 2, rel=0.1)
    # And of joins that count nothing, all is expected to meet.
    uncounted = [reported(shape, [0.0, 0.0]) for _ in range(2)]
    assert work_ahead(shape, before, after, "near", 1.0, uncounted)[LEFT] == pytest.approx(everywhere[LEFT])


def reported(shape: JoinShape, candidates: list[float]) -> TaskReport:
    """Fifty new rows of each side, with so many rows of each window in reach."""
    none = [(0,) * ages.count for ages in shape.sides]
    looks = tuple(
        ProbeCounts((round(pairs), *zeros[1:]), zeros, zeros, zeros, zeros)
        for pairs, zeros in zip(candidates, none, strict=True)
    )
    return TaskReport("near", 0, SideRows(offered=(50, 50)), probes=looks)
