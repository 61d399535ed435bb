from __future__ import annotations

from itertools import combinations
from math import prod
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tidegate.join.selective import content_choice
from tidegate.join.selective.content_choice import (
    CELL_COMPARISONS,
    ROW_COMPARISONS,
    Direction,
    StoredItems,
    choose_by_content,
    expected_matches,
)
from tidegate.join.sets.bitset_pairs import Bitsets
from tidegate.join.sets.inverted_lists import InvertedLists
from tidegate.join.sets.item_sets import ItemSets, item_sets
from tidegate.join.sets.thresholds import InnerProduct, Jaccard, Overlap, SetCondition

ITEMS = 30
Sets = list[set[int]]


def packed(rows: Sets, weights: NDArray[np.float64] | None = None) -> ItemSets:
    bounds = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return item_sets(bounds, np.array([i for row in rows for i in sorted(row)], np.int64), ITEMS, weights)


def stored_items(windows: list[ItemSets], lists: bool = False) -> StoredItems:
    stored = StoredItems.nothing(ITEMS, len(windows), windows[0].weights is not None)
    for column, sets in enumerate(windows):
        stored.counts[:, column] = np.bincount(sets.items, minlength=ITEMS)
        if stored.weights is not None:
            stored.weights[:, column] = np.bincount(sets.items, sets.weights, minlength=ITEMS)
        stored.rows[column], stored.items[column] = len(sets), sets.items.size
        stored.lists[column] = lists
    return stored


def whole(probing: ItemSets, windows: list[ItemSets], lists: bool = False) -> Direction:
    """Rows that have all of every basic window in reach."""
    sizes = np.tile(np.array([len(sets) for sets in windows], np.int32), (len(probing), 1))
    return Direction(probing, stored_items(windows, lists), sizes)


SETS = st.lists(st.sets(st.integers(0, ITEMS - 1), max_size=6), min_size=1, max_size=12)
CONDITIONS = st.sampled_from([Overlap(1), Overlap(2), Jaccard(0.4)])


@given(SETS, st.lists(SETS, min_size=1, max_size=4), CONDITIONS, st.floats(0, 1.1), st.booleans())
def test_never_more_than_the_budget_and_everything_with_all_of_it(
    new: Sets, windows: list[Sets], condition: SetCondition, fraction: float, lists: bool
) -> None:
    direction = whole(packed(new), [packed(rows) for rows in windows], lists)
    at_once = patch.object(content_choice, "CELLS_AT_ONCE", 7)
    free = patch.multiple("tidegate.join.selective.content_choice", CELL_COMPARISONS=0.0, ROW_COMPARISONS=0.0)
    with at_once, free:
        choice = choose_by_content(condition, [direction, direction], fraction, len(new))
    assert [probes.shape for probes in choice.probes] == [direction.sizes.shape] * 2
    candidate_pairs = 2 * int(direction.sizes.sum())
    assert choice.charged <= min(1, fraction) * candidate_pairs + 1e-6
    if fraction >= 1:
        assert all((probes == (direction.sizes > 0)).all() for probes in choice.probes)
    if not lists:
        looked = sum(int(direction.sizes[probes].sum()) for probes in choice.probes)
        assert looked == pytest.approx(choice.charged)


@given(st.sets(st.integers(0, 7), max_size=7), st.lists(st.integers(0, 40), min_size=8, max_size=8))
def test_an_overlap_is_valued_by_the_ways_to_have_enough_items_in_common(
    row: set[int], counts: list[int]
) -> None:
    stored = StoredItems.nothing(ITEMS, 2, weighted=False)
    stored.rows[:], stored.items[:] = (40, 20), (sum(counts), 0)
    stored.counts[:8, 0] = counts
    value = expected_matches(Overlap(3), packed([row]), stored)[0]
    ways = sum(prod(counts[i] / 40 for i in three) for three in combinations(row, 3))
    assert value == pytest.approx([ways, 0.0], rel=1e-5, abs=1e-30)


def test_what_jaccard_needs_in_common_depends_on_the_size_of_the_row() -> None:
    # Stored rows have four items: half of all common means 2 with a row of two, and 4 with one of eight.
    stored = StoredItems.nothing(ITEMS, 1, weighted=False)
    stored.rows[:], stored.items[:], stored.counts[:, 0] = 10, 40, 5
    values = expected_matches(Jaccard(0.5), packed([{0, 1}, set(range(8)), set()]), stored)[:, 0]
    assert values == pytest.approx([0.5**2, 70 * 0.5**4, 0.0])


