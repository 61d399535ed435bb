"""Which stored rows each probing row meets: equal key code, time inside the range of the join condition.

Both sides are sorted by (code, time), so the partners of a row are one contiguous range of stored rows:

    stored    code  3 3 3 5 5 5 5 5 9 …           a probing row with code 5 and times 20 to 40:
              time  1 4 8 7 20 31 40 44 2 …                     ^^^^^^^^ first = 4, count = 3

`meet` finds the probing rows whose code is stored. Within one code the ranges only ever move forward (`low`
and `high` do not decrease), so two pointers slide over the stored rows, by doubling steps: a hot key costs
its probing rows times the logarithm of what is skipped, never their product. Most keys have a few stored
rows only: those are looked at all at once, without a branch. Ranges of rows that look here and there
(`in_order=False`) are searched for one by one.

A *comparison* is a stored row with equal code inside the time range: a pair that is handed on for the rest
of the join condition. Rows skipped by searching are not counted. So comparisons = the sum of all counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.errors import StateError
from tidegate.join.kernel_types import CODES, NUMBER, POSITIONS, TIMES, inlined, kernel
from tidegate.join.probe.meet import meet

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: So many stored rows are looked at without a branch; more than most keys have in one slot.
LOOK = 4
LOWEST = -(2**63)


@dataclass(frozen=True)
class Ranges:
    """Probing rows that met somebody, ascending: rows[k] met first[k] … first[k] + count[k] - 1."""

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
    """Meet stored rows start … stop - 1; `first` counts from the beginning of the stored arrays.

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


class Pairs:
    """All pairs of some ranges, numbered from 0, to be taken in chunks: a hot key must not exhaust memory."""

    def __init__(self, ranges: Ranges) -> None:
        self._ranges = ranges
        self._ends = np.cumsum(ranges.count)
        self.total = int(self._ends[-1]) if self._ends.size else 0

    def chunk(self, begin: int, end: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Probing row and stored row of the pairs begin … end - 1, as far as there are that many."""
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
    """Compiled loops do not look where they read: what does not fit together must not reach them."""
    if not codes.size == low.size == high.size:
        raise StateError(
            "Codes and time ranges of probing rows differ in length",
            got=f"{codes.size} codes, {low.size} lows, {high.size} highs",
        )
    if not 0 <= start <= stop <= stored_codes.size == stored_times.size:
        raise StateError(
            "The stored rows to probe lie outside the stored arrays",
            got=f"rows {start} to {stop} of {stored_codes.size} codes and {stored_times.size} times",
            why="The manifest and the segment do not belong together",
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
    met: Any, places: Any, codes: Any, low: Any, high: Any, stored_codes: Any, times: Any, offset: Any
) -> Any:
    size = met.size + 1
    rows, first, count = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    found, begin, end = 0, 0, 0
    last_look = stored_codes.size - LOOK
    for meeting in range(met.size):
        row = np.uint64(met[meeting])
        code, earliest, latest = codes[row], low[row], high[row]
        # Where the row before left off, if that was of the same code: the ranges of a code move forward only.
        begin = max(places[meeting], begin)
        before = until = 0
        in_sight = begin <= last_look
        if in_sight:
            for ahead in range(LOOK):
                place = np.uint64(begin + ahead)
                same = stored_codes[place] == code
                before += int(same & (times[place] < earliest))
                until += int(same & (times[place] <= latest))
        end = max(end, begin + until)
        begin += before
        if not in_sight or until == LOOK:
            if (not in_sight or before == LOOK) and earliest > LOWEST:
                begin = _skip(stored_codes, times, begin, code, earliest - 1)
            end = _skip(stored_codes, times, max(begin, end), code, latest)
        # Written in any case: an empty range is overwritten by the next one.
        rows[found], first[found], count[found] = row, begin + offset, end - begin
        found += int(end > begin)
    if 2 * found < size:
        # Do not keep three long arrays alive for a few rows.
        return rows[:found].copy(), first[:found].copy(), count[:found].copy()
    return rows[:found], first[:found], count[:found]


@kernel(POSITIONS, POSITIONS, CODES, TIMES, TIMES, CODES, TIMES, NUMBER)
def _ranges_anywhere(
    met: Any, places: Any, codes: Any, low: Any, high: Any, stored_codes: Any, times: Any, offset: Any
) -> Any:
    rows, first, count = (
        np.empty(met.size, np.int64),
        np.empty(met.size, np.int64),
        np.empty(met.size, np.int64),
    )
    found = 0
    for meeting in range(met.size):
        row = np.uint64(met[meeting])
        code, begin = codes[row], places[meeting]
        if low[row] > LOWEST:
            begin = _skip(stored_codes, times, begin, code, low[row] - 1)
        end = _skip(stored_codes, times, begin, code, high[row])
        if end > begin:
            rows[found], first[found], count[found] = row, begin + offset, end - begin
            found += 1
    return rows[:found], first[:found], count[:found]


@kernel(POSITIONS, POSITIONS, POSITIONS, POSITIONS, NUMBER, NUMBER)
def _expand(rows: Any, first: Any, count: Any, ends: Any, begin: Any, end: Any) -> Any:
    """Every range writes LOOK pairs at once: what is too much is overwritten by the next range."""
    size = end - begin
    probing, stored = np.empty(size + LOOK, np.int64), np.empty(size + LOOK, np.int64)
    at = np.searchsorted(ends, begin, side="right")
    filled, skip = 0, 0
    if size > 0:
        skip = begin - (ends[at] - count[at])
    while filled < size:
        row, partner, take = rows[at], first[at] + skip, count[at] - skip
        for one in range(LOOK):
            probing[filled + one] = row
            stored[filled + one] = partner + one
        for one in range(LOOK, min(take, size - filled)):
            probing[filled + one] = row
            stored[filled + one] = partner + one
        filled += take
        skip = 0
        at += 1
    return probing[:size], stored[:size]
