"""In which region a row lies, by walking down the tree of cuts; and how many rows lie in each.

Paper: sifters, section V ("lookup") and f(S) of section IV-A. About log2 l steps for a row where the tree is
balanced.

A row with a coordinate that is no number (NaN, and null, which callers give as NaN) lies in no region: its
number is `regions.count`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidegate.errors import FlowError
from tidegate.kernels import compiled
from tidegate.sift.regions import Regions

if TYPE_CHECKING:
    from numpy.typing import NDArray


def region_of(regions: Regions, coordinates: NDArray[np.float64]) -> NDArray[np.int32]:
    """The region of every row of coordinates (rows, axes)."""
    return _walk(regions.axis, regions.at, regions.children, np.asarray(coordinates, np.float64))


def frequencies(regions: Regions, sample: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of the sample in each region; what is missing from one lies in no region."""
    if not len(sample):
        raise FlowError(
            "There is no sample row",
            why="Without one nobody knows how the data is spread over the regions",
            do="Collect a sample before building a sifter",
        )
    counts = np.bincount(region_of(regions, sample), minlength=regions.count + 1)
    return np.asarray(counts[:-1] / len(sample))


@compiled
def _walk(
    axis: NDArray[np.int32],
    at: NDArray[np.float64],
    children: NDArray[np.int32],
    coordinates: NDArray[np.float64],
) -> NDArray[np.int32]:
    rows, axes = coordinates.shape
    found = np.empty(rows, np.int32)
    for row in range(rows):
        node = 0 if axis.size else -1
        while node >= 0:
            node = children[node, 0 if coordinates[row, axis[node]] < at[node] else 1]
        found[row] = ~node
        # All coordinates, not only those that were asked for on the way.
        for k in range(axes):
            if np.isnan(coordinates[row, k]):
                found[row] = axis.size + 1
    return found
