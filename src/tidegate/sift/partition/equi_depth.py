"""Equi-depth partitioning: regions with the same number of rows (`dedp`) or of queries (`qedp`).

Paper: sifters, section V. The sample is sorted along the first axis and divided into u subsets of
consecutive rows, each of these along the next axis, and so on: l = uⁿ regions. Query equi-depth does the
same with the centres of the queries' boxes in place of rows; every box counts, because the paper treats the
boxes of a query as separate queries.

Guarantee: without ties the numbers of rows of two regions differ by at most one. Rows with the same value
stay together: the cut moves to the nearest gap, and cuts at the same gap become one. So there are fewer
regions than uⁿ where there are fewer distinct values, and a single one without rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegate.sift.partition.cut_tree import CutTree, between, check, gaps, inside, nearest, whole_axes
from tidegate.sift.partition.uniform_grid import per_axis
from tidegate.sift.queries.boxes import Boxes
from tidegate.sift.regions import Domain, Regions


def data_equi_depth(
    domain: Domain, sample: NDArray[np.float64], hits: NDArray[np.int64], boxes: Boxes, regions: int
) -> Regions:
    """At most this many regions, with the same number of sample rows each; hits and queries are not used."""
    check(domain, sample, boxes, regions)
    return _equally_deep(domain, whole_axes(boxes), sample[np.isfinite(sample).all(axis=1)], regions)


def query_equi_depth(
    domain: Domain, sample: NDArray[np.float64], hits: NDArray[np.int64], boxes: Boxes, regions: int
) -> Regions:
    """At most this many regions, with the same number of queries each; sample and hits are not used."""
    check(domain, sample, boxes, regions)
    # The part of a query outside of the domain, which may be infinite, does not affect its centre.
    low, high = (np.clip(bound, domain.low, domain.high) for bound in boxes.extents)
    return _equally_deep(domain, whole_axes(boxes), low + (high - low) / 2, regions)


def _equally_deep(
    domain: Domain, whole: NDArray[np.bool_], rows: NDArray[np.float64], regions: int
) -> Regions:
    tree = CutTree()
    parts = per_axis(regions, len(domain.low))
    slabs = [(0, inside(domain, whole, rows))]
    for k in range(len(whole)):
        slabs = [
            slab
            for region, points in slabs
            for slab in _slabs(tree, region, points[np.argsort(points[:, k])], k, parts, bool(whole[k]))
        ]
    return tree.regions(domain)


def _slabs(
    tree: CutTree, region: int, points: NDArray[np.float64], k: int, parts: int, whole: bool
) -> list[tuple[int, NDArray[np.float64]]]:
    """The slabs of a region and the points in each; points are sorted along axis k."""
    ordered = points[:, k]
    # Rounding j/u of the points down gives subsets that differ by at most one.
    wanted = np.arange(1, parts) * len(points) // parts
    ends = nearest(gaps(ordered), wanted.astype(np.float64))
    cuts = [between(ordered[end - 1], ordered[end], whole) for end in ends]
    return list(zip(tree.slabs(region, k, cuts), np.split(points, ends), strict=True))
