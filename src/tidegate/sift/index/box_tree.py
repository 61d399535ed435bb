"""Box tree: cuts space into cells so small that the boxes of a cell are nearly the boxes of its rows.

A k-d tree over boxes. An inner node sends a row left where its place on one axis is below the cut, else
right; a box that the cut crosses goes to both sides. A cell lists the boxes that intersect it, lowest query
first. Some of them *cover* it: these contain every row of the cell. The others are *loose*, and only
comparisons with them can fail, so they alone decide:

    where to cut     at the middle of the bounds inside the cell, on the axis that leaves the fewest loose
                     boxes: cells are small where queries are dense, at any scale
    when to stop     few loose boxes are left, absolutely or relative to the covering ones (which a row finds
                     anyway), or no axis separates them, or the tree has reached its size limit

Nodes are cut level by level, so that the size limit affects all parts of the tree evenly. Cells keep copies
of the bounds, axis by axis, adjacent in memory, to compare many at a time.

Boxes are `low` and `high` (boxes, axes), and a cell extends from `floor` to `roof` (one place per axis each).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tidegate.kernels import compiled
from tidegate.sift.queries.axes import END, FIRST

if TYPE_CHECKING:
    Places: TypeAlias = NDArray[np.int64]
    Numbers: TypeAlias = NDArray[np.int32]
    Nodes: TypeAlias = tuple[Numbers, Places, Numbers, Places, Numbers, NDArray[np.bool_], Numbers]


#: A cell with at most this many loose boxes is not cut: comparing them costs no more than another level.
FEW = 32
#: Nor is a cell whose loose boxes are at most this part of the covering ones.
LOOSE_PART = 0.5
#: A cut must leave fewer loose boxes in both halves together than this many times those of the whole.
WORTH = 1.8
#: Most boxes listed by all cells together, per box of the tree; bounds memory and build time.
ROOM = 8
#: A cut is judged by at most about this many boxes, evenly taken.
JUDGES = 256


@compiled
def _covers(low: Places, high: Places, box: int, floor: Places, roof: Places) -> bool:
    covers = True
    for k in range(floor.size):
        covers &= (low[box, k] <= floor[k]) & (high[box, k] >= roof[k])
    return covers


@compiled
def _hand_down(
    low: Places, high: Places, boxes: Numbers, k: int, floor: Places, roof: Places, into: Numbers
) -> tuple[int, int]:
    """Write the boxes that intersect the cell on axis k; return their number and that of the loose ones."""
    count = loose = 0
    for box in boxes:
        if low[box, k] < roof[k] and high[box, k] > floor[k]:
            into[count] = box
            count += 1
            loose += not _covers(low, high, box, floor, roof)
    return count, loose


@compiled
def _middle(
    low: Places, high: Places, boxes: Numbers, k: int, floor: Places, roof: Places
) -> tuple[int, bool]:
    """The middle of the bounds inside the cell on axis k, and whether there is any."""
    bounds = np.empty(2 * boxes.size, np.int64)
    inside = 0
    for box in boxes:
        if low[box, k] > floor[k]:
            bounds[inside] = low[box, k]
            inside += 1
        if high[box, k] < roof[k]:
            bounds[inside] = high[box, k]
            inside += 1
    if inside == 0:
        return 0, False
    middle: int = np.partition(bounds[:inside], inside // 2)[inside // 2]
    return middle, True


@compiled
def _cut(low: Places, high: Places, boxes: Numbers, floor: Places, roof: Places) -> tuple[int, int]:
    """The axis to cut and the place; axis -1 if no cut is worth it."""
    judges = boxes[:: (boxes.size - 1) // JUDGES + 1].copy()
    reached = np.empty(judges.size, np.int32)
    best, best_at = -1, 0
    fewest = WORTH * _hand_down(low, high, judges, 0, floor, roof, reached)[1]
    for k in range(floor.size):
        at, found = _middle(low, high, judges, k, floor, roof)
        if found:
            left_roof, right_floor = roof.copy(), floor.copy()
            left_roof[k] = right_floor[k] = at
            loose = _hand_down(low, high, judges, k, floor, left_roof, reached)[1]
            loose += _hand_down(low, high, judges, k, right_floor, roof, reached)[1]
            if loose < fewest:
                best, best_at, fewest = k, at, loose
    return best, best_at


@compiled
def _with_room(lists: Numbers, used: int, more: int) -> Numbers:
    """The same lists, in a larger array if there is no room for `more`."""
    if used + more <= lists.size:
        return lists
    larger = np.empty(2 * lists.size + more, np.int32)
    larger[:used] = lists[:used]
    return larger


@compiled
def grow(low: Places, high: Places) -> Nodes:
    """The arrays `axis` to `checked` of a `BoxTree`, and the boxes of all cells, cell by cell."""
    count, axes = low.shape
    most = 2 * count + 1
    axis, at, following = np.full(most, -1, np.int32), np.zeros(most, np.int64), np.zeros(most, np.int32)
    first, size, loose = np.zeros(most, np.int64), np.zeros(most, np.int32), np.zeros(most, np.int32)
    floor, roof = np.full((most, axes), FIRST, np.int64), np.full((most, axes), END, np.int64)
    lists = np.arange(count).astype(np.int32)
    nodes, used, listed = 1, count, count
    # All boxes count as loose before the first cut; without axes there is nothing to cut.
    size[0], loose[0] = count, count if axes else 0
    node = 0
    while node < nodes and nodes + 2 <= most and listed < ROOM * count:
        boxes = lists[first[node] : first[node] + size[node]]
        k = -1
        if loose[node] > max(FEW, LOOSE_PART * (size[node] - loose[node])):
            k, at[node] = _cut(low, high, boxes, floor[node], roof[node])
        if k >= 0:
            axis[node], following[node] = k, nodes
            lists = _with_room(lists, used, 2 * boxes.size)
            for child in range(nodes, nodes + 2):
                floor[child], roof[child] = floor[node], roof[node]
                if child == nodes:
                    roof[child, k] = at[node]
                else:
                    floor[child, k] = at[node]
                size[child], loose[child] = _hand_down(
                    low, high, boxes, k, floor[child], roof[child], lists[used:]
                )
                first[child] = used
                used += size[child]
                listed += size[child]
            listed -= boxes.size
            nodes += 2
        node += 1
    kept, checked = _keep_cells(low, high, axis[:nodes], first, size, floor, roof, lists, listed)
    return (
        axis[:nodes].copy(),
        at[:nodes].copy(),
        following[:nodes].copy(),
        first[:nodes].copy(),
        size[:nodes].copy(),
        checked,
        kept,
    )


@compiled
def _keep_cells(
    low: Places,
    high: Places,
    axis: Numbers,
    first: Places,
    size: Numbers,
    floor: Places,
    roof: Places,
    lists: Numbers,
    listed: int,
) -> tuple[Numbers, NDArray[np.bool_]]:
    """The lists of cells only (`first` and `size` are updated), and the axes to check in each cell."""
    axes = low.shape[1]
    kept, checked = np.empty(listed, np.int32), np.zeros((axis.size, axes), np.bool_)
    used = 0
    for node in range(axis.size):
        boxes = lists[first[node] : first[node] + size[node]]
        first[node] = used
        if axis[node] >= 0:
            size[node] = 0
            continue
        for box in boxes:
            kept[used] = box
            used += 1
            for k in range(axes):
                checked[node, k] |= (low[box, k] > floor[node, k]) | (high[box, k] < roof[node, k])
    return kept, checked


class BoxTree(NamedTuple):
    """Node i cuts `axis[i]` at place `at[i]` and has the children `next[i]` and `next[i]` + 1, or is a cell.

    A cell (axis[i] = -1) lists the boxes first[i] … first[i] + size[i] - 1 of `low` and `width`, which are
    (axes, boxes), and of `owner`. On axis k all of them cover it, unless checked[i, k].
    """

    axis: NDArray[np.int32]
    at: NDArray[np.int64]
    next: NDArray[np.int32]
    first: NDArray[np.int64]
    size: NDArray[np.int32]
    checked: NDArray[np.bool_]
    low: NDArray[np.int64]
    width: NDArray[np.uint64]
    owner: NDArray[np.int32]


def box_tree(low: NDArray[np.int64], high: NDArray[np.int64], owner: NDArray[np.int32]) -> BoxTree:
    """The tree of non-empty boxes whose owners ascend; `low` and `high` are (boxes, axes)."""
    axis, at, following, first, size, checked, boxes = grow(low, high)
    of_cell = np.ascontiguousarray(low.T[:, boxes])
    # Modulo 2⁶⁴ even the widest box, from FIRST to END, has the right width, and low ≤ p < high becomes
    # a single unsigned comparison: p - low < width.
    width = (high.T[:, boxes] - of_cell).view(np.uint64)
    return BoxTree(axis, at, following, first, size, checked, of_cell, width, owner[boxes])
