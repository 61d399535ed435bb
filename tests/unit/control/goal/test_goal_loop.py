"""How many rows fit into a batch, from what is expected of it."""

from __future__ import annotations

import pytest

from tidegate.control.goal.backpressure import Backpressure, Fits, TakenRows
from tidegate.control.goal.forecast import Expected
from tidegate.control.goal.goal_loop import Coming, what_fits
from tidegate.control.goal.goal_values import Decided, GoalSettings

GOAL = GoalSettings(1.0)


def decided(expected: float, headroom: float = 0.2) -> Decided:
    """Of 80 rows: half a second is fixed, half of the rest may be left out."""
    deepest = 0.5 + (expected - 0.5) / 2
    return Decided({}, expected, expected, 0.5, deepest, {}, expected=expected, safety_margin=headroom)


def sources(waiting: int) -> Backpressure:
    intake = Backpressure()
    intake.observe({"a": TakenRows(80, None, units=8, waiting=waiting, limit=8)})
    return intake


def coming(rate: float = 40.0) -> Coming:
    """80 rows are wanted, for which there is time; fewer come in a second."""
    return Coming(80, 80.0, 1.0, Expected(rate, 0.0, rate))


def fits(expected: float, waiting: int = 0, most: float = 1e9) -> Fits:
    return what_fits(GOAL, decided(expected), coming(), sources(waiting), most)


def test_no_row_is_kept_waiting_by_time_that_is_kept_free() -> None:
    # Headroom alone would leave 72 of them.
    assert fits(0.95).decided == pytest.approx(80 * 0.5 / 0.45)
    assert fits(1.1).decided == pytest.approx(80 * 0.5 / 0.6)


def test_rows_that_wait_are_let_in_with_time_to_spare() -> None:
    assert fits(0.95, waiting=3).decided == pytest.approx(80 * 0.4 / 0.45)


def test_what_fits_with_all_left_out_is_more_and_no_more_than_was_seen() -> None:
    assert fits(0.9).deepest == pytest.approx(2 * fits(0.9).full)
    assert fits(0.6, most=100) == Fits(100, 100, 100)


def test_where_overhead_takes_all_the_time_batches_are_longer() -> None:
    late = Decided({}, 1.6, 1.6, 1.2, 1.6, {}, expected=1.6)
    assert what_fits(GOAL, late, coming(), sources(0), 1e9).decided == pytest.approx(80 * 0.6 / 0.4)


@pytest.mark.parametrize(
    ("rate", "seconds"), [(40.0, 1.0), (80.0, 1.25), (110.0, 2.0), (1000.0, 2.0)], ids=str
)
def test_batches_are_long_enough_to_keep_up_with_what_comes(rate: float, seconds: float) -> None:
    # 80 rows take 0.6 s, and half a second is fixed; two seconds is the most that is tried.
    found = what_fits(GOAL, decided(1.1), coming(rate), sources(0), 1e9)
    assert found.decided == pytest.approx(80 * (seconds - 0.5) / 0.6)


def test_while_rows_wait_a_little_more_than_what_comes_is_let_in() -> None:
    found = what_fits(GOAL, decided(1.1), coming(80.0), sources(3), 1e9)
    # 80 come and 96 are kept up with, in 1.8 s.
    assert found.decided == pytest.approx(80 * (0.5 / (1 - 0.6 / 80 * 96) - 0.5) / 0.6)
