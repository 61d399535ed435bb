"""Boxes: the rows of queries, as disjoint n-dimensional ranges of places.

A query is the union of its boxes (`owner` is the query of a box). The boxes of a query do not overlap, so a
row is in at most one of them, and volumes and counts add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tidegate.sift.queries.axes import Axis, coordinates


@dataclass(frozen=True, eq=False)
class Boxes:
    """`low[i, k] <= place on axis k < high[i, k]` for all k: the row belongs to query `owner[i]`."""

    axes: tuple[Axis, ...]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    owner: NDArray[np.int32]
    queries: int

    def __len__(self) -> int:
        return len(self.owner)

    @cached_property
    def extents(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper coordinates, for volumes; cells of whole numbers and categories are whole."""
        low, high = coordinates(self.low), coordinates(self.high)
        for k, axis in enumerate(self.axes):
            if axis.kind != "number":
                low[:, k], high[:, k] = np.ceil(low[:, k]), np.ceil(high[:, k])
        return low, high
