"""Decisions about windows: the dropped ones, as runs of window numbers.

Decisions are data. `window_drop.py` makes them once, window after window; from then on they are looked up
by window. A late row, a row of a replayed batch and every group get the same decision. Windows before the
first decision and after the last one are kept, because nothing is dropped without a decision: rows of a
window that is decided later are stored until then.

    window     … 3 4 5 6 7 8 9 10 11 12 …
    decided        ├───────────────┤            begin 4, end 12
    dropped          ▓ ▓ ▓     ▓ ▓              runs [5, 8), [10, 12)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Decisions:
    """Windows `begin` to `end` − 1 are decided; those in a run of `dropped`, [first, end), are dropped."""

    slide_us: int
    begin: int
    end: int
    #: Ascending, and never touching each other.
    dropped: tuple[tuple[int, int], ...] = ()
    #: Window k begins at k · slide + offset.
    offset_us: int = 0

    @cached_property
    def runs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The dropped runs as two arrays: first window, first window beyond."""
        runs = np.array(self.dropped, np.int64).reshape(-1, 2)
        return runs[:, 0], runs[:, 1]

    @property
    def dropped_times(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The dropped runs as times: start of the first window, start of the first window beyond."""
        first, end = (side * self.slide_us + self.offset_us for side in self.runs)
        return first, end

    def kept(self, starts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the window that begins at each of these times (or the last one before it) is kept."""
        windows = (starts - self.offset_us) // self.slide_us
        first, end = self.runs
        if not first.size:
            return np.ones(windows.size, np.bool_)
        run = np.searchsorted(first, windows, side="right") - 1
        return (run < 0) | (windows >= end[np.maximum(run, 0)])
