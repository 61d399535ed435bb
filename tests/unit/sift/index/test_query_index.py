from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate.sift.index.box_tree import ROOM
from tidegate.sift.index.query_index import QueryIndex
from tidegate.sift.queries.axes import END, FIRST, NAN, NULL, Axis, places
from tidegate.sift.queries.boxes import Boxes


def boxes(low: object, high: object, owner: object = None) -> Boxes:
    lower, upper = np.array(low, np.int64), np.array(high, np.int64)
    owners = np.arange(len(lower), dtype=np.int32) if owner is None else np.array(owner, np.int32)
    axes = tuple(Axis(f"c{k}") for k in range(lower.shape[1]))
    return Boxes(axes, lower, upper, owners, int(owners.max(initial=-1)) + 1)


def pairs(index: QueryIndex, rows: object) -> list[tuple[int, int]]:
    row, query = index.match(np.array(rows, np.int64))
    return list(zip(row.tolist(), query.tolist(), strict=True))


def stacked(count: int, axes: int = 2) -> Boxes:
    """Small boxes, dense in the middle."""
    random = np.random.default_rng(0)
    centre = 0.5 + 0.05 * random.normal(size=(count, axes))
    side = random.uniform(0.005, 0.01, (count, axes)) / 2
    return boxes(
        *(places(bound.ravel()).reshape(count, axes) for bound in (centre - side, centre + side)),
    )


def test_a_row_at_the_edge_of_touching_boxes_belongs_to_the_upper_one() -> None:
    index = QueryIndex.of(boxes([[0], [5]], [[5], [9]]))
    assert pairs(index, [[-1, 0, 4, 5, 8, 9]]) == [(1, 0), (2, 0), (3, 1), (4, 1)]


def test_pairs_come_by_row_and_then_by_query() -> None:
    index = QueryIndex.of(boxes([[0], [0], [0]], [[9], [5], [9]], owner=[7, 3, 1]))
    assert pairs(index, [[6, 2]]) == [(0, 1), (0, 7), (1, 1), (1, 3), (1, 7)]


def test_a_query_of_several_boxes_is_found_once() -> None:
    index = QueryIndex.of(boxes([[0, 0], [5, 0], [2, 0]], [[5, 9], [9, 4], [8, 9]], owner=[0, 0, 1]))
    assert pairs(index, [[4, 6, 6], [3, 3, 5]]) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 1)]


def test_nan_and_null_are_found_by_queries_that_reach_them() -> None:
    number = int(places(np.array([3.0]))[0])
    free, above, numbers, nan = (FIRST, END), (number, NULL), (number, NAN), (NAN, NULL)
    low, high = np.array([free, above, numbers, nan]).T[:, :, None]
    index = QueryIndex.of(boxes(low, high))
    assert pairs(index, [[number, NAN, NULL]]) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 3), (2, 0)]


def test_an_empty_box_is_never_found() -> None:
    index = QueryIndex.of(boxes([[3, 0], [0, 0]], [[3, 9], [9, 9]]))
    assert pairs(index, [[3], [3]]) == [(0, 1)]


@pytest.mark.parametrize(("queries", "rows"), [(0, 3), (3, 0), (0, 0)])
def test_without_queries_or_without_rows_there_are_no_pairs(queries: int, rows: int) -> None:
    index = QueryIndex.of(boxes(np.zeros((queries, 2)), np.ones((queries, 2))))
    given = np.zeros((2, rows), np.int64)
    assert [found.size for found in index.match(given)] == [0, 0]
    assert index.hits(given[:, :0]).tolist() == []
    assert QueryIndex.of(boxes(np.zeros((0, 2)), np.ones((0, 2)))).hits(given).tolist() == [0] * rows


def test_without_axes_every_query_holds_every_row() -> None:
    index = QueryIndex.of(boxes(np.zeros((2, 0)), np.zeros((2, 0))))
    assert pairs(index, np.zeros((0, 2))) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_an_index_can_be_handed_to_another_process() -> None:
    queries = stacked(1000)
    index, rows = QueryIndex.of(queries), queries.low.T.copy()
    again = pickle.loads(pickle.dumps(index))
    assert [found.tolist() for found in again.match(rows)] == [found.tolist() for found in index.match(rows)]


def test_rows_may_be_a_view_of_a_larger_array() -> None:
    queries = stacked(1000)
    index, rows = QueryIndex.of(queries), queries.low.T.copy()
    wide = np.repeat(rows, 2, axis=1)
    assert index.hits(wide[:, ::2]).tolist() == index.hits(rows).tolist()


@pytest.mark.parametrize("rows", [np.zeros((3, 5), np.int64), np.zeros((2, 5)), np.zeros(5, np.int64)])
def test_rows_of_another_space_are_refused(rows: NDArray[np.int64]) -> None:
    with pytest.raises(FlowError, match=r"INTERNAL_ARRAYS_INCONSISTENT.*on 2 axes.*Got: an array of"):
        QueryIndex.of(stacked(10)).match(rows)


def test_stacked_queries_get_small_cells_in_bounded_room() -> None:
    queries = stacked(20_000)
    index = QueryIndex.of(queries)
    (tree,) = index.trees
    assert len(tree.owner) <= (ROOM + 1) * len(queries)
    assert np.median(tree.size[tree.axis < 0]) < 5 * np.median(index.hits(queries.low.T))


def test_one_sided_queries_are_not_cut_finer_than_what_they_find() -> None:
    low = np.random.default_rng(0).permutation(5000)[:, None]
    (tree,) = QueryIndex.of(boxes(low, np.full_like(low, END))).trees
    assert 1 < np.count_nonzero(tree.axis < 0)
    assert len(tree.owner) < 6 * 5000


def test_equal_boxes_need_no_cells_beyond_their_own() -> None:
    (tree,) = QueryIndex.of(boxes(np.full((5000, 2), 3), np.full((5000, 2), 7))).trees
    inside = int(tree.size.argmax())
    assert tree.size.tolist().count(5000) == 1
    assert not tree.checked[inside].any()


def test_queries_that_name_the_same_columns_share_a_tree() -> None:
    assert len(QueryIndex.of(stacked(5000, axes=3)).trees) == 1


def test_queries_that_name_different_columns_have_trees_of_their_own() -> None:
    random = np.random.default_rng(0)
    low, named = np.full((3000, 6), FIRST), random.integers(0, 6, 3000)
    high, value = np.full((3000, 6), END), random.integers(0, 100, 3000)
    low[np.arange(3000), named], high[np.arange(3000), named] = value, value + 1
    index = QueryIndex.of(boxes(low, high))
    assert len(index.trees) == 6
    assert all(len(tree.owner) == np.unique(tree.owner).size for tree in index.trees)
