"""A window: size, slide and offset, and which windows contain a time.

Window k holds the times [k · slide + offset, k · slide + offset + size). Without an offset, windows are
aligned to the epoch.

    slide        |─────|─────|─────|─────|─────▶        size = 2.5 slides; the first | is at the offset
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
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate.quantities import duration_text

#: One number of a window, or an array of them.
Numbers = TypeVar("Numbers", int, NDArray[np.int64])

#: The grain of event time.
UNIT_US = 1
#: A sum of a time and a few sizes must stay inside 64 bits.
SIZE_MAX_US = 2**60
#: The same for positions of rows.
SIZE_MAX_ROWS = 2**60


@dataclass(frozen=True)
class WindowSpec:
    """Windows of `size_us`, a new one every `slide_us`.

    An offset of any sign and size is stored modulo the slide, so equal windows are equal values.
    """

    counts_rows: ClassVar[bool] = False

    size_us: int
    slide_us: int
    offset_us: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.size_us <= SIZE_MAX_US:
            raise FlowError(
                "A window must be longer than zero and at most 2**60 microseconds",
                code="WINDOW_SIZE_INVALID",
                got=f"size {duration_text(self.size_us)}",
                do="Give a duration such as '1 minute'",
            )
        if not 0 < self.slide_us <= self.size_us:
            raise FlowError(
                "The slide of a window must be longer than zero and at most its size",
                code="WINDOW_SLIDE_INVALID",
                got=f"size {duration_text(self.size_us)}, slide {duration_text(self.slide_us)}",
                why="With a longer slide, rows between two windows would be in no window",
                do="Give a shorter slide, or leave it out: windows then follow each other without overlap",
            )
        object.__setattr__(self, "offset_us", self.offset_us % self.slide_us)

    @property
    def tumbling(self) -> bool:
        """Every time lies in exactly one window."""
        return self.slide_us == self.size_us

    def holding(self, times: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Per time: the numbers of the first and of the last window that contain it."""
        last, inside = np.divmod(times - self.offset_us, np.int64(self.slide_us))
        # (time - size) // slide + 1, without leaving 64 bits.
        return last + (inside - self.size_us) // self.slide_us + 1, last

    def starting(
        self, low: NDArray[np.int64], high: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Windows that begin at a time in [low, high): the first, and the first one beyond."""
        return -((self.offset_us - low) // self.slide_us), -((self.offset_us - high) // self.slide_us)

    def start(self, windows: Numbers) -> Numbers:
        """The first time of each window."""
        return windows * self.slide_us + self.offset_us

    def end(self, windows: Numbers) -> Numbers:
        """The first time that no longer belongs to the window."""
        return windows * self.slide_us + (self.offset_us + self.size_us)

    def begun(self, at_us: int) -> int:
        """The last window that has begun at a time."""
        return (at_us - self.offset_us) // self.slide_us

    def first_open(self, watermark_us: int) -> int:
        """The first window that ends after a watermark."""
        return (watermark_us - self.size_us - self.offset_us) // self.slide_us + 1


@dataclass(frozen=True)
class RowsSpec:
    """Windows of `size` rows of a group, a new one every `slide` rows."""

    counts_rows: ClassVar[bool] = True

    size: int
    slide: int

    def __post_init__(self) -> None:
        if not 0 < self.slide <= self.size <= SIZE_MAX_ROWS:
            raise FlowError(
                "A window of rows needs a size of at least one row, and a slide from one row to its size",
                code="ROW_WINDOW_SIZE_INVALID",
                got=f"size {self.size}, slide {self.slide}",
                why="With a longer slide, rows between two windows would be in no window",
                do="Write tg.row_window(100, slide=10), or tg.row_window(100) for windows without overlap",
            )


#: The first columns of a window's result.
START, END = "window_start", "window_end"
#: Suffixes of an approximate aggregate's name: the bounds of its interval.
LOW, HIGH = "_low", "_high"
