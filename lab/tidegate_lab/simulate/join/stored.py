"""Inputs of a simulated join, and the rows of one input that it has stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Stream:
    """One input: ascending times and join values (a word per line, a row per column)."""

    times_us: NDArray[np.int64]
    values: NDArray[np.uint64]


class StoredRows:
    """Stored rows of one stream: filled from the front, cut back when the last rows were not afforded."""

    def __init__(self, stream: Stream) -> None:
        self.times_us = np.empty_like(stream.times_us)
        self.values = np.empty_like(stream.values)
        self.size = 0
        #: Rows before this one were thrown away.
        self.first = 0
        self._stream = stream

    def append(self, places: NDArray[np.int64]) -> None:
        end = self.size + places.size
        self.times_us[self.size : end] = self._stream.times_us[places]
        self.values[:, self.size : end] = self._stream.values[:, places]
        self.size = end

    def forget_before(self, time_us: float) -> None:
        first = int(np.searchsorted(self.times_us[: self.size], time_us, side="left"))
        self.first = max(self.first, first)
