"""Sorts rows into the order in which they are stored and probed: by key code, then time, then arrival.

A code is a well mixed 64-bit hash, so its upper bits alone put nearly all rows in order. We replace the
lowest bits of each code by the row's position and sort these plain integers. Numpy has a vectorised sort
for them, many times faster than any argsort: half the bytes move, and no second array has to follow.

    code      [ upper 64 - b bits         | lower b bits ]        b = bits that the row count needs
    packed    [ upper 64 - b bits of code | position     ]        sorts by code prefix, then by arrival

Then codes and times are gathered into that order once; everything after reads memory from front to back. What
remains are groups of rows with an equal prefix, nearly always rows of one key. Small groups are sorted by
insertion. All large groups that are not in order yet (hot keys) are packed and sorted together in the same
way: [ group | time since the earliest | position ]. Where that does not fit into 64 bits, or a large group
holds several codes (codes that are not well mixed), numpy's lexsort sorts them: slower, but never quadratic.

Guarantee: exactly the order of `np.lexsort((times, codes))`, for every input.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import StateError
from tidegate.join.kernel_types import CODES, NEW_CODES, NEW_TIMES, NUMBER, POSITIONS, TIMES, inlined, kernel

#: Groups up to this size are sorted by insertion: cheaper than a second round for a handful of rows.
SMALL = 16


class Sorted(NamedTuple):
    """Rows by (code, time): `order[k]` is the row that comes k-th, with the k-th code and time."""

    order: NDArray[np.int64]
    codes: NDArray[np.uint64]
    times: NDArray[np.int64]


def sort_by_code_time(codes: NDArray[np.uint64], times: NDArray[np.int64]) -> Sorted:
    """Rows by (code, time); rows equal in both keep their order.

    Codes and times are returned in that order too, because gathering them a second time would cost more.
    """
    if codes.size != times.size:
        raise StateError(
            "Key codes and times of rows differ in length",
            code="INTERNAL_ARRAYS_INCONSISTENT",
            got=f"{codes.size} codes, {times.size} times",
        )
    codes = np.ascontiguousarray(codes, dtype=np.uint64)
    times = np.ascontiguousarray(times, dtype=np.int64)
    if _in_order(codes, times):
        return Sorted(np.arange(codes.size, dtype=np.int64), codes, times)
    position_bits = int(codes.size).bit_length()
    packed = _pack(codes, position_bits)
    packed.sort()
    order, codes, times, large, one_code_each = _settle(packed, codes, times, position_bits)
    if large.size:
        _settle_large(Sorted(order, codes, times), large, one_code_each, packed)
    return Sorted(order, codes, times)


def _settle_large(
    rows: Sorted, large: NDArray[np.int64], one_code_each: bool, spare: NDArray[np.uint64]
) -> None:
    """Sort, in place, the groups of places `large` = (start, stop, start, stop, …) by code and time."""
    earliest, latest, count = _extent(large, rows.times)
    position_bits, time_bits = int(count).bit_length(), (latest - earliest).bit_length()
    group_bits = int(large.size // 2 - 1).bit_length()
    if one_code_each and group_bits + time_bits + position_bits <= 64:
        packed = spare[:count]
        group_rows = _pack_large(large, rows.order, rows.times, earliest, time_bits, position_bits, packed)
        packed.sort()
        _unpack_large(large, packed, group_rows, earliest, time_bits, position_bits, rows.order, rows.times)
    else:
        places = np.concatenate([np.arange(start, stop) for start, stop in large.reshape(-1, 2)])
        by_code_time = places[np.lexsort((rows.times[places], rows.codes[places]))]
        for column in rows:
            column[places] = column[by_code_time]


@kernel(CODES, TIMES)
def _in_order(codes: Any, times: Any) -> Any:
    """True if the rows are in order already. The check ends at the first violation, so it is cheap."""
    for row in range(1, codes.size):
        if codes[row] < codes[row - 1] or (codes[row] == codes[row - 1] and times[row] < times[row - 1]):
            return False
    return True


@kernel(CODES, NUMBER)
def _pack(codes: Any, position_bits: Any) -> Any:
    packed = np.empty(codes.size, np.uint64)
    upper = ~((np.uint64(1) << np.uint64(position_bits)) - np.uint64(1))
    for row in range(codes.size):
        packed[row] = (codes[row] & upper) | np.uint64(row)
    return packed


@inlined
def _insertion_sort(order: Any, codes: Any, times: Any, start: Any, stop: Any) -> None:
    for place in range(start + 1, stop):
        row, code, time = order[place], codes[place], times[place]
        hole = place
        while hole > start and (
            codes[hole - 1] > code or (codes[hole - 1] == code and times[hole - 1] > time)
        ):
            order[hole], codes[hole], times[hole] = order[hole - 1], codes[hole - 1], times[hole - 1]
            hole -= 1
        order[hole], codes[hole], times[hole] = row, code, time


@kernel(CODES, CODES, TIMES, NUMBER)
def _settle(packed: Any, codes_in: Any, times_in: Any, position_bits: Any) -> Any:
    """Gather rows in the order of `packed`, sort small groups, and return large groups out of order."""
    count = packed.size
    order, codes, times = np.empty(count, np.int64), np.empty(count, np.uint64), np.empty(count, np.int64)
    shift = np.uint64(position_bits)
    position_mask = (np.uint64(1) << shift) - np.uint64(1)
    # One loop per array: random access to one array at a time keeps more of it in the cache.
    for place in range(count):
        row = packed[place] & position_mask
        order[place] = np.int64(row)
        codes[place] = codes_in[row]
    for place in range(count):
        times[place] = times_in[packed[place] & position_mask]
    large = np.empty(2 * (count // SMALL) + 2, np.int64)
    larges, one_code_each = 0, True
    start = 0
    while start < count:
        prefix = codes[start] >> shift
        stop = start + 1
        while stop < count and codes[stop] >> shift == prefix:
            stop += 1
        if stop - start > SMALL:
            in_order, one_code = True, True
            for place in range(start + 1, stop):
                one_code &= codes[place] == codes[start]
                in_order &= times[place - 1] <= times[place]
            if not (in_order and one_code):
                one_code_each &= one_code
                large[larges], large[larges + 1] = start, stop
                larges += 2
        elif stop - start > 1:
            _insertion_sort(order, codes, times, start, stop)
        start = stop
    return order, codes, times, large[:larges], one_code_each


@kernel(POSITIONS, TIMES)
def _extent(large: Any, times: Any) -> Any:
    """Earliest and latest time in the large groups, and how many rows they have."""
    earliest = latest = times[large[0]]
    count = 0
    for group in range(0, large.size, 2):
        count += large[group + 1] - large[group]
        for place in range(large[group], large[group + 1]):
            earliest, latest = min(earliest, times[place]), max(latest, times[place])
    return earliest, latest, count


@kernel(POSITIONS, POSITIONS, TIMES, NUMBER, NUMBER, NUMBER, NEW_CODES)
def _pack_large(
    large: Any, order: Any, times: Any, earliest: Any, time_bits: Any, position_bits: Any, packed: Any
) -> Any:
    """Fill `packed` with [ group | time since the earliest | position ]; the rows by their position."""
    rows = np.empty(packed.size, np.int64)
    filled = 0
    for group in range(0, large.size, 2):
        number = np.uint64(group // 2) << np.uint64(time_bits)
        for place in range(large[group], large[group + 1]):
            # The difference of two int64 fits into uint64, and wrapping arithmetic gives exactly that.
            since = np.uint64(times[place]) - np.uint64(earliest)
            packed[filled] = ((number | since) << np.uint64(position_bits)) | np.uint64(filled)
            rows[filled] = order[place]
            filled += 1
    return rows


@kernel(POSITIONS, CODES, POSITIONS, NUMBER, NUMBER, NUMBER, NEW_TIMES, NEW_TIMES)
def _unpack_large(
    large: Any,
    packed: Any,
    rows: Any,
    earliest: Any,
    time_bits: Any,
    position_bits: Any,
    order: Any,
    times: Any,
) -> None:
    position_mask = (np.uint64(1) << np.uint64(position_bits)) - np.uint64(1)
    time_mask = (np.uint64(1) << np.uint64(time_bits)) - np.uint64(1)
    filled = 0
    for group in range(0, large.size, 2):
        for place in range(large[group], large[group + 1]):
            key = packed[filled]
            order[place] = rows[key & position_mask]
            times[place] = earliest + np.int64((key >> np.uint64(position_bits)) & time_mask)
            filled += 1
