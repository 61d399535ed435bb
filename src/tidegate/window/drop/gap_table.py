"""Tests whether a time is inside a gap: one division and one table lookup, for any number of gaps.

Rows between two kept windows are dropped (`early_drop.py`). To test every row right after it was read, the
gaps near a batch are laid out as a table of equal cells:

    gaps           ▓▓▓▓▓▓▓▓            ▓▓▓▓
    cells      │ 0 │ 1 │ 1 │ 0 │ 0 │ 0 │ 1 │ 0 │        the outer cells cover all times beyond

Gaps begin and end where windows do, so cells of their greatest common divisor are exact. Where that needs
too many cells, larger ones are used, and a cell counts only if it lies entirely in a gap.

Guarantee: no time outside of the gaps is reported as inside; with `exact` every time inside is.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

import numpy as np

from tidegate.window.drop.intervals import Intervals

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Most cells sent along with a batch.
CELLS_MAX = 4096


@dataclass(frozen=True)
class GapTable:
    """Cell i holds the times [low + i · grid, low + (i + 1) · grid); times beyond map to the end cells."""

    low_us: int
    grid_us: int
    #: 1 where all times of a cell are inside a gap; the first and the last are 0.
    cells: tuple[int, ...]

    @property
    def high_us(self) -> int:
        """The last time that has a cell; later times are treated like it."""
        return self.low_us + len(self.cells) * self.grid_us - 1

    def inside(self, times: NDArray[np.int64]) -> NDArray[np.bool_]:
        clipped = np.clip(times, self.low_us, self.high_us)
        return np.array(self.cells, np.bool_)[(clipped - self.low_us) // self.grid_us]


#: A table without gaps.
NO_GAPS = GapTable(0, 1, (0,))


def gap_table(gaps: Intervals, low_us: int, high_us: int, *, exact: bool = False) -> GapTable:
    """The gaps between two times, as a table."""
    near = gaps.overlap(low_us, high_us)
    if not near.low.size:
        return NO_GAPS
    # Gaps that cross the ends of the range are laid out whole, so that their edges stay on the grid.
    whole = (gaps.high > low_us) & (gaps.low < high_us)
    low, high = gaps.low[whole], gaps.high[whole]
    grid = gcd(*(high - low).tolist(), *(low[1:] - low[:-1]).tolist())
    span = int(high[-1] - low[0])
    if span // grid + 2 > CELLS_MAX and not exact:
        grid = -(-span // (CELLS_MAX - 2))
    begin = int(low[0]) - grid
    cells = np.zeros(-(-span // grid) + 2, np.int64)
    first, beyond = -(-(low - begin) // grid), (high - begin) // grid
    for i, j in zip(first.tolist(), beyond.tolist(), strict=True):
        cells[i:j] = 1
    cells[-1] = 0
    return GapTable(begin, grid, tuple(cells.tolist()))
