"""Finds the stored rows that match each probing row: equal key code, time in the range of the condition.

Both sides are sorted by (code, time), so the partners of a row are one contiguous range of stored rows:

    stored    code  3 3 3 5 5 5 5 5 9 …           a probing row with code 5 and times 20 to 40:
              time  1 4 8 7 20 31 40 44 2 …                     ^^^^^^^^ first = 4, count = 3

`meet` finds the probing rows whose code is stored. Within one code the ranges only move forward (`low` and
`high` do not decrease), so two pointers advance over the stored rows by doubling steps. A hot key costs its
probing rows times the logarithm of the rows skipped, never the product of both sides. Most keys have only a
few stored rows: the first few are compared at once, without a branch. Ranges that do not move forward
(`in_order=False`) are searched for one by one.

A *comparison* is a stored row with equal code inside the time range: a pair that is passed on to the rest of
the join condition. Rows skipped by the search are not counted. So comparisons = the sum of all counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import REPORT_STATE_BUG, StateError
from tidegate.join.kernel_types import CODES, NUMBER, POSITIONS, TIMES, inlined, kernel
from tidegate.join.probe.meet import meet

#: Stored rows compared at once, without a branch; more than most keys have in one slot.
UNROLLED = 4
LOWEST = -(2**63)


@dataclass(frozen=True)
class Ranges:
    """Probing rows with a match, ascending: rows[k] matches first[k] … first[k] + count[k] - 1."""

    rows: NDArray[np.int64]
    first: NDArray[np.int64]
    count: NDArray[np.int64]

    @property
    def total(self) -> int:
        """Number of pairs, which is also the number of comparisons."""
        return int(self.count.sum())


def probe(
    codes: NDArray[np.uint64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    stored_codes: NDArray[np.uint64],
    stored_times: NDArray[np.int64],
    start: int,
    stop: int,
    in_order: bool = True,
) -> Ranges:
    """Probe stored rows start … stop - 1; `first` counts from the beginning of the stored arrays.

    `in_order`: within a code neither `low` nor `high` decreases.
    """
    _check(codes, low, high, stored_codes, stored_times, start, stop)
    codes = np.ascontiguousarray(codes, dtype=np.uint64)
    low = np.ascontiguousarray(low, dtype=np.int64)
    high = np.ascontiguousarray(high, dtype=np.int64)
    stored_codes = np.ascontiguousarray(stored_codes[start:stop], dtype=np.uint64)
    stored_times = np.ascontiguousarray(stored_times[start:stop], dtype=np.int64)
    in_probe, in_stored = meet(codes, stored_codes)
    find = _ranges if in_order else _ranges_anywhere
    return Ranges(*find(in_probe, in_stored, codes, low, high, stored_codes, stored_times, start))


def counts_per_partition(bounds: NDArray[np.int64], ranges: Ranges) -> NDArray[np.int64]:
    """Pairs per partition, where partition k has the probing rows bounds[k] … bounds[k + 1] - 1."""
    running = np.concatenate((np.zeros(1, np.int64), np.cumsum(ranges.count)))
    return np.diff(running[np.searchsorted(ranges.rows, bounds)])


class ProbedPairs:
    """All pairs of some ranges, numbered from 0, read in chunks so that a hot key cannot exhaust memory."""

    def __init__(self, ranges: Ranges) -> None:
        self._ranges = ranges
        self._ends = np.cumsum(ranges.count)
        self.total: int = int(self._ends[-1]) if self._ends.size else 0

    def chunk(self, begin: int, end: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Probing row and stored row of the pairs begin … end - 1, or up to the last pair."""
        begin = max(begin, 0)
        end = max(min(end, self.total), begin)
        ranges = self._ranges
        rows, stored = _expand(ranges.rows, ranges.first, ranges.count, self._ends, begin, end)
        return rows, stored


def _check(
    codes: NDArray[Any],
    low: NDArray[Any],
    high: NDArray[Any],
    stored_codes: NDArray[Any],
    stored_times: NDArray[Any],
    start: int,
    stop: int,
) -> None:
    """Compiled loops do not check bounds, so inconsistent arrays are refused here."""
    if not codes.size == low.size == high.size:
        raise StateError(
            "Key codes and time ranges of probing rows differ in length",
            code="INTERNAL_ARRAYS_INCONSISTENT",
            got=f"{codes.size} codes, {low.size} lows, {high.size} highs",
        )
    if not 0 <= start <= stop <= stored_codes.size == stored_times.size:
        raise StateError(
            "The rows to probe lie outside the stored arrays",
            code="INTERNAL_POSITION_OUT_OF_BOUNDS",
            got=f"rows {start} to {stop} of {stored_codes.size} codes and {stored_times.size} times",
            do=REPORT_STATE_BUG,
        )


