from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegate.join.sets.bitset_pairs import Bitsets
from tidegate.join.sets.inverted_lists import InvertedLists
from tidegate.join.sets.item_sets import ItemSets, item_sets
from tidegate.join.sets.thresholds import InnerProduct, Overlap
from tidegate.join.sets.weighted_pairs import Weighted
from tidegate_lab.simulate.join.probe_costs import probe_cost

#: Item 0 in every row, item 1 in every second, item 2 in every third …
STORED = [[item for item in range(6) if place % (item + 1) == 0] for place in range(12)]


def packed(rows: list[list[int]]) -> ItemSets:
    bounds = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    items = np.array([item for row in rows for item in row], np.int64)
    return item_sets(bounds, items, 6, np.ones(items.size))


def of(starts: list[int], ends: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.array(starts, np.int64), np.array(ends, np.int64)


def test_without_an_index_every_row_in_range_is_a_comparison() -> None:
    probing = packed([[0], [0, 1], [2]])
    for matcher in (Bitsets(Overlap(1)), Weighted(InnerProduct(1.0))):
        cost = probe_cost(matcher.prepare(packed(STORED)), probing, *of([0, 3, 9], [12, 7, 2]))
        assert cost.tolist() == [12, 4, 0]


def test_lists_in_time_order_are_read_only_within_the_range() -> None:
    prepared = InvertedLists(Overlap(1)).prepare(packed(STORED))
    # Items 1 and 2 lie at 0 2 4 6 8 10 and at 0 3 6 9: two lists looked up, and what of them lies in range.
    cost = probe_cost(prepared, packed([[1, 2]] * 4), *of([0, 3, 1, 5], [12, 7, 2, 5]))
    assert cost.tolist() == [2 + 6 + 4, 2 + 2 + 2, 2, 0]


def test_lists_in_identifier_order_are_read_whole() -> None:
    prepared = InvertedLists(Overlap(1), "identifier").prepare(packed(STORED))
    assert probe_cost(prepared, packed([[1, 2]] * 3), *of([0, 3, 5], [12, 7, 5])).tolist() == [12, 12, 0]
    assert np.diff(prepared.entries[: prepared.bounds[1]]).min() < 0


def test_a_single_value_looks_up_one_list_and_reads_its_matches_only() -> None:
    values = np.random.default_rng(3).integers(0, 50, 300)
    stored = InvertedLists(Overlap(1)).prepare(item_sets(np.arange(301), values, 50))
    probing = item_sets(np.arange(51), np.arange(50), 50)
    assert probe_cost(stored, probing, np.full(50, 20), np.full(50, 280)).sum() == 260 + 50
