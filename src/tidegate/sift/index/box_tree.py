"""Box tree: space cut into cells so small that the boxes of a cell are nearly the boxes of its rows.

A k-d tree over boxes. An inner node sends a row left where its place on one axis is below the cut, else
right; a box that the cut crosses goes to both sides. A cell lists the boxes that reach into it, lowest query
first. Some of them *cover* it: these hold every row of the cell. The others are *loose*, and only they can be
looked at in vain, so they alone decide:

    where to cut     at the middle of the bounds inside the cell, on the axis that leaves the fewest loose
                     boxes: cells get small where queries are dense, whatever their scale
    when to stop     few loose boxes are left, absolutely or beside the covering ones (a row pays for what it
                     finds), or no axis parts them, or the tree is as large as it may be

Nodes are cut level by level, so that when the room runs out, it is missing everywhere a little. Cells keep
copies of the bounds, axis by axis, side by side in memory, to compare many at a time. `box_cuts.py` cuts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidegate.sift.index.box_cuts import grow

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
    # Modulo 2⁶⁴ also the widest box, from FIRST to END, has the right width, and low ≤ p < high becomes
    # a single comparison: p - low < width, without signs.
    width = (high.T[:, boxes] - of_cell).view(np.uint64)
    return BoxTree(axis, at, following, first, size, checked, of_cell, width, owner[boxes])
