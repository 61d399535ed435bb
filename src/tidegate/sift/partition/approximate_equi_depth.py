"""Approximate data equi-depth (`count`): any number of regions with about the same number of rows.

Paper: sifters, section V-A; the frame is `flexible.py`. The part with the most sample rows is cut into
halves along the axis of highest variance. Positions are shares of the domain's width, so that the unit of a
column plays no part. Rows with the same value stay together: the cut moves to the gap nearest to the
middle, the lower of two.

Guarantee: without ties the fullest region has at most twice the rows of the emptiest plus one. (The paper
says twice; an odd number of rows has no half: 6 rows in 3 regions are 3, 1 and 2.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegate.kernels import compiled
from tidegate.sift.partition.cut_tree import between, check, inside, whole_axes
from tidegate.sift.partition.flexible import Division, FlexiblePart, flexible
from tidegate.sift.queries.boxes import Boxes
from tidegate.sift.regions import Domain, Regions


def approximate_equi_depth(
    domain: Domain, sample: NDArray[np.float64], hits: NDArray[np.int64], boxes: Boxes, regions: int
) -> Regions:
    """This many regions with about the same number of rows; hits and queries are not used."""
    check(domain, sample, boxes, regions)
    whole = whole_axes(boxes)
    points = inside(domain, whole, sample[np.isfinite(sample).all(axis=1)])
    scaled = (points - domain.low) / (domain.high - domain.low)

    def divide(part: FlexiblePart) -> Division | None:
        axis = _axis_of_highest_variance(scaled, part.orders)
        end = _gap_nearest_to_middle(scaled, part.orders, axis)
        if end == 0:
            return None
        below, above = points[part.orders[axis, end - 1 : end + 1], axis]
        return Division(float(part.rows), axis, between(below, above, bool(whole[axis])))

    return flexible(domain, points, divide, regions)


@compiled
def _axis_of_highest_variance(positions: NDArray[np.float64], orders: NDArray[np.int64]) -> int:
    axis, highest = 0, 0.0
    for k in range(orders.shape[0]):
        mean = sse = 0.0
        for j in range(orders.shape[1]):
            position = positions[orders[k, j], k]
            off = position - mean
            mean += off / (j + 1)
            sse += off * (position - mean)
        if sse > highest:
            axis, highest = k, sse
    return axis


@compiled
def _gap_nearest_to_middle(positions: NDArray[np.float64], orders: NDArray[np.int64], axis: int) -> int:
    """The number of rows below the gap nearest to the middle; 0 where all positions are equal."""
    rows = orders.shape[1]
    for lower in range(rows // 2, 0, -1):
        for end in (lower, rows - lower):
            if positions[orders[axis, end - 1], axis] < positions[orders[axis, end], axis]:
                return end
    return 0
