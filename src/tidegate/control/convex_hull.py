"""The lower convex hull of a curve."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def hull(x: NDArray[np.float64], y: NDArray[np.float64]) -> list[int]:
    """Corners of the lower convex hull of points with non-decreasing x, starting at the first point."""
    corners = [0]
    for place in range(1, x.size):
        if x[place] <= x[corners[-1]]:
            continue
        while len(corners) > 1 and _above(x, y, corners[-2], corners[-1], place):
            corners.pop()
        corners.append(place)
    return corners


def _above(x: NDArray[np.float64], y: NDArray[np.float64], a: int, b: int, c: int) -> bool:
    """Whether b lies on or above the line from a to c."""
    return bool((y[b] - y[a]) * (x[c] - x[a]) >= (y[c] - y[a]) * (x[b] - x[a]))
