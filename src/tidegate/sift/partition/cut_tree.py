"""A tree of cuts while it grows: every partitioner begins with one region and cuts it.

A cut leaves what is below it the number of the region that was cut, and gives what is above the next free
number. So numbers of regions stay valid while the tree grows, and node 0 is the root.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidegate.sift.regions import Domain, Regions


class CutTree:
    """Grows by `cut` and `slabs`; `regions` is what it has become."""

    def __init__(self) -> None:
        self._axis: list[int] = []
        self._at: list[float] = []
        self._children: list[list[int]] = []
        #: For each region the node above it and on which side of that node it is; the root has no node.
        self._above: list[tuple[int, int] | None] = [None]

    @property
    def count(self) -> int:
        """How many regions there are."""
        return len(self._above)

    def cut(self, region: int, axis: int, at: float) -> int:
        """Cut a region in two; the number of the new region, the one that is not below `at`."""
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
        """Cut a region at all of these ascending points; the numbers of its slabs, lowest first.

        The middle cut comes first, so that a row finds its slab in about log2 steps.
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