def test_an_inner_product_is_valued_by_what_it_is_on_average() -> None:
    stored = [packed([{0, 1}, {1, 2}], np.array([0.5, 1.0, 3.0, 1.0]))]
    probing = packed([{1, 2}, set(), {0}], np.array([0.2, 0.4, -1.0]))
    values = expected_matches(InnerProduct(0.5), probing, stored_items(stored))[:, 0]
    assert values == pytest.approx([(0.2 * 2.0 + 0.4 * 0.5) / 0.5, 0.0, 0.0])


def test_weights_that_are_no_numbers_spoil_no_other_row() -> None:
    stored = [packed([{0}, {1}], np.array([np.nan, 2.0]))]
    probing = packed([{0}, {1}, {1}], np.array([1.0, np.nan, 1.0]))
    assert expected_matches(InnerProduct(1.0), probing, stored_items(stored))[:, 0].tolist() == [0, 0, 1]


def test_knowing_better_is_paid_from_the_same_budget() -> None:
    new, stored = packed([{0}] * 10), packed([{0}] * 4000)
    choice = choose_by_content(Overlap(1), [whole(new, [stored])], 0.5, 7)
    price = 10 * CELL_COMPARISONS + 7 * ROW_COMPARISONS
    # Cells of 4000 rows: half of them, less one that the price does not leave room for.
    assert int(choice.probes[0].sum()) == 4
    assert choice.charged == pytest.approx(4 * 4000 + price)


def test_the_rows_of_a_batch_share_their_budget_by_what_they_carry() -> None:
    popular, rare = {0, 1, 2}, {20, 21, 22}
    windows = [packed([popular] * 900 + [rare] * 100), packed([{3, 4, 5}] * 1000)]
    choice = choose_by_content(Overlap(3), [whole(packed([popular, rare, {3, 4, 6}]), windows)], 0.4, 1)
    assert choice.probes[0].tolist() == [[True, False], [True, False], [False, False]]


def drawn(random: np.random.Generator, rows: int, weighted: bool) -> ItemSets:
    """Sets of five items, of which the first are popular."""
    popular = 1 / np.arange(1, ITEMS + 1)
    sets = [set(random.choice(ITEMS, 5, replace=False, p=popular / popular.sum())) for _ in range(rows)]
    weights = random.random(5 * rows) if weighted else None
    return packed([{int(i) for i in one} for one in sets], weights)


@pytest.mark.parametrize(
    ("condition", "lists"),
    [(Overlap(4), False), (Overlap(4), True), (Jaccard(0.6), False), (InnerProduct(1.2), True)],
)
def test_the_best_cells_find_much_more_than_any_others_of_equal_cost(
    condition: SetCondition, lists: bool
) -> None:
    random = np.random.default_rng(5)
    weighted = isinstance(condition, InnerProduct)
    new, windows = drawn(random, 300, weighted), [drawn(random, 400, weighted) for _ in range(4)]
    way = InvertedLists(condition) if lists or isinstance(condition, InnerProduct) else Bitsets(condition)
    found, cost = np.zeros((2, 300, 4))
    for column, sets in enumerate(windows):
        ranges = np.zeros(300, np.int64), np.full(300, 400)
        prepared = way.prepare(sets)
        # Comparisons, or the lists of a row's items: one for each, and their entries.
        read = 1 + np.bincount(sets.items, minlength=sets.universe)
        each = np.repeat(np.arange(300), np.diff(new.bounds))
        indexed = isinstance(way, InvertedLists)
        cost[:, column] = np.bincount(each, read[new.items], 300) if indexed else 400
        for rows, _ in prepared.find(new, *ranges, 10_000):
            found[:, column] += np.bincount(rows, minlength=300)
    probes = choose_by_content(condition, [whole(new, windows, lists)], 0.3, 0).probes[0]
    spent = float(cost[probes].sum() / cost.sum())
    assert 0.15 < spent < 0.33
    assert found[probes].sum() / found.sum() > 1.6 * spent
