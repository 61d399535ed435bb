"""Tests whether a time is inside a gap: one division and one table lookup, for any number of gaps.

Rows between two kept windows are dropped (`early_drop.py`). To test every row right after it was read, the
gaps near a batch are laid out as a table of equal cells:

    gaps           ▓▓▓▓▓▓▓▓            ▓▓▓▓
    cells      │ 0 │ 1 │ 1 │ 0 │ 0 │ 0 │ 1 │ 0 │        the outer cells cover all times beyond

Gaps begin and end where windows do, so cells of their greatest common divisor are exact. Where that needs
too many cells, larger ones are used, and a cell counts only if it lies entirely in a gap.

With cohorts of groups (`cohorts.py`) a cell holds a bit for each of them, in one number of 64 bits.

Guarantee: no time outside of the gaps is reported as inside; with `exact` every time inside is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.window.drop.cohorts import Cohorts
from tidegate.window.drop.group_drop import COHORTS
from tidegate.window.drop.intervals import Intervals

#: Most cells sent along with a batch.
CELLS_MAX = 4096


@dataclass(frozen=True)
class GapTable:
    """Cell i holds the times [low + i · grid, low + (i + 1) · grid); times beyond map to the end cells."""

    low_us: int
    grid_us: int
    #: 1 where all times of a cell are inside a gap, or a bit for each cohort; the first and the last are 0.
    cells: tuple[int, ...]
    by_cohort: bool = False

    @property
    def high_us(self) -> int:
        """The last time that has a cell; later times are treated like it."""
        return self.low_us + len(self.cells) * self.grid_us - 1

    def inside(self, times: NDArray[np.int64], cohorts: NDArray[np.int64] | int = 0) -> NDArray[np.bool_]:
        clipped = np.clip(times, self.low_us, self.high_us)
        found = np.array(self.cells, np.int64)[(clipped - self.low_us) // self.grid_us]
        return (found >> np.int64(cohorts) & 1).astype(np.bool_)


#: A table without gaps.
NO_GAPS = GapTable(0, 1, (0,))


def gap_table(
    gaps: Intervals, low_us: int, high_us: int, *, exact: bool = False, cohorts: Cohorts | None = None
) -> GapTable:
    """The gaps between two times, as a table; `cohorts`: whose gaps they are, None: those of all rows."""
    parts = (np.zeros_like(gaps.low), gaps.low, gaps.high) if cohorts is None else cohorts.parts(gaps)
    # Gaps that cross the ends of the range are laid out whole, so that their edges stay on the grid.
    whole = (parts[2] > low_us) & (parts[1] < high_us)
    if not whole.any():
        return NO_GAPS
    number, low, high = (one[whole] for one in parts)
    origin = int(low.min())
    grid = int(np.gcd.reduce(np.concatenate((high - low, low - origin))))
    span = int(high.max()) - origin
    if span // grid + 2 > CELLS_MAX and not exact:
        grid = -(-span // (CELLS_MAX - 2))
    begin = origin - grid
    count = -(-span // grid) + 2
    first, beyond = -(-(low - begin) // grid), (high - begin) // grid
    edges = np.zeros((count, 1 if cohorts is None else COHORTS), np.int8)
    some = first < beyond
    np.add.at(edges, (first[some], number[some]), 1)
    np.add.at(edges, (beyond[some], number[some]), -1)
    inside = np.cumsum(edges, axis=0, dtype=np.int8).astype(np.uint64)
    inside[-1] = 0
    cells = np.bitwise_or.reduce(inside << np.arange(inside.shape[1], dtype=np.uint64), axis=1)
    return GapTable(begin, grid, tuple(cells.astype(np.int64).tolist()), cohorts is not None)
