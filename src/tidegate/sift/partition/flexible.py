"""Flexible partitioning: repeatedly cut the part with the highest benefit, for any number of regions.

Paper: sifters, section V-A. A part is cut along one axis at one point, which makes two parts. A *division*
defines the benefit and the best cut, and each way to divide is a partitioner:

    approximate_grid.py          benefit is volume, cut at the middle of the longest edge
    approximate_equi_depth.py    benefit is rows, cut into halves
    qd_part.py                   benefit is the reduction of diversity of hits and positions

Among equal benefits the part with more rows is cut first, then the one with the lower number. A part is
evaluated once, when it is made: cutting it changes no other.

Guarantee: exactly as many regions as requested, as long as there is a part that can be cut, else fewer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from tidegate.sift.partition.cut_tree import CutTree
from tidegate.sift.regions import Domain, Regions


@dataclass(frozen=True, eq=False)
class FlexiblePart:
    """A part of the domain: its bounds, and its rows in the order of each axis: shape (axes, rows)."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    orders: NDArray[np.int64]

    @property
    def rows(self) -> int:
        return int(self.orders.shape[1])


@dataclass(frozen=True)
class Division:
    """The best cut of a part, and its benefit."""

    benefit: float
    axis: int
    at: float


#: Returns the best cut of a part, or None if it cannot be cut.
Divide = Callable[[FlexiblePart], Division | None]


def flexible(domain: Domain, points: NDArray[np.float64], divide: Divide, regions: int) -> Regions:
    """Repeatedly cut the part with the highest benefit; points lie in the domain."""
    tree = CutTree()
    waiting: list[tuple[float, int, int, Division, FlexiblePart]] = []

    def wait(region: int, part: FlexiblePart) -> None:
        if (division := divide(part)) is not None:
            heappush(waiting, (-division.benefit, -part.rows, region, division, part))

    # Sorted once; cutting preserves the order.
    wait(0, FlexiblePart(domain.low, domain.high, np.argsort(points.T, axis=1, kind="stable")))
    while waiting and tree.count < regions:
        *_, region, division, part = heappop(waiting)
        below, above = _cut(part, division, points)
        upper = tree.cut(region, division.axis, division.at)
        if tree.count < regions:
            wait(region, below)
            wait(upper, above)
    return tree.regions(domain)


def _cut(
    part: FlexiblePart, division: Division, points: NDArray[np.float64]
) -> tuple[FlexiblePart, FlexiblePart]:
    axis, at = division.axis, division.at
    middle_high, middle_low = part.high.copy(), part.low.copy()
    middle_high[axis] = middle_low[axis] = at
    below = points[part.orders, axis] < at
    axes = len(part.low)
    return (
        FlexiblePart(part.low, middle_high, part.orders[below].reshape(axes, -1)),
        FlexiblePart(middle_low, part.high, part.orders[~below].reshape(axes, -1)),
    )
