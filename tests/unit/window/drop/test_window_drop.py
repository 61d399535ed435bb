from __future__ import annotations

import numpy as np
import pytest

from tidegate.errors import FlowError
from tidegate.window.drop.decisions import Decisions
from tidegate.window.drop.window_drop import (
    BATCHES_MAX,
    WindowDrop,
    coins,
    gap_in_windows,
    share_max,
)


def picture(drop: WindowDrop, p: float, windows: int) -> str:
    """One sign per window from 0 on: ▓ dropped, · kept."""
    state = drop.decide(drop.begin(0), (windows - 1) * drop.slide_us, p)
    kept = state.decisions.kept(np.arange(windows) * drop.slide_us)
    return "".join("·" if each else "▓" for each in kept)


def seed_with(pattern: str, p: float) -> int:
    """A seed whose first coins fall like this: d drop, k keep."""
    wanted = [sign == "d" for sign in pattern]
    numbers = np.arange(len(pattern))
    return next(seed for seed in range(10_000) if (coins(numbers, seed) < p).tolist() == wanted)


def test_a_window_opened_against_the_coin_is_paid_back_when_a_coin_says_keep() -> None:
    assert picture(WindowDrop(10, 4, seed_with("ddkk", 0.5)), 0.5, 16) == "▓▓▓▓·▓▓▓▓·······"


def test_a_third_drop_in_a_row_opens_a_window_only_where_the_gap_is_full() -> None:
    drop = WindowDrop(10, 4, seed_with("dddk", 0.5))
    assert picture(drop, 0.5, 16) == "▓▓▓▓·▓▓▓▓·▓▓▓▓··"


def test_single_batches_that_drop_go_as_a_whole() -> None:
    assert picture(WindowDrop(10, 3, seed_with("kdkdk", 0.5)), 0.5, 15) == "···▓▓▓···▓▓▓···"


def test_at_the_largest_share_one_window_of_each_gap_and_one_more_is_left() -> None:
    drop = WindowDrop(1, 4, 3)
    state = drop.decide(drop.begin(0), 99_999, share_max(4))
    dropped = sum(end - first for first, end in state.decisions.dropped)
    assert dropped / state.decisions.end == pytest.approx(share_max(4), abs=0.02)


def test_with_p_of_nothing_nothing_is_dropped_and_debts_are_forgiven() -> None:
    drop = WindowDrop(10, 4, seed_with("ddd", 0.5))
    in_debt = drop.decide(drop.begin(0), 110, 0.5)
    assert in_debt.drop_debt > 0
    steady = drop.decide(in_debt, 1_000, 0.0)
    assert steady.decisions.dropped == in_debt.decisions.dropped
    assert (steady.gap, steady.drop_debt) == (0, 0)


def test_windows_from_before_the_first_decision_and_beyond_the_last_are_kept() -> None:
    decisions = Decisions(10, begin=4, end=12, dropped=((5, 8), (10, 12)))
    kept = decisions.kept(np.array([-50, 40, 50, 70, 80, 100, 110, 120, 10_000]))
    assert kept.tolist() == [True, True, False, False, True, False, False, True, True]


def test_a_time_that_is_decided_already_changes_nothing() -> None:
    drop = WindowDrop(10, 5)
    state = drop.decide(drop.begin(0), 1_000, 0.5)
    assert drop.decide(state, 500, 0.1) is state


def test_a_time_from_the_far_future_is_decided_in_several_calls() -> None:
    drop = WindowDrop(1, 1)
    state = drop.decide(drop.begin(0), 2**60, 0.2)
    assert state.decisions.end == BATCHES_MAX + 1
    assert state.decisions.kept(np.array([2**60])).all()


def test_coins_of_neighbouring_batches_and_seeds_have_nothing_to_do_with_each_other() -> None:
    numbers = np.arange(-20_000, 20_000)
    one, other = coins(numbers, 1), coins(numbers, 2)
    assert one.min() >= 0
    assert one.max() < 1
    assert abs(one.mean() - 0.5) < 0.01
    assert abs(np.corrcoef(one[1:], one[:-1])[0, 1]) < 0.02
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.02


def test_a_gap_given_as_time_is_the_longest_time_between_two_results() -> None:
    # A result at least once a minute, windows every ten seconds: five may be missing.
    assert gap_in_windows(60_000_000, 10_000_000) == 5
    with pytest.raises(FlowError, match=r"OUTPUT_MAX_GAP_TOO_SHORT.*19 microseconds"):
        gap_in_windows(19, 10)


def test_a_share_beyond_what_the_gap_allows_is_refused() -> None:
    drop = WindowDrop(10, 4)
    for p in (0.81, -0.1, float("nan")):
        with pytest.raises(
            FlowError, match=r"WINDOW_DROP_RATIO_INVALID.*0 to 0\.800 of all windows.*larger max_gap"
        ):
            drop.decide(drop.begin(0), 100, p)


@pytest.mark.parametrize(("slide", "gap"), [(0, 1), (-1, 1), (10, 0), (10, -3)])
def test_a_drop_without_windows_is_refused(slide: int, gap: int) -> None:
    with pytest.raises(
        FlowError, match=r"WINDOW_DROP_INVALID.*slide above zero and a max_gap of at least one window"
    ):
        WindowDrop(slide, gap)
