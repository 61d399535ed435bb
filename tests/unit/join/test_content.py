from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import StateError
from tidegate.join.basic_windows import ranges_by_age
from tidegate.join.conditions import bitsets
from tidegate.join.content import item_shares, match_chances
from tidegate.join.thresholds import Overlap
from tidegate.papers.selective_join import SECOND_US, Steps, Workload, draw


def bounds_of(*sizes: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def test_shares_are_rows_that_contain_the_item_over_rows_of_the_slot() -> None:
    rows = [[0, 1], [1, 1], [2], [], [1]]
    shares = item_shares(
        np.array([0, 0, 0, 2, 2]), bounds_of(*map(len, rows)), np.array([i for r in rows for i in r]), (3, 3)
    )
    assert shares[:, 0] == pytest.approx([1 / 3, 2 / 3, 1 / 3])
    assert shares[:, 1].tolist() == [0, 0, 0]
    assert shares[:, 2] == pytest.approx([0, 1 / 2, 0])


@given(st.lists(st.floats(0, 1), max_size=5), st.integers(1, 4))
def test_the_chance_is_that_of_enough_independent_coins(coins: list[float], at_least: int) -> None:
    shares = np.array(coins, float).reshape(-1, 1) if coins else np.zeros((1, 1))
    row = bounds_of(len(coins)), np.arange(len(coins))
    chance = match_chances(*row, shares, np.zeros(1, np.int64), 1, at_least)
    expected = sum(
        prod(q if side else 1 - q for q, side in zip(coins, sides, strict=True))
        for sides in product((0, 1), repeat=len(coins))
        if sum(sides) >= at_least
    )
    assert chance.item() == pytest.approx(expected, abs=1e-12)


def test_ages_count_back_from_the_rows_own_slot_and_end_before_the_first() -> None:
    shares = np.array([[0.1, 0.2, 0.3, 0.4]])
    chances = match_chances(bounds_of(1, 1), np.array([0, 0]), shares, np.array([3, 1]), 3, 1)
    assert chances == pytest.approx(np.array([[0.4, 0.3, 0.2], [0.2, 0.1, 0.0]]))


@pytest.mark.parametrize(("skew", "bar"), [(0.6, 1.6), (0.8, 1.3)])
def test_cells_chosen_per_row_find_more_than_the_best_cells_for_all_rows(skew: float, bar: float) -> None:
    """Equal numbers of comparisons, a fifth of all; what the estimates cost is not counted here."""
    left, right = draw(Workload(skew=skew), (Steps(((50, 400),)),) * 2)
    probing = np.flatnonzero(left.times_us >= 25 * SECOND_US)
    times, own = left.times_us[probing], left.times_us[probing] // SECOND_US
    ranges = ranges_by_age(right.times_us, times, 20 * SECOND_US, SECOND_US, equal_times=False)
    words = [bitsets(rows.bounds, rows.items, 100) for rows in (left, right)]
    matches = Overlap(3).count(np.ascontiguousarray(words[0][:, probing]), words[1], ranges)
    shares = item_shares(right.times_us // SECOND_US, right.bounds, right.items, (100, 50))
    first = probing[0]
    bounds = left.bounds[first:] - left.bounds[first]
    chances = match_chances(bounds, left.items[left.bounds[first] :], shares, own, matches.shape[1], 3)

    def found(values: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> int:
        best = np.argsort(-values, axis=None, kind="stable")
        spent = np.cumsum(ranges.sizes.ravel()[best])
        return int(matches.ravel()[best[spent <= ranges.sizes.sum() / 5]].sum())

    by_age = matches.sum(axis=0) / ranges.sizes.sum(axis=0)
    assert found(chances) >= bar * found(np.broadcast_to(by_age, matches.shape))


@pytest.mark.parametrize(("item", "slot"), [(5, 0), (-1, 0), (0, 9), (0, -1)])
def test_an_item_or_a_slot_that_nobody_counted_is_refused(item: int, slot: int) -> None:
    with pytest.raises(StateError, match="do not fit together"):
        match_chances(bounds_of(1), np.array([item]), np.zeros((3, 4)), np.array([slot]), 2, 1)
