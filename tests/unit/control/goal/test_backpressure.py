"""What a batch takes of its sources: as much as fits, streams side by side, history without hurry."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.control.goal.backpressure import Backpressure, Fits, TakenRows
from tidegate.model.codec import from_plain, to_plain

SECOND = 1_000_000
PLENTY = Fits(full=1e6, decided=1e6, deepest=1e7)


def fits(rows: float, full: float | None = None, deepest: float | None = None) -> Fits:
    return Fits(rows if full is None else full, rows, rows if deepest is None else deepest)


def steady(rows: int = 1_000, batches: int = 3, waiting: int = 0) -> Backpressure:
    """Two streams, one with twice the rows, ten rows a file; a second of event time a batch."""
    intake = Backpressure()
    for number in range(1, batches + 1):
        left = waiting if number == batches else 0
        intake.observe(
            {
                "a": TakenRows(2 * rows, number * SECOND, 2 * rows // 10, 2 * left, None),
                "b": TakenRows(rows, number * SECOND, rows // 10, left, None),
            }
        )
    return intake


def test_sources_that_hold_nothing_back_are_wanted_as_they_come() -> None:
    intake = steady()
    assert intake.waiting == 0
    assert intake.wanted(3_000) == 3_000


def test_limits_are_what_fits_shared_by_what_comes() -> None:
    assert steady().limits(fits(6_000)) == {"a": 400, "b": 200}


def test_what_waits_is_worked_off_within_a_few_batches() -> None:
    intake = steady(waiting=500)
    assert intake.waiting == 15_000
    intake.limits(fits(4_000, full=4_000, deepest=20_000))
    assert intake.wanted(3_000) == 3_000 + 15_000 / 5


def test_as_much_is_expected_as_is_let_in_because_it_fits() -> None:
    intake = steady(waiting=500)
    intake.limits(fits(9_000, full=9_000, deepest=20_000))
    assert intake.wanted(3_000) == 9_000
    intake.limits(PLENTY)
    assert intake.wanted(3_000) == 3_000 + 15_000


def test_one_unit_of_each_stream_is_expected_however_little_fits() -> None:
    # A file of 300 rows comes whole: a forecast of 3 rows would find nothing to shed.
    intake = Backpressure()
    intake.observe({"a": TakenRows(300, SECOND, 1, 5), "b": TakenRows(200, SECOND, 1, 5)})
    intake.limits(fits(3, full=3, deepest=6))
    assert intake.wanted(0) == 500


def test_what_is_let_in_is_what_limits_allow_and_what_cannot_be_limited() -> None:
    intake = steady()
    intake.observe({"a": TakenRows(2_000, 4 * SECOND, 200, 0, None), "b": TakenRows(500, 4 * SECOND)})
    assert intake.let_in({"a": 30}) == pytest.approx(300 + 500)


def test_a_history_is_not_hurried() -> None:
    # No leaving out would bring it back in time, so nothing is left out for it.
    intake = steady(waiting=500_000)
    intake.limits(fits(4_000, full=4_000, deepest=20_000))
    assert intake.wanted(3_000) == 4_000


def test_a_history_does_not_stop_what_comes_meanwhile() -> None:
    intake = steady(waiting=500_000)
    intake.limits(fits(2_000, full=2_000, deepest=20_000))
    assert intake.wanted(3_000) == 3_000


def test_rows_that_came_are_those_taken_and_those_that_wait_more_than_before() -> None:
    intake = Backpressure()
    # What had gathered before the first batch says nothing.
    assert intake.observe({"a": TakenRows(100, SECOND, 10, 30)}) == 100
    assert intake.observe({"a": TakenRows(100, 2 * SECOND, 10, 25)}) == 100 - 50
    assert intake.observe({"a": TakenRows(100, 3 * SECOND, 10, 65)}) == 100 + 400


def test_a_source_that_does_not_say_what_waits_is_full_when_it_gave_all_it_might() -> None:
    intake = Backpressure()
    intake.observe({"a": TakenRows(950, SECOND, 950, None, 1_000)})
    assert intake.waiting == 950
    intake.observe({"a": TakenRows(600, 2 * SECOND, 600, None, 1_000)})
    assert intake.waiting == 0


def test_a_stream_that_lags_is_let_in_first() -> None:
    intake = steady()
    # `a` is three seconds behind `b`, at 2,000 rows a second; then both go on side by side.
    intake.observe(
        {"a": TakenRows(2_000, 4 * SECOND, 200, 2_000), "b": TakenRows(3_000, 7 * SECOND, 300, 100)}
    )
    limits = intake.limits(fits(6_000))
    assert limits["a"] == pytest.approx(600, abs=1)
    # Still a part of its share, so that nobody starves.
    assert limits["b"] == pytest.approx(0.1 * 6_000 * 3 / 5 / 10, abs=1)


def test_a_stream_whose_clock_is_behind_by_nature_holds_nobody_back() -> None:
    intake = Backpressure()
    for number in range(1, 4):
        intake.observe(
            {
                "late": TakenRows(1_000, number * SECOND, 100, 0),
                "now": TakenRows(1_000, (3_600 + number) * SECOND, 100, 400 if number == 3 else 0),
            }
        )
    assert intake.limits(fits(5_000))["now"] == pytest.approx(400, abs=1)


def test_streams_that_cannot_be_limited_are_left_alone() -> None:
    intake = Backpressure()
    intake.observe({"rate": TakenRows(100, SECOND), "files": TakenRows(100, SECOND, 2, 0)})
    assert set(intake.limits(fits(400))) == {"files"}


def test_a_restored_one_goes_on_with_the_same_answers() -> None:
    one = steady(waiting=40)
    one.limits(fits(4_000))
    other = from_plain(Backpressure, json.loads(json.dumps(to_plain(one))))
    assert other.wanted(3_000) == one.wanted(3_000)
    assert other.limits(fits(4_000)) == one.limits(fits(4_000))


@given(
    st.lists(
        st.tuples(st.integers(1, 5_000), st.integers(0, 20), st.integers(0, 5_000)), min_size=1, max_size=4
    ),
    st.floats(10, 1e5),
)
def test_limits_add_up_to_what_fits_and_streams_that_move_meet(
    streams: list[tuple[int, int, int]], rows: float
) -> None:
    intake = Backpressure()
    intake.observe({str(n): TakenRows(1, 0, 1, 0) for n in range(len(streams))})
    intake.observe(
        {str(n): TakenRows(count, at * SECOND, count, left) for n, (count, at, left) in enumerate(streams)}
    )
    limits = intake.limits(fits(rows))
    assert set(limits) == set(map(str, range(len(streams))))
    assert all(limit >= 1 for limit in limits.values())
    floors = [1 + 0.1 * rows * count / sum(c for c, _, _ in streams) for count, _, _ in streams]
    assert sum(limits.values()) <= rows + sum(floors) + 1e-6
    reached = [
        at + limits[str(n)] * at / count
        for n, (count, at, left) in enumerate(streams)
        if at and left and limits[str(n)] > floors[n]
    ]
    slack = max(at / count for count, at, _ in streams)
    assert not reached or max(reached) - min(reached) <= slack + 1e-6