@inlined
def _skip(codes: Any, times: Any, place: Any, code: Any, time: Any) -> Any:
    """First row from `place` on that is not (of this code and not later than `time`), by doubling steps."""
    step, end = 1, codes.size
    while place + step <= end and codes[place + step - 1] == code and times[place + step - 1] <= time:
        place += step
        step *= 2
    end = min(end, place + step - 1)
    while place < end:
        middle = (place + end) >> 1
        if codes[middle] == code and times[middle] <= time:
            place = middle + 1
        else:
            end = middle
    return place


@kernel(POSITIONS, POSITIONS, CODES, TIMES, TIMES, CODES, TIMES, NUMBER)
def _ranges(
    matched: Any, places: Any, codes: Any, low: Any, high: Any, stored_codes: Any, times: Any, offset: Any
) -> Any:
    size = matched.size + 1
    rows, first, count = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    found, begin, end = 0, 0, 0
    last_block = stored_codes.size - UNROLLED
    for k in range(matched.size):
        row = np.uint64(matched[k])
        code, earliest, latest = codes[row], low[row], high[row]
        # Continue behind the previous row of the same code: the ranges of a code only move forward.
        begin = max(places[k], begin)
        before = until = 0
        in_block = begin <= last_block
        if in_block:
            for ahead in range(UNROLLED):
                place = np.uint64(begin + ahead)
                same = stored_codes[place] == code
                before += int(same & (times[place] < earliest))
                until += int(same & (times[place] <= latest))
        end = max(end, begin + until)
        begin += before
        if not in_block or until == UNROLLED:
            if (not in_block or before == UNROLLED) and earliest > LOWEST:
                begin = _skip(stored_codes, times, begin, code, earliest - 1)
            end = _skip(stored_codes, times, max(begin, end), code, latest)
        # Written without a branch: the next range overwrites an empty one.
        rows[found], first[found], count[found] = row, begin + offset, end - begin
        found += int(end > begin)
    if 2 * found < size:
        # Do not keep three long arrays alive for a few rows.
        return rows[:found].copy(), first[:found].copy(), count[:found].copy()
    return rows[:found], first[:found], count[:found]


@kernel(POSITIONS, POSITIONS, CODES, TIMES, TIMES, CODES, TIMES, NUMBER)
def _ranges_anywhere(
    matched: Any, places: Any, codes: Any, low: Any, high: Any, stored_codes: Any, times: Any, offset: Any
) -> Any:
    rows, first, count = (
        np.empty(matched.size, np.int64),
        np.empty(matched.size, np.int64),
        np.empty(matched.size, np.int64),
    )
    found = 0
    for k in range(matched.size):
        row = np.uint64(matched[k])
        code, begin = codes[row], places[k]
        if low[row] > LOWEST:
            begin = _skip(stored_codes, times, begin, code, low[row] - 1)
        end = _skip(stored_codes, times, begin, code, high[row])
        if end > begin:
            rows[found], first[found], count[found] = row, begin + offset, end - begin
            found += 1
    return rows[:found], first[:found], count[:found]


@kernel(POSITIONS, POSITIONS, POSITIONS, POSITIONS, NUMBER, NUMBER)
def _expand(rows: Any, first: Any, count: Any, ends: Any, begin: Any, end: Any) -> Any:
    """Every range writes UNROLLED pairs at once; the next range overwrites the surplus."""
    size = end - begin
    probing, stored = np.empty(size + UNROLLED, np.int64), np.empty(size + UNROLLED, np.int64)
    at = np.searchsorted(ends, begin, side="right")
    filled, skip = 0, 0
    if size > 0:
        skip = begin - (ends[at] - count[at])
    while filled < size:
        row, partner, take = rows[at], first[at] + skip, count[at] - skip
        for one in range(UNROLLED):
            probing[filled + one] = row
            stored[filled + one] = partner + one
        for one in range(UNROLLED, min(take, size - filled)):
            probing[filled + one] = row
            stored[filled + one] = partner + one
        filled += take
        skip = 0
        at += 1
    return probing[:size], stored[:size]
