"""Covering: the regions that a box intersects, and the share of a region's volume that it covers.

A box descends the tree of cuts and visits only the regions that it intersects. Many small boxes thus cost the
regions they touch, not the number of boxes times the number of regions. Everything is compiled, for loops
over boxes.

- Boxes are clipped to the domain, walls included; a box outside of it intersects nothing.
- A box may be a point on an axis (`x = 5.0` is no wider than the distance of two floats). It lies in the
  region that contains the point and counts as a thin slice of the domain, of equal thickness everywhere, so
  that such boxes are comparable.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegate.kernels import compiled

#: Lower and upper coordinates.
Bounds = tuple[NDArray[np.float64], NDArray[np.float64]]
#: Axis, cut and children of every inner node.
Tree = tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.int32]]

#: A box thinner than this share of the domain is a point on that axis and counts as this thick: far above the
#: distance of neighbouring floats, and still representable when 25 axes are multiplied.
SLIVER = 2.0**-40


@compiled
def clip(
    extents: Bounds, box: int, walls: Bounds, low: NDArray[np.float64], high: NDArray[np.float64]
) -> bool:
    """Write the part of the box inside the domain to `low` and `high`; False if there is none."""
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
    """Descend the tree with a box, write the regions it intersects to `touched`, and return their number."""
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
            # A point at the cut is on its right, like a row.
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
    """The share of a region's volume that a box covers; the box must intersect the region."""
    share = 1.0
    for k in range(len(low)):
        lower, upper = bounds[0][region, k], bounds[1][region, k]
        sliver = SLIVER * (walls[1][k] - walls[0][k])
        # The tree has placed a point. Anything thicker may have reached a region without volume, behind a cut
        # that lies outside of its parent.
        overlap = sliver if high[k] - low[k] < sliver else min(high[k], upper) - max(low[k], lower)
        if overlap <= 0:
            return 0.0
        if overlap < upper - lower:
            share *= overlap / (upper - lower)
    return share
