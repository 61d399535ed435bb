"""The region of a row, by walking the tree of cuts; and the share of rows in each region.

Paper: sifters, section V ("lookup") and f(S) of section IV-A. About log2 l steps per row where the tree is
balanced.

A NaN coordinate (callers pass null as NaN) is above every cut, like +inf.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate.kernels import compiled
from tidegate.sift.regions import Regions


def region_of(regions: Regions, coordinates: NDArray[np.float64]) -> NDArray[np.int32]:
    """The region of every row of coordinates (rows, axes)."""
    return _walk(regions.axis, regions.at, regions.children, np.asarray(coordinates, np.float64))


def frequencies(regions: Regions, sample: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of the sample in each region."""
    if not len(sample):
        raise FlowError(
            "A sifter cannot be built from an empty sample",
            code="SIFTER_SAMPLE_EMPTY",
            why="The distribution of rows over the regions is unknown without sample rows",
            do="Collect a sample before building the sifter",
        )
    counts = np.bincount(region_of(regions, sample), minlength=regions.count)
    return np.asarray(counts / len(sample))


@compiled
def _walk(
    axis: NDArray[np.int32],
    at: NDArray[np.float64],
    children: NDArray[np.int32],
    coordinates: NDArray[np.float64],
) -> NDArray[np.int32]:
    found = np.empty(len(coordinates), np.int32)
    for row in range(len(coordinates)):
        node = 0 if axis.size else -1
        while node >= 0:
            node = children[node, 0 if coordinates[row, axis[node]] < at[node] else 1]
        found[row] = ~node
    return found
