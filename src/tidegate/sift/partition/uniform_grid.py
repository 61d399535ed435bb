"""Uniform grid (`ugrid`): regions of equal volume, regardless of their contents.

Paper: sifters, section V. Every axis is divided into u equal ranges, which makes uⁿ regions. The number of
regions is the largest uⁿ that does not exceed the requested number. It needs no sample, and wastes regions
on empty space where data is skewed; `approximate_grid.py` has the same idea for any number of regions.

On integer and category axes the ranges end at integers: they are as equal as possible, and an axis with
fewer than u cells has fewer ranges.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegate.sift.partition.cut_tree import CutTree, check, whole_axes
from tidegate.sift.queries.boxes import Boxes
from tidegate.sift.regions import Domain, Regions


def uniform_grid(
    domain: Domain, sample: NDArray[np.float64], hits: NDArray[np.int64], boxes: Boxes, regions: int
) -> Regions:
    """At most this many regions of the same volume; sample, hits and queries are not used."""
    check(domain, sample, boxes, regions)
    tree, slabs = CutTree(), [0]
    parts = per_axis(regions, len(domain.low))
    for k, whole in enumerate(whole_axes(boxes)):
        cuts = _equal_ranges(domain.low[k], domain.high[k], parts, whole)
        slabs = [slab for region in slabs for slab in tree.slabs(region, k, cuts)]
    return tree.regions(domain)


def per_axis(regions: int, axes: int) -> int:
    """The largest u with uⁿ <= regions."""
    # A floating-point root may be slightly off, but not by half.
    nearest: int = round(regions ** (1 / axes))
    return nearest if nearest**axes <= regions else nearest - 1


def _equal_ranges(low: float, high: float, parts: int, whole: bool) -> list[float]:
    cuts = np.linspace(low, high, parts + 1)
    if whole:
        cuts = np.unique(np.ceil(cuts))
    return [float(cut) for cut in cuts if low < cut < high]
