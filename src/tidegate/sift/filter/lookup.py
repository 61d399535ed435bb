"""`Lookup`: the region of a row in constant time per axis, for any tree of cuts.

Paper: sifters, section II-D asks for a fast lookup, section V finds a region by O(n lg l) comparisons. Here
each axis has its distinct cuts in order, and a table of equal-width buckets over the span of these cuts;
each bucket contains at most `steps` cuts (nearly always one). For a coordinate x of an axis

    bucket = truncate(min(max((x - origin) * scale, 0.0), buckets - 1))
    rank   = base[bucket] + (x >= cuts[base[bucket]]) + … + (x >= cuts[base[bucket] + steps - 1])

where rank is the number of cuts at or below x, `cuts` is padded by `steps` NaN, and base[bucket] is the
number of cuts in lower buckets. The region is cells[Σ rank × stride over the axes].

Guarantee: the same as walking the tree, for every coordinate, also far outside of the domain and at ±inf.
Rounding is harmless: subtracting, scaling and truncating never change the order of two coordinates, and
cuts are assigned to buckets by the same formula. So a cut in a lower bucket is below x, one in a higher
bucket above it, and the comparisons decide the rest. The formula is plain float64 and integer arithmetic,
without anything that a compiler or SQL could do differently; Spark repeats it bit by bit over array
literals.

NaN (null) and +inf are above every cut, also above a cut at infinity, which `cuts` leaves out: their rank is
`top`, the number of all cuts.

Where there would be more than 2^20 cells (many axes), or cuts are so close that buckets would be too many,
`exact_walk` is set and the tree is walked. A lookup is derived from the regions, never stored or sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, prod

import numpy as np
from numpy.typing import NDArray

from tidegate.kernels import compiled
from tidegate.sift.placing import region_of
from tidegate.sift.regions import Regions

#: More cells than this would not fit into a core's cache, nor into a Spark plan.
CELLS_MAX = 2**20
#: Two bytes each: a few of these tables fit into the L1 cache.
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
    #: The rank of what is no finite number and not -inf.
    top: int
    base: NDArray[np.int16]
    cuts: NDArray[np.float64]


def axis_table(cuts: NDArray[np.float64], stride: int) -> AxisTable | None:
    """The smallest table with the fewest comparisons; None where the cuts are too close for any."""
    top, cuts = len(cuts), cuts[np.isfinite(cuts)]
    origin = float(cuts[0]) if len(cuts) else 0.0
    span = float(cuts[-1]) - origin if len(cuts) else 0.0
    if not isfinite(span):
        return None
    for steps in range(1, STEPS_MAX + 1):
        buckets = 1
        while buckets <= BUCKETS_MAX:
            # A single bucket covers everything; its scale must not multiply an infinite coordinate by zero.
            scale = buckets / span if buckets > 1 and span > 0 else 1.0
            if not isfinite(scale):
                break
            held = np.clip((cuts - origin) * scale, 0.0, buckets - 1.0).astype(np.int64)
            # Cuts are in order, and therefore their buckets.
            if (held[steps:] != held[:-steps]).all():
                base = np.searchsorted(held, np.arange(buckets)).astype(np.int16)
                return AxisTable(origin, scale, steps, stride, top, base, np.r_[cuts, np.full(steps, np.nan)])
            buckets *= 2
    return None


def cells_of(regions: Regions, cuts: list[NDArray[np.float64]], shape: tuple[int, ...]) -> NDArray[np.int32]:
    """The region of each cell: every cut divides a block of ranks, and a region fills its block."""
    table = np.empty(shape, np.int32)
    waiting = [(0 if len(regions.axis) else ~0, (0,) * len(shape), shape)]
    while waiting:
        node, low, high = waiting.pop()
        if node < 0:
            table[tuple(map(slice, low, high))] = ~node
            continue
        k = int(regions.axis[node])
        # Ranks up to the cut's position are below it. A cut outside of its block divides nothing.
        above = int(np.searchsorted(cuts[k], regions.at[node])) + 1
        middle = min(max(above, low[k]), high[k])
        below, over = (int(child) for child in regions.children[node])
        waiting.append((below, low, (*high[:k], middle, *high[k + 1 :])))
        waiting.append((over, (*low[:k], middle, *low[k + 1 :]), high))
    return table.reshape(-1)


@dataclass(frozen=True, eq=False)
class Lookup:
    """Tables for `regions`; `tables` and `cells` are empty where `exact_walk` is set."""

    tree: Regions
    tables: tuple[AxisTable, ...]
    cells: NDArray[np.int32]

    @property
    def count(self) -> int:
        return self.tree.count

    @property
    def exact_walk(self) -> bool:
        return not self.tables

    @classmethod
    def of(cls, regions: Regions) -> Lookup:
        axes = len(regions.domain.low)
        cuts = [np.unique(regions.at[regions.axis == k]) for k in range(axes)]
        shape = tuple(len(c) + 1 for c in cuts)
        if prod(shape) > CELLS_MAX:
            return cls(regions, (), np.zeros(0, np.int32))
        strides = [prod(shape[k + 1 :]) for k in range(axes)]
        tables = tuple(axis_table(c, stride) for c, stride in zip(cuts, strides, strict=True))
        found = tuple(table for table in tables if table is not None)
        if len(found) < axes:
            return cls(regions, (), np.zeros(0, np.int32))
        return cls(regions, found, cells_of(regions, cuts, shape))

    def regions(self, coordinates: Sequence[NDArray[np.float64]]) -> NDArray[np.int32]:
        """The region of every row, given one array per axis."""
        if self.exact_walk:
            return region_of(self.tree, np.stack(coordinates, axis=1))
        found = np.zeros(len(coordinates[0]), np.int32)
        self.add_ranks(coordinates, found)
        return self.cells[found]

    def add_ranks(self, coordinates: Sequence[NDArray[np.float64]], cell: NDArray[np.int32]) -> None:
        """Add the cell number of each row to `cell`."""
        for column, t in zip(coordinates, self.tables, strict=True):
            _add_ranks(column, t.origin, t.scale, t.steps, t.stride, t.top, t.base, t.cuts, cell)


@compiled
def _add_ranks(
    column: NDArray[np.float64],
    origin: float,
    scale: float,
    steps: int,
    stride: int,
    top: int,
    base: NDArray[np.int16],
    cuts: NDArray[np.float64],
    cell: NDArray[np.int32],
) -> None:
    last = float(len(base) - 1)
    for i in range(len(column)):
        x = column[i]
        if not x < np.inf:
            cell[i] += np.int32(top * stride)
            continue
        rank = np.int64(base[np.uint64(min(max((x - origin) * scale, 0.0), last))])
        first = rank
        for k in range(steps):
            rank += x >= cuts[np.uint64(first + k)]
        cell[i] += np.int32(rank * stride)
