"""A tree of cuts under construction: every partitioner starts with one region and cuts it.

A cut keeps the number of the cut region for the part below, and gives the part above the next free number.
So region numbers stay valid while the tree grows, and node 0 is the root.

All partitioners follow the same rules about where space may be cut:

- A cut between two neighbouring values lies halfway; on integer and category axes it is rounded up to an
  integer. Rows with the same value are never separated, so ties can make unequal parts.
- Rows outside of the domain count as rows at its border: `regions.py` gives them to the region there. So
  every cut is strictly inside the domain, and every region has a volume.
- Rows with an infinite or NaN coordinate carry no information about cuts and are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate.sift.queries.boxes import Boxes
from tidegate.sift.regions import Domain, Regions


def check(domain: Domain, sample: NDArray[np.float64], boxes: Boxes, regions: int) -> None:
    """Refuse arguments that no partitioner can use."""
    if regions < 1:
        raise FlowError(
            "A sifter needs at least one region",
            code="SIFTER_SETTING_INVALID",
            got=regions,
            do="Ask for 1 region or more",
        )
    if sample.ndim != 2 or not sample.shape[1] == len(domain.low) == len(boxes.axes):
        raise FlowError(
            "Domain, sample and queries do not have the same axes",
            code="INTERNAL_ARRAYS_INCONSISTENT",
            got=f"{len(domain.low)} axes of the domain, a sample of shape {sample.shape} and "
            f"{len(boxes.axes)} axes of the queries",
        )


def whole_axes(boxes: Boxes) -> NDArray[np.bool_]:
    """The axes whose cuts are integers."""
    return np.array([axis.kind != "number" for axis in boxes.axes], np.bool_)


def inside(domain: Domain, whole: NDArray[np.bool_], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows as points inside the domain; on integer axes they are the numbers of cells."""
    last = np.where(whole, np.ceil(domain.high) - 1, np.nextafter(domain.high, domain.low))
    points = np.minimum(np.maximum(rows, domain.low), last)
    return np.where(whole, np.floor(points), points)


def between(below: float, above: float, whole: bool) -> float:
    """The cut between two values: greater than `below`, at most `above`."""
    middle = below + (above - below) / 2
    if whole:
        return float(np.ceil(middle))
    # Neighbouring floats have no middle.
    return float(middle if middle > below else above)


def gaps(ordered: NDArray[np.float64]) -> NDArray[np.int64]:
    """The positions where ascending values may be separated: g means between values g − 1 and g."""
    return np.flatnonzero(ordered[1:] > ordered[:-1]) + 1


def nearest(allowed: NDArray[np.int64], wanted: NDArray[np.float64]) -> NDArray[np.int64]:
    """The allowed gap nearest to each desired one, the lower of two; duplicates are removed."""
    if not allowed.size:
        return allowed
    behind = np.minimum(np.searchsorted(allowed, wanted), allowed.size - 1)
    before = np.maximum(behind - 1, 0)
    lower = wanted - allowed[before] <= allowed[behind] - wanted
    return np.unique(allowed[np.where(lower, before, behind)])


class CutTree:
    """Grows by `cut` and `slabs`; `regions` is the result."""

    def __init__(self) -> None:
        self._axis: list[int] = []
        self._at: list[float] = []
        self._children: list[list[int]] = []
        #: For each region its parent node and its side of that node; the root has no parent.
        self._above: list[tuple[int, int] | None] = [None]

    @property
    def count(self) -> int:
        """How many regions there are."""
        return len(self._above)

    def cut(self, region: int, axis: int, at: float) -> int:
        """Cut a region in two; return the number of the new region, the one above `at`."""
        node, new = len(self._axis), self.count
        if (above := self._above[region]) is not None:
            self._children[above[0]][above[1]] = node
        self._axis.append(axis)
        self._at.append(at)
        self._children.append([~region, ~new])
        self._above[region] = (node, 0)
        self._above.append((node, 1))
        return new

    def slabs(self, region: int, axis: int, cuts: Sequence[float]) -> list[int]:
        """Cut a region at all of these ascending points; return the numbers of its slabs, lowest first.

        The middle cut comes first, so that a row reaches its slab in about log2 steps.
        """
        if not len(cuts):
            return [region]
        middle = len(cuts) // 2
        upper = self.cut(region, axis, float(cuts[middle]))
        return self.slabs(region, axis, cuts[:middle]) + self.slabs(upper, axis, cuts[middle + 1 :])

    def regions(self, domain: Domain) -> Regions:
        return Regions(
            domain,
            np.array(self._axis, np.int32),
            np.array(self._at, np.float64),
            np.array(self._children, np.int32).reshape(-1, 2),
        )
