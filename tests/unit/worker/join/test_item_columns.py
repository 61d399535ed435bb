from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tidegate.worker.join.item_columns import SetColumn, set_column


def rows_of(column: SetColumn) -> list[list[object]]:
    sets, names = column.sets, column.dictionary.to_pylist()
    parts = zip(sets.bounds[:-1], sets.bounds[1:], strict=True)
    return [[names[item] for item in sets.items[begin:end]] for begin, end in parts]


LISTS = pa.array([[3, 1, 1], None, [], [5, None, 3]], pa.list_(pa.int64()))


@pytest.mark.parametrize(
    ("array", "rows"),
    [
        (LISTS, [[1, 3], [], [], [3, 5]]),
        (LISTS.slice(1), [[], [], [3, 5]]),
        (LISTS.take(pa.array([3, 0])), [[3, 5], [1, 3]]),
        (pa.array([["b", "a"], ["c"]]), [["a", "b"], ["c"]]),
    ],
)
def test_repeats_nulls_and_slices_leave_sets_in_order(array: pa.Array, rows: list[list[object]]) -> None:
    assert rows_of(set_column(array, weighted=False)) == rows


def test_maps_and_lists_of_structs_carry_weights() -> None:
    maps = pa.array(
        [[("a", 1.0), ("b", 2.0)], None, [("c", None), ("a", 3.0)]], pa.map_(pa.string(), pa.float64())
    )
    structs = pa.array(
        [[{"i": "a", "w": 1}, {"i": "b", "w": 2}], None, [{"i": "c", "w": None}, {"i": "a", "w": 3}]]
    )
    for array in (maps, structs):
        column = set_column(array, weighted=True)
        assert rows_of(column) == [["a", "b"], [], ["a"]]
        assert column.sets.weights is not None
        assert column.sets.weights.tolist() == [1.0, 2.0, 3.0]


def test_items_that_the_other_side_does_not_know_are_left_out_but_counted() -> None:
    mine = set_column(pa.array([[1, 7, 9], [9], [2]]), weighted=False)
    other = set_column(pa.array([[9, 1], [4]]), weighted=False)
    sets = mine.in_terms_of(other, np.array([0, 2]))
    assert sets.bounds.tolist() == [0, 2, 2]
    assert sets.items.tolist() == [0, 2]
    assert sets.sizes.tolist() == [3, 1]
    assert sets.universe == 3


def test_the_same_items_need_no_new_codes() -> None:
    mine = set_column(pa.array([[1, 2], [2, 3]]), weighted=False)
    other = set_column(pa.array([[3], [2, 1]]), weighted=False)
    sets = mine.in_terms_of(other, np.array([1]))
    assert sets.items.tolist() == [1, 2]
    assert mine.in_terms_of(other, np.array([0, 1])) is mine.sets
