"""Finds which of a few rows a box contains: a binary search on the first axis, then comparisons.

For samples and experiments. The stream itself uses the query index, which is the reverse: the boxes that
contain a row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegate.kernels import compiled
from tidegate.sift.queries.axes import places


def by_first_axis(rows: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The order of rows, coordinates (rows, axes), by their first axis, and their places (axes, rows).

    NaN stands for null, which no comparison accepts.
    """
    order = np.argsort(rows[:, 0])
    return order, np.ascontiguousarray(places(rows[order], np.isnan(rows[order])).T)


@compiled
def held(
    at: NDArray[np.int64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    box: int,
    found: NDArray[np.int64],
) -> int:
    """Write the rows inside the box to `found` and return their number; `at` is sorted by its first axis."""
    begin, end = np.searchsorted(at[0], low[box, 0]), np.searchsorted(at[0], high[box, 0])
    count = 0
    for row in range(begin, end):
        inside = True
        for k in range(1, len(at)):
            inside &= low[box, k] <= at[k, row] < high[box, k]
        if inside:
            found[count] = row
            count += 1
    return count
