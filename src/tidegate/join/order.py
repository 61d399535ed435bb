"""The order in which rows are stored and probed: by key code, then by time, ties as they came.

The idea: a code is a well mixed 64-bit hash, so its upper bits alone put nearly all rows in order. We
replace the lowest bits of each code by the row's position and sort these plain integers, for which numpy
has a vectorised sort (many times faster than any argsort: half the bytes move, and no second array
follows):

    code      [ upper 64 - b bits         | lower b bits ]        b = bits that the row count needs
    packed    [ upper 64 - b bits of code | position     ]        sorts by code prefix, then by arrival

What is left are groups of rows with an equal prefix: nearly always rows of one key. One linear pass finds
them. A group that came in order of time costs one look, a small one is sorted by insertion, and all large
ones (hot keys) go through the same trick once more, together: [ group | time since the earliest | position
]. Where that does not fit into 64 bits, or a large group holds several codes (codes that are not well
mixed), numpy's lexsort takes the large groups: slower, never quadratic.

Guarantee: exactly the order of `np.lexsort((times, codes))`, for every input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.errors import StateError, explain
from tidegate.join.kernel import CODES, NEW_POSITIONS, NUMBER, POSITIONS, TIMES, inlined, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Groups up to this size are sorted by insertion: cheaper than a second round for a handful of rows.
SMALL = 16


def order_by_code_time(codes: NDArray[np.uint64], times: NDArray[np.int64]) -> NDArray[np.int64]:
    """The permutation that sorts rows by (code, time); rows equal in both keep their order."""
    if codes.size != times.size:
        raise StateError(
            explain(
                "Codes and times must describe the same rows", got=f"{codes.size} codes, {times.size} times"
            )
        )
    codes = np.ascontiguousarray(codes, dtype=np.uint64)
    times = np.ascontiguousarray(times, dtype=np.int64)
    if _in_order(codes, times):
        return np.arange(codes.size, dtype=np.int64)
    position_bits = int(codes.size).bit_length()
    packed = _pack(codes, position_bits)
    packed.sort()
    order: NDArray[np.int64]
    order, large = _settle(packed, codes, times, position_bits)
    if large.size:
        _settle_large(order, large, codes, times)
    return order


def _settle_large(
    order: NDArray[np.int64], large: NDArray[np.int64], codes: NDArray[np.uint64], times: NDArray[np.int64]
) -> None:
    """Sort, in place, the groups `large` = (start, stop, start, stop, …) of `order` by code and time."""
    rows, row_times, in_order, one_code_each = _gather_large(order, large, codes, times)
    if in_order and one_code_each:
        return
    earliest, latest = int(row_times.min()), int(row_times.max())
    position_bits, time_bits = int(rows.size).bit_length(), (latest - earliest).bit_length()
    group_bits = int(large.size // 2 - 1).bit_length()
    if one_code_each and group_bits + time_bits + position_bits <= 64:
        packed = _pack_large(large, row_times, earliest, time_bits, position_bits)
        packed.sort()
        packed &= np.uint64((1 << position_bits) - 1)
        positions = packed.view(np.int64)
    else:
        positions = np.lexsort((row_times, codes[rows]))
    _scatter_large(order, large, rows, positions)


@kernel(CODES, TIMES)
def _in_order(codes: Any, times: Any) -> Any:
    """Whether there is nothing to do; shuffled rows betray themselves at once, so asking costs nothing."""
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


@kernel(POSITIONS, POSITIONS, CODES, TIMES)
def _gather_large(order: Any, large: Any, codes: Any, times: Any) -> Any:
    """Rows of the large groups, one group after the other, with their times; and what is left to do."""
    total = 0
    for group in range(0, large.size, 2):
        total += large[group + 1] - large[group]
    rows, row_times = np.empty(total, np.int64), np.empty(total, np.int64)
    in_order, one_code_each = True, True
    filled = 0
    for group in range(0, large.size, 2):
        row = np.uint64(order[large[group]])
        code, last_time = codes[row], times[row]
        for place in range(large[group], large[group + 1]):
            row = np.uint64(order[place])
            time = times[row]
            rows[filled] = row
            row_times[filled] = time
            one_code_each &= codes[row] == code
            in_order &= last_time <= time
            last_time = time
            filled += 1
    return rows, row_times, in_order, one_code_each


@kernel(POSITIONS, TIMES, NUMBER, NUMBER, NUMBER)
def _pack_large(large: Any, row_times: Any, earliest: Any, time_bits: Any, position_bits: Any) -> Any:
    packed = np.empty(row_times.size, np.uint64)
    row = 0
    for group in range(0, large.size, 2):
        number = np.uint64(group // 2) << np.uint64(time_bits)
        for _ in range(large[group + 1] - large[group]):
            # The difference of two int64 fits into uint64, and wrapping arithmetic gives exactly that.
            since = np.uint64(row_times[row]) - np.uint64(earliest)
            packed[row] = ((number | since) << np.uint64(position_bits)) | np.uint64(row)
            row += 1
    return packed


@kernel(NEW_POSITIONS, POSITIONS, POSITIONS, POSITIONS)
def _scatter_large(order: Any, large: Any, rows: Any, positions: Any) -> None:
    filled = 0
    for group in range(0, large.size, 2):
        for place in range(large[group], large[group + 1]):
            order[place] = rows[positions[filled]]
            filled += 1


@inlined
def _insertion_sort(order: Any, start: Any, stop: Any, codes: Any, times: Any) -> None:
    for place in range(start + 1, stop):
        row = order[place]
        code, time = codes[row], times[row]
        hole = place
        while hole > start:
            other = order[hole - 1]
            if codes[other] < code or (codes[other] == code and times[other] <= time):
                break
            order[hole] = other
            hole -= 1
        order[hole] = row


@kernel(CODES, CODES, TIMES, NUMBER)
def _settle(packed: Any, codes: Any, times: Any, position_bits: Any) -> Any:
    """Unpack the positions, sort the small groups of equal prefixes and name the large ones."""
    count = packed.size
    order = np.empty(count, np.int64)
    large = np.empty(2 * (count // SMALL) + 2, np.int64)
    larges = 0
    shift = np.uint64(position_bits)
    position_mask = (np.uint64(1) << shift) - np.uint64(1)
    for place in range(count):
        order[place] = np.int64(packed[place] & position_mask)
    start = 0
    while start < count:
        prefix = packed[start] >> shift
        stop = start + 1
        while stop < count and packed[stop] >> shift == prefix:
            stop += 1
        if stop - start > SMALL:
            large[larges] = start
            large[larges + 1] = stop
            larges += 2
        elif stop - start > 1:
            _insertion_sort(order, start, stop, codes, times)
        start = stop
    return order, large[:larges]
