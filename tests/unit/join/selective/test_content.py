from __future__ import annotations

from itertools import combinations, product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tidegate.errors import StateError
from tidegate.join.selective.content import ItemShares, item_shares, match_values
from tidegate.join.sets.item_sets import ItemSets, item_sets
from tidegate_lab.simulate.join.by_content import item_counts


def packed(rows: list[list[int]], universe: int) -> ItemSets:
    bounds = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return item_sets(bounds, np.array([i for row in rows for i in row], np.int64), universe)


def shares_of(shares: list[list[float]], ages: int) -> ItemShares:
    """Per item and slot, oldest slot first."""
    counts = np.rint(np.array(shares) * 1000).astype(np.int64)
    return item_shares(counts, np.full(counts.shape[1], 1000), ages)


def test_shares_are_rows_that_contain_the_item_over_rows_of_the_slot() -> None:
    stored, slot = packed([[0, 1], [1, 1], [2], [], [1]], 3), np.array([0, 0, 0, 2, 2])
    counts = item_counts(stored, slot, 3)
    assert counts.tolist() == [[1, 0, 0], [2, 0, 1], [1, 0, 0]]
    shares = item_shares(counts, np.bincount(slot), 3)
    newest_first = shares.table[:, :3]
    assert newest_first == pytest.approx(np.array([[0, 0, 1 / 3], [1 / 2, 0, 2 / 3], [0, 0, 1 / 3]]))
    assert not shares.table[:, 3:].any()


@given(st.lists(st.integers(0, 1000), max_size=7), st.integers(1, 5))
def test_the_value_is_the_expected_number_of_ways_to_pick_common_items(
    coins: list[int], at_least: int
) -> None:
    shares = [coin / 1000 for coin in coins]
    value = match_values(
        packed([list(range(len(shares)))], 8),
        shares_of([[share] for share in shares] + [[0.0]] * (8 - len(shares)), 1),
        np.zeros(1, np.int64),
        at_least,
    ).item()
    assert value == pytest.approx(sum(map(prod, combinations(shares, at_least))), rel=1e-5, abs=1e-30)
    chance = sum(
        prod(q if side else 1 - q for q, side in zip(shares, sides, strict=True))
        for sides in product((0, 1), repeat=len(shares))
        if sum(sides) >= at_least
    )
    assert value >= chance * (1 - 1e-5)


def test_a_single_value_is_worth_the_share_of_equal_ones() -> None:
    values = match_values(packed([[1]], 2), shares_of([[0.5, 0.1], [0.2, 0.3]], 2), np.array([1]), 1)
    assert values == pytest.approx(np.array([[0.3, 0.2]]))


def test_ages_count_back_from_the_rows_own_slot_and_end_before_the_first() -> None:
    shares = shares_of([[0.1, 0.2, 0.3, 0.4]], 3)
    values = match_values(packed([[0], [0]], 1), shares, np.array([3, 1]), 1)
    assert values == pytest.approx(np.array([[0.4, 0.3, 0.2], [0.2, 0.1, 0.0]]))


@pytest.mark.parametrize("ages", [1, 23, 24, 25, 60])
@pytest.mark.parametrize("at_least", [1, 2, 3, 5])
def test_windows_of_any_depth_and_rows_of_any_size_get_their_own_values(ages: int, at_least: int) -> None:
    """More ages than are computed at a time, and rows that write into the space of the next one."""
    random = np.random.default_rng(ages)
    table = random.integers(0, 900, (12, 50)) / 1000
    rows = [random.choice(12, size, replace=False).tolist() for size in random.integers(0, 8, 40)]
    own = random.integers(0, 50, 40)
    values = match_values(packed(rows, 12), shares_of(table.tolist(), ages), own, at_least)
    for row, slot, got in zip(rows, own, values, strict=True):
        expected = [
            sum(prod(table[list(some), slot - age]) for some in combinations(row, at_least))
            if age <= slot
            else 0
            for age in range(ages)
        ]
        assert got == pytest.approx(np.array(expected), rel=1e-4)


def refused(items: NDArray[np.int64], own: NDArray[np.int64], universe: int = 3) -> None:
    with pytest.raises(StateError, match=r"INTERNAL_ARRAYS_INCONSISTENT.*do not fit together"):
        match_values(
            item_sets(np.array([0, items.size]), items, universe), shares_of([[0.1] * 4] * 3, 2), own, 1
        )


@pytest.mark.parametrize("slot", [4, 9, -1])
def test_a_slot_that_nobody_counted_is_refused(slot: int) -> None:
    refused(np.array([0]), np.array([slot]))
    with pytest.raises(StateError, match="do not fit together"):
        item_counts(packed([[0]], 3), np.array([slot]), 4)


def test_items_that_nobody_counted_and_rows_without_a_slot_are_refused() -> None:
    refused(np.array([3]), np.array([0]), universe=4)
    refused(np.array([0]), np.array([0, 1]))
    with pytest.raises(StateError, match=r"INTERNAL_ARRAYS_INCONSISTENT.*do not fit together"):
        item_shares(np.zeros((3, 4), np.int64), np.zeros(5, np.int64), 2)
