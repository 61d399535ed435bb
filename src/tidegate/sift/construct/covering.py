"""Covering: which regions a box meets, and what share of a region's volume it covers.

A box walks down the tree of cuts and sees only the regions that it meets, so that many small boxes cost what
they touch, and not their number times that of regions. Everything is compiled, for loops over boxes.

- Boxes are cut off at the walls of the domain, walls included; a box outside of it meets nothing.
- A box may be a mere point on an axis (`x = 5.0` is no wider than the distance of two floats). It lies in the
  region that holds the point, and counts as a sliver of the domain, equally thick everywhere, so that such
  boxes compare among themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidegate.kernels import compiled

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Lower and upper coordinates.
Bounds = tuple["NDArray[np.float64]", "NDArray[np.float64]"]
#: Axis, cut and children of every inner node.
Tree = tuple["NDArray[np.int32]", "NDArray[np.float64]", "NDArray[np.int32]"]

#: A box thinner than this share of the domain is a point on that axis, and counts as this thick: far above
#: the distance of neighbouring floats, and still a number when 25 axes are multiplied.
SLIVER = 2.0**-40


@compiled
def clip(
    extents: Bounds, box: int, walls: Bounds, low: NDArray[np.float64], high: NDArray[np.float64]
) -> bool:
    """Put the part of the box that lies within the domain into `low` and `high`, if there is one."""
    for k in range(len(low)):
        begin, end = extents[0][box, k], extents[1][box, k]
        if not (begin < end and begin <= walls[1][k] and end > walls[0][k]):
            return False
        low[k], high[k] = max(begin, walls[0][k]), min(end, walls[1][k])
    return True


@compiled
def meet(
    tree: Tree,
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    touched: NDArray[np.int32],
    waiting: NDArray[np.int32],
) -> int:
    """Walk down the tree with a box, put the regions where it arrives into `met`, and say how many."""
    axis, at, children = tree
    if not len(axis):
        touched[0] = 0
        return 1
    found, depth = 0, 1
    waiting[0] = 0
    while depth:
        depth -= 1
        node = waiting[depth]
        k, cut = axis[node], at[node]
        for side in range(2):
            # A point at the cut is on its right, as a row is.
            if (low[k] < cut) if side == 0 else (cut < high[k] or cut <= low[k]):
                child = children[node, side]
                if child < 0:
                    touched[found] = ~child
                    found += 1
                else:
                    waiting[depth] = child
                    depth += 1
    return found


@compiled
def covered(
    low: NDArray[np.float64], high: NDArray[np.float64], bounds: Bounds, region: int, walls: Bounds
) -> float:
    """The share of a region's volume that a box covers; the box has met the region."""
    share = 1.0
    for k in range(len(low)):
        lower, upper = bounds[0][region, k], bounds[1][region, k]
        sliver = SLIVER * (walls[1][k] - walls[0][k])
        # A point was placed by the tree. Anything thicker may have come to a region without volume, behind a
        # cut that lies outside of its parent.
        overlap = sliver if high[k] - low[k] < sliver else min(high[k], upper) - max(low[k], lower)
        if overlap <= 0:
            return 0.0
        if overlap < upper - lower:
            share *= overlap / (upper - lower)
    return share
