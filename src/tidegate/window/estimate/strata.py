"""Strata: groups by a few bits of their code, each with a sample ratio of its own; and when each was sampled.

Rows of one group are always in one stratum, so that all rows of a group in a batch have the same weight. A
window is exact if and only if nothing was left out of its stratum while its rows came in. Kept rows cannot
show that: all rows of a batch may have been left out. So omissions are recorded, as intervals of event
time:

    batch        41      42      43            π of this stratum was below 1 in batches 41 and 42
    left out     ├───────────────┤             every row of them has a time in here
    windows   [exact][ sampled ][ sampled ][exact]

Guarantee: a window without a record contains all rows of its group. A window with a record may still be
complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Enough that few groups share a stratum with a much larger one; few enough to be counted and planned.
STRATA = 64
#: Most intervals remembered; beyond that, neighbours are merged.
STRETCHES_MAX = 64


def stratum_of(codes: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The lowest bits of a group's code; the highest ones determine where it is stored."""
    return (codes & np.uint64(STRATA - 1)).astype(np.int64)


def rows_by_stratum(codes: NDArray[np.uint64], rows: NDArray[np.int64]) -> tuple[int, ...]:
    """Rows per stratum, given the rows per group."""
    counted = np.bincount(stratum_of(codes), weights=rows, minlength=STRATA)
    return tuple(counted.astype(np.int64).tolist())


@dataclass(frozen=True)
class LeftOut:
    """Intervals [low, high) of event time, each with a bit per stratum that rows were left out of."""

    stretches: tuple[tuple[int, int, int], ...] = ()

    def add(self, low_us: int, high_us: int, shares: Sequence[float]) -> LeftOut:
        """Record that rows of these times were left out of every stratum whose share is below 1."""
        bits = sum(1 << stratum for stratum, share in enumerate(shares) if share < 1)
        if not bits or low_us >= high_us:
            return self
        before = self.stretches
        if before and before[-1][2] == bits and before[-1][0] <= low_us <= before[-1][1]:
            low_us, high_us = before[-1][0], max(before[-1][1], high_us)
            before = before[:-1]
        return LeftOut((*before, (low_us, high_us, bits)))._short()

    def _short(self) -> LeftOut:
        if len(self.stretches) <= STRETCHES_MAX:
            return self
        (low, high, bits), (low_2, high_2, bits_2), *rest = self.stretches
        return LeftOut(((min(low, low_2), max(high, high_2), bits | bits_2), *rest))

    def since(self, time_us: int) -> LeftOut:
        """The records without intervals that ended before this time."""
        return LeftOut(tuple(one for one in self.stretches if one[1] > time_us))

    def between(self, low_us: int, high_us: int) -> bool:
        """True if anything was left out of these times."""
        return any(low < high_us and high > low_us for low, high, _ in self.stretches)

    def touches(
        self, low_us: NDArray[np.int64], high_us: NDArray[np.int64], stratum: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Per window [low, high) of a group in a stratum: whether rows may have been left out of it."""
        touched = np.zeros(low_us.size, np.bool_)
        for low, high, bits in self.stretches:
            mine = (np.uint64(bits) >> stratum.astype(np.uint64)) & np.uint64(1) > 0
            touched |= mine & (low < high_us) & (high > low_us)
        return touched

    def to_json(self) -> list[list[int]]:
        return [list(one) for one in self.stretches]

    @classmethod
    def from_json(cls, raw: Sequence[Any]) -> LeftOut:
        return cls(tuple((int(low), int(high), int(bits)) for low, high, bits in raw))


NOTHING_LEFT_OUT = LeftOut()
