"""Approximate uniform grid (`volume`): any number of regions of about the same volume.

Paper: sifters, section V-A; the frame is `flexible.py`. The largest part is cut at the middle of its
longest edge. Lengths are shares of the domain's width, so that the unit of a column plays no part; of
equally long edges the first is cut. On integer and category axes the middle is rounded up to an integer,
and a single cell is not cut.

Guarantee: on number axes the largest region has at most twice the volume of the smallest; whole cells
cannot always be halved.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegate.kernels import compiled
from tidegate.sift.partition.cut_tree import check, whole_axes
from tidegate.sift.partition.flexible import Division, FlexiblePart, flexible
from tidegate.sift.queries.boxes import Boxes
from tidegate.sift.regions import Domain, Regions


def approximate_grid(
    domain: Domain, sample: NDArray[np.float64], hits: NDArray[np.int64], boxes: Boxes, regions: int
) -> Regions:
    """This many regions of about the same volume; sample, hits and queries are not used."""
    check(domain, sample, boxes, regions)
    whole, width = whole_axes(boxes), domain.high - domain.low

    def divide(part: FlexiblePart) -> Division | None:
        volume, axis, at = _longest_edge(part.low, part.high, width, whole)
        return Division(volume, axis, at) if axis >= 0 else None

    return flexible(domain, np.empty((0, len(whole))), divide, regions)


@compiled
def _longest_edge(
    low: NDArray[np.float64], high: NDArray[np.float64], width: NDArray[np.float64], whole: NDArray[np.bool_]
) -> tuple[float, int, float]:
    """Volume of a part, the axis of its longest edge that can be halved (−1: none), and the middle."""
    volume, longest, axis, at = 1.0, 0.0, -1, 0.0
    for k in range(low.size):
        edge = (high[k] - low[k]) / width[k]
        volume *= edge
        middle = low[k] + (high[k] - low[k]) / 2
        if whole[k]:
            middle = np.ceil(middle)
        if edge > longest and low[k] < middle < high[k]:
            longest, axis, at = edge, k, middle
    return volume, axis, at
