"""The instances of a key in a plan of the `auto` strategy, which stand in a grid (`model/routing.py`)."""

from __future__ import annotations

from typing import NamedTuple


class Grid(NamedTuple):
    """Instances row by row; left rows go to one row of the grid, right rows to one column."""

    places: tuple[int, ...]
    columns: int = 1

    @property
    def rows(self) -> int:
        return len(self.places) // self.columns
