from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tidegate.errors import FlowError, StateError
from tidegate.join.sets.bitset_pairs import Bitsets
from tidegate.join.sets.index_choice import choose
from tidegate.join.sets.inverted_lists import InvertedLists
from tidegate.join.sets.item_sets import ItemSets, item_sets
from tidegate.join.sets.pair_finders import PairFinder
from tidegate.join.sets.thresholds import InnerProduct, Jaccard, Overlap
from tidegate.join.sets.weighted_pairs import Weighted

#: Item 0 in every row, item 1 in every second, item 2 in every third …
STORED = [[item for item in range(6) if place % (item + 1) == 0] for place in range(12)]
WAYS: list[PairFinder] = [
    Bitsets(Overlap(2)),
    InvertedLists(Overlap(2)),
    InvertedLists(Overlap(2), "identifier"),
]


def packed(rows: list[list[int]], universe: int = 6, sizes: list[int] | None = None) -> ItemSets:
    bounds = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    items = np.array([item for row in rows for item in row], np.int64)
    return item_sets(bounds, items, universe, np.ones(items.size), None if sizes is None else np.array(sizes))


def of(starts: list[int], ends: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.array(starts, np.int64), np.array(ends, np.int64)


def test_a_single_value_finds_the_rows_that_have_it() -> None:
    values = np.random.default_rng(3).integers(0, 50, 300)
    stored = item_sets(np.arange(301), values, 50)
    probing = item_sets(np.arange(51), np.arange(50), 50)
    ranges = np.full(50, 20), np.full(50, 280)
    prepared = InvertedLists(Overlap(1)).prepare(stored)
    ((rows, places),) = prepared.find(probing, *ranges, 1000)
    assert np.array_equal(values[places], rows)
    assert rows.size == 260


@pytest.mark.parametrize("matcher", [Bitsets(Jaccard(0.5)), InvertedLists(Jaccard(0.5))], ids=str)
def test_jaccard_counts_items_that_no_stored_row_has(matcher: PairFinder) -> None:
    """Two of three items in common is enough; two of five, three of them unknown, is not."""
    stored = packed([[0, 1]])
    probing = packed([[0, 1], [0, 1]], sizes=[3, 5])
    chunks = list(matcher.prepare(stored).find(probing, *of([0, 0], [1, 1]), 10))
    assert [rows.tolist() for rows, _ in chunks] == [[0]]


@pytest.mark.parametrize("matcher", WAYS, ids=str)
@pytest.mark.parametrize(
    ("universe", "starts", "ends", "message"),
    [
        (6, [0, 0], [1, 1], "INTERNAL_ARRAYS_INCONSISTENT"),
        (6, [0], [13], "INTERNAL_POSITION_OUT_OF_BOUNDS"),
        (6, [-1], [3], "INTERNAL_POSITION_OUT_OF_BOUNDS"),
        (7, [0], [1], "INTERNAL_ARRAYS_INCONSISTENT"),
    ],
)
def test_what_does_not_fit_together_is_refused(
    matcher: PairFinder, universe: int, starts: list[int], ends: list[int], message: str
) -> None:
    prepared = matcher.prepare(packed(STORED))
    with pytest.raises(StateError, match=message):
        prepared.find(packed([[0]], universe), *of(starts, ends), 10)


def test_a_reversed_range_is_empty_wherever_it_lies() -> None:
    for matcher in WAYS:
        assert not list(matcher.prepare(packed(STORED)).find(packed([[0, 1]]), *of([99], [-5]), 10))


def test_a_chunk_of_nothing_is_refused() -> None:
    with pytest.raises(FlowError, match=r"INTERNAL_TUNING_INVALID.*at least one"):
        Bitsets(Overlap(1)).prepare(packed(STORED)).find(packed([[0]]), *of([0], [1]), 0)


def test_lists_in_another_order_are_refused() -> None:
    with pytest.raises(FlowError, match="INTERNAL_TUNING_INVALID"):
        InvertedLists(Overlap(1), "size")


@pytest.mark.parametrize("matcher", [Weighted(InnerProduct(1.0)), InvertedLists(InnerProduct(1.0))], ids=str)
def test_an_inner_product_of_sets_without_weights_is_refused(matcher: PairFinder) -> None:
    with pytest.raises(StateError, match=r"INTERNAL_ARRAYS_INCONSISTENT.*a weight for every item"):
        matcher.prepare(item_sets(np.array([0, 1]), np.array([0]), 1))


@pytest.mark.parametrize(
    ("universe", "expected"), [(40, Bitsets(Overlap(3))), (5000, InvertedLists(Overlap(3)))], ids=str
)
def test_many_items_get_lists_and_few_get_bitsets(universe: int, expected: PairFinder) -> None:
    random = np.random.default_rng(1)
    stored = item_sets(np.arange(0, 5001, 5), random.integers(0, universe, 5000), universe)
    assert choose(Overlap(3), stored) == expected


def test_what_is_too_wide_for_bitsets_gets_lists_even_where_every_row_has_the_same_item() -> None:
    stored = item_sets(np.arange(101), np.zeros(100, np.int64), 100_000)
    assert choose(Jaccard(0.5), stored) == InvertedLists(Jaccard(0.5))


def test_an_inner_product_gets_lists() -> None:
    assert choose(InnerProduct(0.5), packed(STORED)) == InvertedLists(InnerProduct(0.5))
