"""Which of a few rows a box holds: a search on the first axis, and a look at what is left.

For samples and experiments. The stream itself goes through an index of the queries, which is the other way
round: which boxes hold a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidegate.kernels import compiled
from tidegate.sift.queries.axes import places

if TYPE_CHECKING:
    from numpy.typing import NDArray


def by_first_axis(rows: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """An order of rows, given as coordinates (rows, axes), and their places (axes, rows) in this order."""
    order = np.argsort(rows[:, 0])
    return order, np.ascontiguousarray(places(rows[order]).T)


@compiled
def held(
    at: NDArray[np.int64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    box: int,
    found: NDArray[np.int64],
) -> int:
    """Put the rows that lie in the box into `found`, and say how many; `at` is sorted by its first axis."""
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
