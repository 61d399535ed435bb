"""Sets of event time as intervals: ascending, half open, and never adjacent.

Two sorted arrays and a binary search decide for any time whether it is inside. The first interval may begin
at the earliest time and the last may end at the latest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.model.json_values import Json
from tidegate.model.times import BEGINNING_US, END_US


@dataclass(frozen=True, eq=False)
class Intervals:
    """Times in [low[i], high[i]) for some i."""

    low: NDArray[np.int64]
    high: NDArray[np.int64]

    def contain(self, times: NDArray[np.int64]) -> NDArray[np.bool_]:
        if not self.low.size:
            return np.zeros(times.size, np.bool_)
        at = np.searchsorted(self.low, times, side="right") - 1
        return (at >= 0) & (times < self.high[np.maximum(at, 0)])

    def between(self) -> Intervals:
        """The gaps between consecutive intervals, without the times before the first and after the last."""
        return Intervals(self.high[:-1], self.low[1:])

    def others(self) -> Intervals:
        """All times that are in none of them."""
        low, high = np.append(BEGINNING_US, self.high), np.append(self.low, END_US)
        return Intervals(low[low < high], high[low < high])

    def since(self, time_us: int) -> Intervals:
        """Those that end after a time, whole."""
        return Intervals(self.low[self.high > time_us], self.high[self.high > time_us])

    def overlap(self, low: int, high: int) -> Intervals:
        """The parts inside [low, high)."""
        begin, end = np.maximum(self.low, low), np.minimum(self.high, high)
        some = begin < end
        return Intervals(begin[some], end[some])

    def to_json(self) -> Json:
        return {"low": self.low.tolist(), "high": self.high.tolist()}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Intervals:
        return cls(np.array(raw["low"], np.int64), np.array(raw["high"], np.int64))


NOTHING = Intervals(np.zeros(0, np.int64), np.zeros(0, np.int64))


def between(low: int, high: int) -> Intervals:
    """One interval; nothing if it is empty."""
    return merged(np.array([low]), np.array([high]))


def always() -> Intervals:
    return Intervals(np.array([BEGINNING_US]), np.array([END_US]))


def union(parts: Sequence[Intervals]) -> Intervals:
    """Times in any of them; intervals that overlap or touch become one."""
    return merged(*(np.concatenate([getattr(part, end) for part in parts]) for end in ("low", "high")))


def merged(low: NDArray[np.int64], high: NDArray[np.int64]) -> Intervals:
    """Intervals from ranges [low, high) in any order; empty ranges are ignored."""
    some = low < high
    order = np.argsort(low[some], kind="stable")
    low, high = low[some][order], np.maximum.accumulate(high[some][order])
    begins = np.concatenate(([True], low[1:] > high[:-1])) if low.size else np.zeros(0, np.bool_)
    ends = np.concatenate((begins[1:], [True])) if low.size else begins
    return Intervals(low[begins], high[ends])
