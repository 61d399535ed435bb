"""The query index finds exactly what comparing every row with every box finds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tidegate.sift.index.box_rows import AT_ONCE
from tidegate.sift.index.query_index import QueryIndex
from tidegate.sift.queries.axes import END, FIRST, NAN, NULL, Axis
from tidegate.sift.queries.boxes import Boxes

#: How long boxes are on an axis, of a hundred places: points, small ones, large ones.
LENGTHS = (1, 5, 60)
EDGES = np.array([FIRST, FIRST + 1, 0, NAN, NULL, END], np.int64)


def draw_boxes(seed: int, axes: int, count: int, named: float, several: bool) -> Boxes:
    """Boxes whose bounds often meet; each bounds an axis with probability `named`, at times from one side."""
    random = np.random.default_rng(seed)
    low = random.integers(-50, 50, (count, axes))
    high = low + random.integers(0, random.choice(LENGTHS, (1, axes)) + 1, (count, axes))
    low[random.random(low.shape) < 0.1] = FIRST
    high[random.random(low.shape) < 0.1] = END
    odd = random.random(low.shape) < 0.02
    low[odd], high[odd] = random.choice(EDGES[:-1], odd.sum()), random.choice(EDGES, odd.sum())
    free = random.random(low.shape) >= named
    low[free], high[free] = FIRST, END
    owner = random.permutation(3 * count)[:count].astype(np.int32)
    if several and axes:  # cut in two, boxes of one query do not overlap
        left_high, right_low = high.copy(), low.copy()
        left_high[:, 0] = right_low[:, 0] = np.clip(random.integers(-50, 50, count), low[:, 0], high[:, 0])
        low, high, owner = np.vstack([low, right_low]), np.vstack([left_high, high]), np.tile(owner, 2)
    return Boxes(tuple(Axis(f"c{k}") for k in range(axes)), low, high, owner, 3 * count)


def draw_rows(seed: int, axes: int, count: int) -> NDArray[np.int64]:
    random = np.random.default_rng([seed, 1])
    rows = random.integers(-55, 55, (axes, count))
    odd = random.random(rows.shape) < 0.05
    rows[odd] = random.choice(EDGES[1:-1], odd.sum())
    return rows


def compare_all(boxes: Boxes, rows: NDArray[np.int64]) -> list[tuple[int, int]]:
    holds = np.ones((rows.shape[1], len(boxes)), np.bool_)
    for k, place in enumerate(rows):
        holds &= (boxes.low[:, k] <= place[:, None]) & (place[:, None] < boxes.high[:, k])
    return sorted((int(row), int(boxes.owner[box])) for row, box in np.argwhere(holds))


BOXES = st.builds(
    draw_boxes,
    seed=st.integers(0, 2**32),
    axes=st.integers(0, 6),
    count=st.one_of(st.integers(0, 40), st.integers(300, 900)),
    named=st.sampled_from([1.0, 0.5, 0.2]),
    several=st.booleans(),
)


@given(BOXES, st.integers(0, 2**32), st.integers(0, 60))
def test_the_pairs_are_those_of_comparing_all(boxes: Boxes, seed: int, count: int) -> None:
    rows = draw_rows(seed, len(boxes.axes), count)
    row, query = QueryIndex.of(boxes).match(rows)
    assert list(zip(row.tolist(), query.tolist(), strict=True)) == compare_all(boxes, rows)


@given(BOXES, st.integers(0, 2**32), st.integers(AT_ONCE - 1, 3 * AT_ONCE))
def test_more_rows_than_boxes_find_the_same_pairs_as_each_row_alone(
    boxes: Boxes, seed: int, count: int
) -> None:
    """Cells with more rows than boxes are compared the other way round, so many rows at a time."""
    index, rows = QueryIndex.of(boxes), draw_rows(seed, len(boxes.axes), count)
    row, query = index.match(rows)
    alone = [index.match(rows[:, i : i + 1])[1].tolist() for i in range(0, count, 7)]
    assert [query[row == i].tolist() for i in range(0, count, 7)] == alone
    few = rows[:, :: max(1, count // 60)]
    found = list(zip(*(part.tolist() for part in index.match(few)), strict=True))
    assert found == compare_all(boxes, few)


@given(BOXES, st.integers(0, 2**32), st.integers(0, 60), st.integers(1, 3000))
def test_pieces_of_any_size_say_the_same(boxes: Boxes, seed: int, count: int, most: int) -> None:
    index, rows = QueryIndex.of(boxes), draw_rows(seed, len(boxes.axes), count)
    pieces = list(index.pieces(rows, most))
    assert all(piece.query.size <= most or len(piece.offsets) == 2 for piece in pieces)
    assert [piece.first for piece in pieces] == [0, *np.cumsum([piece.hits.size for piece in pieces])][:-1]
    found = [
        (r, q) for piece in pieces for r, q in zip(piece.row.tolist(), piece.query.tolist(), strict=True)
    ]
    row, query = index.match(rows)
    assert found == list(zip(row.tolist(), query.tolist(), strict=True))
    assert index.hits(rows).tolist() == np.bincount(row, minlength=count).tolist()
