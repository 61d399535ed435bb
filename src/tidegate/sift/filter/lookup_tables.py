"""The tables of a lookup, derived from a tree of cuts; `lookup` has the formula that they are made for."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tidegate.sift.regions import Regions

#: More cells than this would not stay in a core's cache, and on Spark not in a plan.
CELLS_MAX = 2**20
#: Two bytes each: a few of these tables stay in the nearest cache.
BUCKETS_MAX = 2**12
#: Comparisons in a bucket. More of them would cost as much as walking the tree.
STEPS_MAX = 4


@dataclass(frozen=True, eq=False)
class AxisTable:
    """One axis: the arrays of the formula in the module docstring."""

    origin: float
    scale: float
    steps: int
    stride: int
    base: NDArray[np.int16]
    cuts: NDArray[np.float64]


def axis_table(cuts: NDArray[np.float64], stride: int) -> AxisTable | None:
    """The smallest table with the fewest comparisons; None where the cuts are too close for any."""
    origin = float(cuts[0]) if len(cuts) else 0.0
    span = float(cuts[-1]) - origin if len(cuts) else 0.0
    if not isfinite(span):
        return None
    for steps in range(1, STEPS_MAX + 1):
        buckets = 1
        while buckets <= BUCKETS_MAX:
            # One bucket takes all, and must not multiply an infinite coordinate by zero.
            scale = buckets / span if buckets > 1 and span > 0 else 1.0
            if not isfinite(scale):
                break
            held = np.clip((cuts - origin) * scale, 0.0, buckets - 1.0).astype(np.int64)
            # Cuts are in order, and so are their buckets.
            if (held[steps:] != held[:-steps]).all():
                base = np.searchsorted(held, np.arange(buckets)).astype(np.int16)
                return AxisTable(origin, scale, steps, stride, base, np.r_[cuts, np.full(steps, np.nan)])
            buckets *= 2
    return None


def cells_of(regions: Regions, cuts: list[NDArray[np.float64]], shape: tuple[int, ...]) -> NDArray[np.int32]:
    """The region of each cell: every cut halves a block of ranks, a region fills what is left to it."""
    table = np.empty(shape, np.int32)
    waiting = [(0 if len(regions.axis) else ~0, (0,) * len(shape), shape)]
    while waiting:
        node, low, high = waiting.pop()
        if node < 0:
            table[tuple(map(slice, low, high))] = ~node
            continue
        k = int(regions.axis[node])
        # Ranks up to the cut's place among the cuts are below it. A cut outside of its block halves nothing.
        above = int(np.searchsorted(cuts[k], regions.at[node])) + 1
        middle = min(max(above, low[k]), high[k])
        below, over = (int(child) for child in regions.children[node])
        waiting.append((below, low, (*high[:k], middle, *high[k + 1 :])))
        waiting.append((over, (*low[:k], middle, *low[k + 1 :]), high))
    return table.reshape(-1)
