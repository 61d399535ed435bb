from __future__ import annotations

from math import nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import StateError
from tidegate.join.sets.item_sets import ItemSets, item_sets


def made(rows: list[list[int]], universe: int = 1000, **given: list[float] | None) -> ItemSets:
    bounds = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    weights = given.get("weights")
    return item_sets(
        bounds,
        np.array([item for row in rows for item in row], np.int64),
        universe,
        None if weights is None else np.array(weights),
    )


def as_lists(sets: ItemSets) -> list[list[int]]:
    return [sets.items[a:b].tolist() for a, b in zip(sets.bounds[:-1], sets.bounds[1:], strict=True)]


@given(st.lists(st.lists(st.integers(0, 40), max_size=50), max_size=8))
def test_items_ascend_within_their_row_and_none_is_there_twice(rows: list[list[int]]) -> None:
    assert as_lists(made(rows)) == [sorted(set(row)) for row in rows]


@pytest.mark.parametrize("length", [3, 90])
def test_weights_of_an_item_that_repeats_are_added_as_they_came(length: int) -> None:
    items, weights = ([5, 1, 5] * length)[:length], [10.0**k for k in range(-length // 2, length)][:length]
    sets = made([items], weights=weights)
    expected = {1: 0.0, 5: 0.0}
    for item, weight in zip(items, weights, strict=True):
        expected[item] += weight
    assert sets.weights is not None
    assert dict(zip(sets.items.tolist(), sets.weights.tolist(), strict=True)) == expected


def test_arrays_given_stay_as_they_are() -> None:
    items, weights = np.array([3, 1, 3]), np.array([1.0, nan, 2.0])
    item_sets(np.array([0, 3]), items, 4, weights)
    assert items.tolist() == [3, 1, 3]
    assert weights.tolist()[::2] == [1.0, 2.0]


def test_rows_are_taken_in_the_order_asked_for() -> None:
    sets = made([[1, 2], [], [7], [3, 4, 5]], weights=[1, 2, 7, 3, 4, 5])
    taken = sets.take(np.array([3, 1, 0, 0]))
    assert as_lists(taken) == [[3, 4, 5], [], [1, 2], [1, 2]]
    assert taken.weights is not None
    assert taken.weights.tolist() == [3, 4, 5, 1, 2, 1, 2]
    assert taken.sizes.tolist() == [3, 0, 2, 2]


def test_true_sizes_go_with_their_rows() -> None:
    sets = item_sets(np.array([0, 1, 3]), np.array([0, 1, 2]), 3, sizes=np.array([4, 2]))
    assert sets.take(np.array([1, 0])).sizes.tolist() == [2, 4]


@pytest.mark.parametrize(
    ("bounds", "items", "weights", "sizes", "message"),
    [
        ([0, 2], [1], None, None, "INTERNAL_ARRAYS_INCONSISTENT"),
        ([1, 1], [1], None, None, "INTERNAL_ARRAYS_INCONSISTENT"),
        ([0, 2, 1, 3], [1, 2, 3], None, None, "INTERNAL_ARRAYS_INCONSISTENT"),
        ([], [], None, None, "INTERNAL_ARRAYS_INCONSISTENT"),
        ([0, 1], [1], [1.0, 2.0], None, "INTERNAL_ARRAYS_INCONSISTENT"),
        ([0, 1], [9], None, None, "INTERNAL_POSITION_OUT_OF_BOUNDS"),
        ([0, 1], [-1], None, None, "INTERNAL_POSITION_OUT_OF_BOUNDS"),
        ([0, 2], [1, 2], None, [1], "INTERNAL_ARRAYS_INCONSISTENT.*sizes"),
        ([0, 2], [1, 2], None, [2, 2], "INTERNAL_ARRAYS_INCONSISTENT.*sizes"),
    ],
)
def test_what_compiled_loops_would_trip_over_is_refused(
    bounds: list[int],
    items: list[int],
    weights: list[float] | None,
    sizes: list[int] | None,
    message: str,
) -> None:
    with pytest.raises(StateError, match=message):
        item_sets(
            np.array(bounds, np.int64),
            np.array(items, np.int64),
            9,
            None if weights is None else np.array(weights),
            None if sizes is None else np.array(sizes),
        )


def test_a_row_out_of_order_is_refused() -> None:
    with pytest.raises(StateError, match=r"INTERNAL_POSITION_OUT_OF_BOUNDS.*not ascending"):
        ItemSets(np.array([0, 2]), np.array([2, 1]), None, 3)
