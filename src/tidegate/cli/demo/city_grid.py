"""The grid of a made-up city: rows and columns of cells, four by four districts, and who is close to whom.

· · · ┊ · · ·      A cell is close to itself and to the cells one step up, down, left and right of it, as
· ▒ · ┊ · · ·      far as they are in its district: a cab does not cross a river or a motorway.
▒ █ ▒ ┊ · · ▒
· ▒ · ┊ · ▒ █
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Districts in a row, and rows of them.
DISTRICTS_WIDE = 4


@dataclass(frozen=True)
class Grid:
    """Cells by number, row after row. As a function of two columns of cells it says which pairs are close."""

    cells: int

    @property
    def width(self) -> int:
        return ceil(sqrt(self.cells))

    def district(self, cell: NDArray[np.int64]) -> NDArray[np.int64]:
        block = ceil(self.width / DISTRICTS_WIDE)
        row, column = np.divmod(cell, self.width)
        return np.asarray(row // block * DISTRICTS_WIDE + column // block, np.int64)

    def __call__(self, left: Any, right: Any) -> NDArray[np.bool_]:
        """At most a step apart, whatever the district."""
        (row, column), (other_row, other_column) = (
            np.divmod(np.asarray(one), self.width) for one in (left, right)
        )
        return np.asarray(np.abs(row - other_row) + np.abs(column - other_column) <= 1)

    def close(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.asarray(self(left, right) & (self.district(left) == self.district(right)))

    def around(self, cell: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """The cells that are close, one direction after the other; -1 where there is none."""
        for step in (0, -1, 1, -self.width, self.width):
            other = cell + step
            inside = (0 <= other) & (other < self.cells)
            yield np.where(inside & self.close(cell, np.where(inside, other, cell)), other, -1)
