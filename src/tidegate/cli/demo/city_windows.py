"""The exact answer of the city's windows, straight from the finished data, to judge an engine by.

A window may be missing, as a whole and only so many in a row; one that is there must be right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Windowed:
    """Rows of windows: start, district, how many orders and what they paid."""

    start_us: Ints
    district: Ints
    orders: Ints
    fares: NDArray[np.float64]


@dataclass(frozen=True)
class WindowVerdict:
    """What the windows of an output are worth."""

    #: Windows that came out, and those that did not although later ones did.
    windows: int
    missing: int
    #: Most of them in a row.
    longest_gap: int
    #: Rows that differ from the exact answer, are not in it, or are missing in a window that is there.
    wrong: int


def summed_up(time_us: Ints, district: Ints, fare: NDArray[np.float64], size_us: int) -> Windowed:
    """All windows of these orders."""
    start = time_us - time_us % size_us
    keys, group = np.unique(np.stack([start, district]), axis=1, return_inverse=True)
    sums = np.bincount(group, weights=fare, minlength=keys.shape[1]).astype(np.float64)
    return Windowed(keys[0], keys[1], np.bincount(group, minlength=keys.shape[1]), sums)


def judge_windows(exact: Windowed, found: Windowed, size_us: int) -> WindowVerdict:
    """What came out, against all there are."""
    there = np.unique(found.start_us)
    expected = np.isin(exact.start_us, there)
    right = {
        (start, district): (orders, fares)
        for start, district, orders, fares in zip(
            *(column[expected] for column in (exact.start_us, exact.district, exact.orders, exact.fares)),
            strict=True,
        )
    }
    wrong = 0
    for start, district, orders, fares in zip(
        found.start_us, found.district, found.orders, found.fares, strict=True
    ):
        # A row that comes twice finds nothing the second time.
        count, paid = right.pop((start, district), (-1, 0.0))
        wrong += not (count == orders and np.isclose(paid, fares))
    gaps = np.diff(there) // size_us - 1
    return WindowVerdict(there.size, int(gaps.sum()), int(gaps.max(initial=0)), wrong + len(right))
