"""Decides on how many instances a heavy key lies, and in which grid.

In a grid of r rows and c columns a key costs each instance divided / (r · c) + left / r + right / c
(`work_costs.py`). Of all grids with pieces of at most `piece` fair shares, the one with the least
repetition is taken: every further column repeats the left rows, every further row the right ones. So a key
that is hot on one side gets a single line across that side, and its few rows of the other side are probed
everywhere. Where no grid makes pieces that small, the best compromise is taken: the least sum of the weight
of a piece and the mean load that repetition adds.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tidegate.route.auto.work_costs import SplitGrid, UnitCosts


def grid_needed(
    costs: UnitCosts, fair: float, piece: float, instances: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Per key: rows and columns of its grid; 1 × 1 where it is not split."""
    rows, columns = (np.ones(costs.whole.size, np.int64) for _ in range(2))
    heavy = np.flatnonzero(costs.whole > piece * fair)
    r, c = _grids(instances)
    divided, left, right = (part[heavy, None] for part in (costs.divided, costs.left, costs.right))
    weight = np.maximum(divided / (r * c) + left / r + right / c, piece * fair)
    best = np.argmin(weight + (left * c + right * r) / instances, axis=1)
    rows[heavy], columns[heavy] = r[best], c[best]
    return rows, columns


def best_grid(costs: UnitCosts, key: int, places: tuple[int, ...]) -> SplitGrid:
    """The grid of exactly these instances with the least cost per instance."""
    columns = [c for c in range(1, len(places) + 1) if len(places) % c == 0]
    return min((SplitGrid(places, c) for c in columns), key=lambda grid: costs.piece(key, grid))


@lru_cache
def _grids(instances: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns of all grids of at most this many instances, the smallest first."""
    shapes = [(r, c) for r in range(1, instances + 1) for c in range(1, instances // r + 1)]
    rows, columns = np.array(sorted(shapes, key=lambda shape: shape[0] * shape[1]), np.int64).T
    return rows, columns
