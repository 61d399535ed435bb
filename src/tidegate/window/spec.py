"""A window: size and slide, and which windows contain a time.

Windows are aligned to the epoch: window k holds the times [k · slide, k · slide + size).

    slide        |─────|─────|─────|─────|─────▶        size = 2.5 slides
    window 0     [───────────────)
    window 1           [───────────────)
    window 2                 [───────────────)
    a time                     ×                        lies in the windows 0, 1 and 2

The windows that contain a time are neighbours, so the first and the last number describe them. Results are
exact in whole microseconds, for times within ±2**61 (some 73,000 years around the epoch) and sizes up to
2**60.

Count windows (`RowsSpec`) follow the order of a group's rows instead: see `count/count_windows.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tidegate.errors import FlowError

if TYPE_CHECKING:
    from numpy.typing import NDArray


#: The grain of event time.
UNIT_US = 1
#: A sum of a time and a few sizes must stay inside 64 bits.
SIZE_MAX_US = 2**60
#: The same for positions of rows.
SIZE_MAX_ROWS = 2**60


@dataclass(frozen=True)
class WindowSpec:
    """Windows of `size_us`, a new one every `slide_us`."""

    counts_rows: ClassVar[bool] = False

    size_us: int
    slide_us: int

    def __post_init__(self) -> None:
        if not 0 < self.size_us <= SIZE_MAX_US:
            raise FlowError(
                "A window must be longer than zero and fit into 60 bits",
                got=f"size {self.size_us} microseconds",
                do="Give a duration such as '1 minute'",
            )
        if not 0 < self.slide_us <= self.size_us:
            raise FlowError(
                "A window's slide must be longer than zero and at most its size",
                got=f"size {self.size_us}, slide {self.slide_us} microseconds",
                why="With a slide of zero windows never move on; with one beyond the size, rows between "
                "two windows would be in none",
                do="Leave the slide out for windows that follow each other without overlap",
            )

    @property
    def tumbling(self) -> bool:
        """Every time lies in exactly one window."""
        return self.slide_us == self.size_us

    def holding(self, times: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Per time: the numbers of the first and of the last window that contain it."""
        last, inside = np.divmod(times, np.int64(self.slide_us))
        # (time - size) // slide + 1, without leaving 64 bits.
        return last + (inside - self.size_us) // self.slide_us + 1, last

    def starting(
        self, low: NDArray[np.int64], high: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Windows that begin at a time in [low, high): the first, and the first one beyond."""
        return -(-low // self.slide_us), -(-high // self.slide_us)

    def start(self, windows: NDArray[np.int64]) -> NDArray[np.int64]:
        return windows * self.slide_us

    def end(self, windows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first time that no longer belongs to the window."""
        return windows * self.slide_us + self.size_us


@dataclass(frozen=True)
class RowsSpec:
    """Windows of `size` rows of a group, a new one every `slide` rows."""

    counts_rows: ClassVar[bool] = True

    size: int
    slide: int

    def __post_init__(self) -> None:
        if not 0 < self.slide <= self.size <= SIZE_MAX_ROWS:
            raise FlowError(
                "A window of rows must have at least one, and a slide from one row to its size",
                got=f"size {self.size}, slide {self.slide}",
                why="With a slide beyond the size, rows between two windows would be in none",
                do="Write tg.rows(100, slide=10), or tg.rows(100) for windows that follow each other",
            )


#: The first columns of a window's result.
START, END = "window_start", "window_end"
#: Suffixes of an approximate aggregate's name: the bounds of its interval.
LOW, HIGH = "_low", "_high"
