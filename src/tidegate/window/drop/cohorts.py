"""What was decided about cohorts of groups, as one set of times: each has a stretch of time of its own.

A drop by groups decides for each of 64 cohorts by itself (`group_drop.py`). A group belongs to a cohort by
the hash of its columns. To the times of a cohort its place is added, a multiple of one width:

    cohort            0                     1                     2
    ├─────────▓▓────▓───────┼──────▓────▓▓────────┼────▓───▓──────────────┼─▶
    place ≈ −2^61               + width               + width

The width is a multiple of every slide of the network, so windows lie in each stretch as they lie in time. So
one set of intervals holds what is missing of all cohorts, and whatever is true for a set of times (which rows
kept windows need, which results lack rows) is true for each cohort.

Guarantee: exact for times within ±2^53 microseconds, until the year 2255. Later ones are never dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate.model.json_values import Json
from tidegate.window.drop.group_drop import COHORTS
from tidegate.window.drop.intervals import Intervals, merged

#: So wide that all cohorts have room within ±2^61.
_WIDTH_MAX_US = 2**56
#: Nothing is decided beyond, far from the ends of every stretch.
_DECIDED_MAX_US = 2**53
_NUMBERS = np.arange(COHORTS, dtype=np.int64)


@dataclass(frozen=True)
class Cohorts:
    """The places of all cohorts on the line of time."""

    width_us: int

    @classmethod
    def of_slide(cls, slide_us: int) -> Cohorts:
        """Places that move windows of this slide onto themselves. `slide_us`: of all windows in common."""
        width = _WIDTH_MAX_US // slide_us * slide_us
        if not width:
            raise FlowError(
                'The slides of these windows have no common multiple that is short enough for drop="groups"',
                code="WINDOW_DROP_SLIDES",
                got=f"they begin together every {slide_us} microseconds",
                do='Leave out drop="groups", or choose slides that are multiples of each other',
            )
        return cls(width)

    def within(self, time_us: int) -> int:
        """A time, or the nearest one at which something may be decided."""
        return max(-_DECIDED_MAX_US, min(_DECIDED_MAX_US, time_us))

    def place(self, cohorts: NDArray[np.int64]) -> NDArray[np.int64]:
        return (cohorts - COHORTS // 2) * self.width_us

    def of(self, codes: NDArray[np.uint64], times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Times of groups with these codes, on the line of all cohorts."""
        half = self.width_us // 2
        return np.clip(times, -half, half - 1) + self.place((codes % np.uint64(COHORTS)).astype(np.int64))

    def parts(self, times: Intervals) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Cohort, begin and end of each interval."""
        cohorts = (times.low + self.width_us // 2) // self.width_us + COHORTS // 2
        place = self.place(cohorts)
        return cohorts, times.low - place, times.high - place

    def joined(
        self, cohorts: NDArray[np.int64], low: NDArray[np.int64], high: NDArray[np.int64]
    ) -> Intervals:
        """One set of these intervals."""
        place = self.place(cohorts)
        return merged(low + place, high + place)

    def spread(self, times: Intervals) -> Intervals:
        """The same times for every cohort."""
        half = self.width_us // 2
        near = times.overlap(-half + 1, half - 1)
        count = near.low.size
        return self.joined(
            np.repeat(_NUMBERS, count), np.tile(near.low, COHORTS), np.tile(near.high, COHORTS)
        )

    def any(self, times: Intervals) -> Intervals:
        """Times of any cohort."""
        _, low, high = self.parts(times)
        return merged(low, high)

    def since(self, times: Intervals, time_us: int) -> Intervals:
        """Those that end after a time, whole."""
        _, _, high = self.parts(times)
        return Intervals(times.low[high > time_us], times.high[high > time_us])

    def overlap(self, times: Intervals, low_us: int, high_us: int) -> Intervals:
        """The parts inside of [low, high)."""
        cohorts, low, high = self.parts(times)
        return self.joined(cohorts, np.maximum(low, low_us), np.minimum(high, high_us))

    def lengths_before(self, times: Intervals, until_us: int) -> NDArray[np.int64]:
        """By cohort: the length of the interval that reaches up to a time, or beyond."""
        cohorts, low, high = self.parts(times)
        found = np.zeros(COHORTS, np.int64)
        reach = (low < until_us) & (high >= until_us)
        found[cohorts[reach]] = until_us - low[reach]
        return found


def to_json(times: Intervals, cohorts: Cohorts | None) -> Json:
    """Times, those of cohorts in small numbers that do not depend on their places."""
    if cohorts is None:
        return times.to_json()
    numbers, low, high = cohorts.parts(times)
    begin = int(low[0]) if low.size else 0
    unit = int(np.gcd.reduce(np.concatenate((low - begin, high - begin)), initial=0)) or 1
    return {
        "cohorts": numbers.tolist(),
        "low": ((low - begin) // unit).tolist(),
        "high": ((high - begin) // unit).tolist(),
        "from_us": begin,
        "unit_us": unit,
    }


def from_json(raw: Mapping[str, Any], cohorts: Cohorts | None) -> Intervals:
    """The same times again. They may have been written for other groups, before the flow was changed."""
    if "cohorts" not in raw:
        return as_missing(Intervals.from_json(raw), None, cohorts)
    numbers = np.array(raw["cohorts"], np.int64)
    low, high = (np.array(raw[end], np.int64) * raw["unit_us"] + raw["from_us"] for end in ("low", "high"))
    return merged(low, high) if cohorts is None else cohorts.joined(numbers, low, high)


def as_missing(times: Intervals, come: Cohorts | None, go: Cohorts | None) -> Intervals:
    """Missing times where other groups are told apart: what some groups lack is missing for all."""
    plain = times if come is None else come.any(times)
    return plain if go is None else go.spread(plain)
