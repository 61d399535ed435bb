"""Finds the boxes of a tree that contain a row: the compiled loops behind the query index.

Three steps over a block of rows, each local to one part of memory. First, every row descends to its cell.
Then rows are processed cell by cell, so that the bounds of a cell are in the cache for all rows but the
first (with 100,000 queries this alone doubles the speed). Of the rows and the boxes of a cell, the more
numerous are compared many at a time, the others one by one (with 1,000 queries this doubles the speed).
Last, the results are brought back into the order of rows; where several trees found something, their
ascending runs are merged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidegate.kernels import compiled

if TYPE_CHECKING:
    from tidegate.sift.index.box_tree import BoxTree

#: Rows of a cell that are compared together: their places fit into the L1 cache.
AT_ONCE = 512
#: Axes compared for all boxes of a cell, many at a time; the others only for the remaining boxes, one by one.
TOGETHER = 2


@compiled
def cells_of(tree: BoxTree, places: NDArray[np.int64]) -> NDArray[np.int32]:
    """The cell of every row; places are (axes, rows)."""
    axis, at, following = tree.axis, tree.at, tree.next
    cells = np.empty(places.shape[1], np.int32)
    for row in range(cells.size):
        node = 0
        while axis[node] >= 0:
            node = following[node] + (places[axis[node], row] >= at[node])
        cells[row] = node
    return cells


@compiled
def _by_cell(cells: NDArray[np.int32], nodes: int) -> NDArray[np.int32]:
    """Rows ordered by cell: a counting sort."""
    slot = np.zeros(nodes + 1, np.int32)
    for cell in cells:
        slot[cell + 1] += 1
    for node in range(nodes):
        slot[node + 1] += slot[node]
    order = np.empty(cells.size, np.int32)
    for row in range(cells.size):
        order[slot[cells[row]]] = row
        slot[cells[row]] += 1
    return order


@compiled
def find(
    tree: BoxTree,
    places: NDArray[np.int64],
    row_first: int,
    cells: NDArray[np.int32],
    found: NDArray[np.int32],
    used: int,
    begin: NDArray[np.int64],
    count: NDArray[np.int32],
) -> int:
    """Write the queries of rows row_first … to `found`, those of row r from begin[r] on, ascending.

    `cells` are the cells of these rows; `found` has room for all their boxes; returns its new end.
    """
    holds = np.empty(max(int(tree.size.max()), AT_ONCE), np.uint8)
    order = _by_cell(cells, tree.axis.size)
    start = 0
    while start < order.size:
        cell, end = cells[order[start]], start + 1
        while end < min(order.size, start + AT_ONCE) and cells[order[end]] == cell:
            end += 1
        rows = order[start:end]
        if rows.size > tree.size[cell]:
            used = _box_by_box(tree, places, row_first, cell, rows, holds, found, used, begin, count)
        else:
            used = _row_by_row(tree, places, row_first, cell, rows, holds, found, used, begin, count)
        start = end
    return used


@compiled
def _row_by_row(
    tree: BoxTree,
    places: NDArray[np.int64],
    row_first: int,
    cell: int,
    rows: NDArray[np.int32],
    of_largest_cell: NDArray[np.uint8],
    found: NDArray[np.int32],
    used: int,
    begin: NDArray[np.int64],
    count: NDArray[np.int32],
) -> int:
    """Compare each row of a cell with all its boxes at once. Loops in functions would be half as fast."""
    axes = places.shape[0]
    low, width, checked, owner = tree.low, tree.width, tree.checked, tree.owner
    first, size = tree.first[cell], np.int64(tree.size[cell])
    holds = of_largest_cell[:size]
    for row in rows:
        mine = found[used : used + size]
        holds[:] = 1
        k = together = 0
        while k < axes and together < TOGETHER:
            if checked[cell, k]:
                place = places[k, row_first + row]
                lower, wide = low[k, first : first + size], width[k, first : first + size]
                for box in range(size):
                    holds[box] &= np.uint64(place - lower[box]) < wide[box]
                together += 1
            k += 1
        # Written without a branch and kept by advancing: a branch per box would be mispredicted too often.
        left = 0
        for box in range(size):
            mine[left] = first + box
            left += holds[box]
        while k < axes:
            if checked[cell, k]:
                place, kept = places[k, row_first + row], 0
                for i in range(left):
                    box = mine[i]
                    mine[kept] = box
                    kept += np.uint64(place - low[k, box]) < width[k, box]
                left = kept
            k += 1
        for i in range(left):
            mine[i] = owner[mine[i]]
        begin[row], count[row] = used, left
        used += left
    return used


@compiled
def _box_by_box(
    tree: BoxTree,
    places: NDArray[np.int64],
    row_first: int,
    cell: int,
    rows: NDArray[np.int32],
    holds: NDArray[np.uint8],
    found: NDArray[np.int32],
    used: int,
    begin: NDArray[np.int64],
    count: NDArray[np.int32],
) -> int:
    """Compare each box of a cell with all its rows at once; a row may write as many entries as boxes."""
    size = int(tree.size[cell])
    axes = np.flatnonzero(tree.checked[cell])
    here = np.empty((axes.size, rows.size), np.int64)
    for k in range(axes.size):
        for i in range(rows.size):
            here[k, i] = places[axes[k], row_first + rows[i]]
    end, hit = np.empty(rows.size, np.int64), np.empty(rows.size, np.int32)
    for i in range(rows.size):
        begin[rows[i]] = end[i] = used + i * size
    for box in range(tree.first[cell], tree.first[cell] + size):
        for i in range(rows.size):
            holds[i] = 1
        for k in range(axes.size):
            lower, wide = tree.low[axes[k], box], tree.width[axes[k], box]
            for i in range(rows.size):
                holds[i] &= np.uint64(here[k, i] - lower) < wide
        hits = 0
        for i in range(rows.size):
            hit[hits] = i
            hits += holds[i]
        for i in hit[:hits]:
            found[end[i]] = tree.owner[box]
            end[i] += 1
    for i in range(rows.size):
        count[rows[i]] = end[i] - begin[rows[i]]
    return used + rows.size * size


@compiled
def in_row_order(
    found: NDArray[np.int32], begin: NDArray[np.int64], count: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Offsets and queries, row by row and ascending; begin and count are (trees, rows)."""
    trees, rows = begin.shape
    offsets = np.zeros(rows + 1, np.int32)
    for row in range(rows):
        offsets[row + 1] = offsets[row] + count[:, row].sum()
    queries = np.empty(offsets[rows], np.int32)
    for row in range(rows):
        start, end = offsets[row], offsets[row] + count[0, row]
        for i in range(count[0, row]):
            queries[start + i] = found[begin[0, row] + i]
        for tree in range(1, trees):
            # Merged from the back, in place: existing entries move up only as far as necessary.
            stands, run = end - 1, begin[tree, row] + count[tree, row] - 1
            end += count[tree, row]
            free = end - 1
            while run >= begin[tree, row]:
                if stands >= start and queries[stands] > found[run]:
                    queries[free] = queries[stands]
                    stands -= 1
                else:
                    queries[free] = found[run]
                    run -= 1
                free -= 1
    return offsets, queries
