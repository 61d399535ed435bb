"""The time condition: ranges of partner times, death of rows, slots, JSON and its error messages."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tidegate.errors import FlowError
from tidegate.join.within import Tumbling, Unbounded, Within, slots_of
from tidegate.model.times import BEGINNING_US, END_US, LEFT, RIGHT

KINDS = [Within(20, 5), Tumbling(10), Unbounded()]


def ranges(condition: Within | Tumbling | Unbounded, side: int, *times: int) -> list[tuple[int, int]]:
    low, high = condition.partner_range(side, np.array(times, np.int64))
    assert low.dtype == high.dtype == np.int64
    return list(zip(low.tolist(), high.tolist(), strict=True))


def test_a_left_row_looks_back_by_the_right_window_and_ahead_by_its_own() -> None:
    assert ranges(Within(20, 5), LEFT, 100, -3) == [(95, 120), (-8, 17)]


def test_a_right_row_looks_back_by_the_left_window_and_ahead_by_its_own() -> None:
    assert ranges(Within(20, 5), RIGHT, 100, -3) == [(80, 105), (-23, 2)]


def test_a_row_sees_exactly_its_tumbling_window_also_before_the_epoch() -> None:
    assert ranges(Tumbling(10), LEFT, 0, 9, 10, -1, -10, -11) == [
        (0, 9),
        (0, 9),
        (10, 19),
        (-10, -1),
        (-10, -1),
        (-20, -11),
    ]


def test_an_unbounded_row_sees_all_time() -> None:
    assert ranges(Unbounded(), RIGHT, 7) == [(BEGINNING_US, END_US)]


def test_ranges_stop_at_the_ends_of_int64_and_do_not_wrap() -> None:
    assert ranges(Within(END_US, 3), LEFT, BEGINNING_US, END_US) == [
        (BEGINNING_US, -1),
        (END_US - 3, END_US),
    ]
    assert ranges(Within(3, END_US), LEFT, BEGINNING_US, END_US) == [
        (BEGINNING_US, BEGINNING_US + 3),
        (0, END_US),
    ]
    # 2**63 is no multiple of 10: the first and the last window are cut short by the ends.
    assert ranges(Tumbling(10), LEFT, BEGINNING_US, END_US) == [
        (BEGINNING_US, -(2**63 // 10) * 10 - 1),
        (END_US // 10 * 10, END_US),
    ]
    assert ranges(Tumbling(END_US), LEFT, BEGINNING_US, -END_US, 0, END_US) == [
        (BEGINNING_US, -END_US - 1),
        (-END_US, -1),
        (0, END_US - 1),
        (END_US, END_US),
    ]


@pytest.mark.parametrize("condition", KINDS)
def test_no_rows_have_no_ranges(condition: Within | Tumbling | Unbounded) -> None:
    assert ranges(condition, LEFT) == []


def test_a_row_dies_when_the_watermark_has_passed_its_own_window() -> None:
    assert Within(20, 5).dead_before(LEFT, 100) == 80
    assert Within(20, 5).dead_before(RIGHT, 100) == 95


def test_a_tumbling_window_dies_as_a_whole() -> None:
    assert [Tumbling(10).dead_before(LEFT, watermark) for watermark in (19, 20, -1)] == [10, 20, -10]


def test_nothing_dies_in_an_unbounded_join() -> None:
    assert Unbounded().dead_before(LEFT, END_US - 1) == BEGINNING_US


@pytest.mark.parametrize("condition", KINDS)
def test_everything_is_dead_at_the_end_and_nothing_at_the_beginning(
    condition: Within | Tumbling | Unbounded,
) -> None:
    for side in (LEFT, RIGHT):
        assert condition.dead_before(side, END_US) == END_US
        assert condition.dead_before(side, BEGINNING_US) == BEGINNING_US


@pytest.mark.parametrize(
    ("condition", "left", "right"),
    [
        (Within(20_000_000, 1_000_000), 2_000_000, 100_000),
        (Within(101, 1), 11, 1),  # Rounded up, and never zero.
        (Within(0, 50), 5, 5),  # No window of its own: the other's.
        (Within(50, 0), 5, 5),
        (Within(0, 0), 1_000_000, 1_000_000),
        (Tumbling(7), 7, 7),
        (Unbounded(), 0, 0),
    ],
)
def test_a_slot_is_a_tenth_of_the_window(
    condition: Within | Tumbling | Unbounded, left: int, right: int
) -> None:
    assert (condition.slot_us(LEFT), condition.slot_us(RIGHT)) == (left, right)


def test_slots_are_counted_from_the_epoch_in_both_directions() -> None:
    times = np.array([0, 9, 10, -1, -10, -11], np.int64)
    assert slots_of(times, 10).tolist() == [0, 0, 1, -1, -1, -2]
    assert slots_of(times, 0).tolist() == [0] * 6
    assert slots_of(times[:0], 10).tolist() == []


@pytest.mark.parametrize("condition", KINDS)
def test_a_condition_comes_back_equal_from_json(condition: Within | Tumbling | Unbounded) -> None:
    raw = json.loads(json.dumps(condition.to_json()))
    assert type(condition).from_json(raw) == condition


@pytest.mark.parametrize(("left", "right", "side"), [(-1, 0, "left"), (0, -1, "right"), (0, 2**63, "right")])
def test_a_window_that_is_negative_or_too_long_is_refused(left: int, right: int, side: str) -> None:
    with pytest.raises(
        FlowError, match=rf"The {side} window .* zero or more.*Got: .*how long.*Give a duration"
    ):
        Within(left, right)


@pytest.mark.parametrize("size", [0, -1, 2**63])
def test_a_tumbling_window_without_length_is_refused(size: int) -> None:
    with pytest.raises(
        FlowError, match=r"longer than zero.*Got: .* microseconds.*own window.*Give a duration"
    ):
        Tumbling(size)
