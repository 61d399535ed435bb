"""The time condition: ranges of partner times, death of rows, slots, JSON and its error messages."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.errors import FlowError
from tidegate.join.within import Tumbling, Unbounded, Within, slots_of
from tidegate.model.times import BEGINNING_US, END_US, LEFT, RIGHT

KINDS = [Within(-5, 20), Within(5, 20), Within(-20, -5), Within(0, 0), Tumbling(10), Unbounded()]


def ranges(condition: Within | Tumbling | Unbounded, side: int, *times: int) -> list[tuple[int, int]]:
    low, high = condition.partner_range(side, np.array(times, np.int64))
    assert low.dtype == high.dtype == np.int64
    return list(zip(low.tolist(), high.tolist(), strict=True))


def test_a_left_row_is_joined_with_right_rows_between_its_bounds() -> None:
    assert ranges(Within(-5, 20), LEFT, 100, -3) == [(95, 120), (-8, 17)]
    assert ranges(Within(5, 20), LEFT, 100, -3) == [(105, 120), (2, 17)]
    assert ranges(Within(-20, -5), LEFT, 100, -3) == [(80, 95), (-23, -8)]


def test_a_right_row_is_joined_with_the_left_rows_that_have_it_between_their_bounds() -> None:
    assert ranges(Within(-5, 20), RIGHT, 100, -3) == [(80, 105), (-23, 2)]
    assert ranges(Within(5, 20), RIGHT, 100, -3) == [(80, 95), (-23, -8)]
    assert ranges(Within(-20, -5), RIGHT, 100, -3) == [(105, 120), (2, 17)]


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
    assert ranges(Within(-3, END_US), LEFT, BEGINNING_US, END_US) == [
        (BEGINNING_US, -1),
        (END_US - 3, END_US),
    ]
    assert ranges(Within(-END_US, 3), LEFT, BEGINNING_US, END_US) == [
        (BEGINNING_US, BEGINNING_US + 3),
        (0, END_US),
    ]
    # Partners beyond the last event time: nothing but the end itself, which is no event time.
    assert ranges(Within(5, 9), LEFT, END_US - 4) == [(END_US, END_US)]
    assert ranges(Within(-9, -5), LEFT, BEGINNING_US + 4) == [(BEGINNING_US, BEGINNING_US)]
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


@pytest.mark.parametrize(
    ("within", "dead", "complete"),
    [
        (Within(-5, 20), (80, 95), (80, 95)),
        # Right rows lie after their partners: they are kept until the watermark passes them, no longer.
        (Within(5, 20), (80, 100), (80, 105)),
        (Within(-20, -5), (100, 80), (105, 80)),
        (Within(0, 0), (100, 100), (100, 100)),
    ],
)
def test_a_row_dies_when_the_watermark_has_passed_it_and_its_last_possible_match(
    within: Within, dead: tuple[int, int], complete: tuple[int, int]
) -> None:
    assert tuple(within.dead_before(side, 100) for side in (LEFT, RIGHT)) == dead
    assert tuple(within.complete_before(side, 100) for side in (LEFT, RIGHT)) == complete


def test_a_tumbling_window_dies_as_a_whole() -> None:
    assert [Tumbling(10).dead_before(LEFT, watermark) for watermark in (19, 20, -1)] == [10, 20, -10]


def test_nothing_dies_in_an_unbounded_join() -> None:
    assert Unbounded().dead_before(LEFT, END_US - 1) == BEGINNING_US


@pytest.mark.parametrize("condition", KINDS)
def test_everything_is_dead_at_the_end_and_nothing_at_the_beginning(
    condition: Within | Tumbling | Unbounded,
) -> None:
    for side in (LEFT, RIGHT):
        for before in (condition.dead_before, condition.complete_before):
            assert before(side, END_US) == END_US
            assert before(side, BEGINNING_US) == BEGINNING_US


@pytest.mark.parametrize(
    ("condition", "left", "right"),
    [
        (Within(-1_000_000, 20_000_000), 2_000_000, 100_000),
        (Within(-1, 101), 11, 1),  # Rounded up, and never zero.
        (Within(-50, 0), 5, 5),  # No window of its own: the other's.
        (Within(0, 50), 5, 5),
        (Within(0, 0), 1_000_000, 1_000_000),
        (Within(600, 1000), 40, 40),  # A tenth of the range in which partners lie …
        (Within(-1000, -600), 40, 40),
        (Within(990, 1000), 20, 20),  # … but no more than 50 in all.
        (Within(1000, 1000), 20, 20),
        (Tumbling(7), 7, 7),
        (Unbounded(), 0, 0),
    ],
)
def test_a_slot_is_a_tenth_of_the_window(
    condition: Within | Tumbling | Unbounded, left: int, right: int
) -> None:
    assert (condition.slot_us(LEFT), condition.slot_us(RIGHT)) == (left, right)


def test_basic_windows_have_the_length_that_was_set_and_a_least_one() -> None:
    within = Within(-1_000_000, 20_000_000).in_basic_windows(500_000)
    assert (within.slot_us(LEFT), within.slot_us(RIGHT)) == (500_000, 500_000)
    assert within.to_json() == {**Within(-1_000_000, 20_000_000).to_json(), "basic_us": 500_000}
    with pytest.raises(FlowError, match=r"POLICY_BASIC_WINDOW_SHORT.*Give at least 40 milliseconds"):
        within.in_basic_windows(39_999)


def test_slots_are_counted_from_the_epoch_in_both_directions() -> None:
    times = np.array([0, 9, 10, -1, -10, -11], np.int64)
    assert slots_of(times, 10).tolist() == [0, 0, 1, -1, -1, -2]
    assert slots_of(times, 0).tolist() == [0] * 6
    assert slots_of(times[:0], 10).tolist() == []


def test_lengths_for_which_rows_are_kept_and_in_which_they_match() -> None:
    assert (Within(-5, 20).kept_us, Within(-5, 20).probed_us) == ((20, 5), (20, 5))
    assert (Within(5, 20).kept_us, Within(5, 20).probed_us) == ((20, 0), (15, 0))
    assert (Within(-20, -5).kept_us, Within(-20, -5).probed_us) == ((0, 20), (0, 15))


@pytest.mark.parametrize(("lower", "upper", "bound"), [(-(2**63), 0, "lower"), (0, 2**63, "upper")])
def test_a_bound_that_is_too_long_is_refused(lower: int, upper: int, bound: str) -> None:
    with pytest.raises(FlowError, match=rf"The {bound} bound .* 64 bits.*Got: .*UNBOUNDED") as caught:
        Within(lower, upper)
    assert caught.value.code == "JOIN_WITHIN_TOO_LONG"


def test_bounds_between_which_nothing_lies_are_refused() -> None:
    with pytest.raises(
        FlowError,
        match=r"lies above the upper one.*Got: lower 2 microseconds, upper 1 microsecond\..*tg\.between",
    ) as caught:
        Within(2, 1)
    assert caught.value.code == "JOIN_WITHIN_EMPTY"


@pytest.mark.parametrize("size", [0, -1, 2**63])
def test_a_tumbling_window_without_length_is_refused(size: int) -> None:
    with pytest.raises(
        FlowError, match=r"longer than zero.*Got: .* microseconds.*own window.*Give a duration"
    ):
        Tumbling(size)
