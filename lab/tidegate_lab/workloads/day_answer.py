"""The exact answer of a scripted day, computed from the finished data: results by tick.

A pair can be found when its later row has arrived, so it belongs to the later of the two ticks. Rows are
sorted by (key, time), and each left row is compared with all right rows of its key within the window, without
state or batches. Results have a count and a checksum, which distinguishes answers of the same size.

Guarantee: two answers with the same counts and checksums of all ticks are the same, but for a chance of
one in billions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.kernels import compiled, inlined
from tidegate_lab.workloads.day import COMMON, Day, Stream

Ints = NDArray[np.int64]
#: A result's part of the checksum: (n · FIRST + n_right · SECOND) modulo MODULUS.
FIRST, SECOND, MODULUS = 1_000_003, 998_244_353, 2_147_483_647
CHECKSUM_SQL = f"sum((n * {FIRST} + n_right * {SECOND}) % {MODULUS})"


@dataclass(frozen=True)
class Answer:
    """By tick: results, their checksum, and the pairs that had to be compared for them."""

    results: Ints
    checksums: Ints
    pairs: Ints


def exact_answer(day: Day, left: Stream, right: Stream) -> Answer:
    """All results of the day."""
    one, other = _sorted(left), _sorted(right)
    counted = np.zeros((3, day.ticks), np.int64)
    _count(*one, *other, day.window_us, COMMON, counted)
    return Answer(*counted)


def _sorted(stream: Stream) -> tuple[NDArray[np.int32], Ints, NDArray[np.uint64], Ints, NDArray[np.int32]]:
    order = np.lexsort((stream.times_us, stream.key))
    return stream.key[order], stream.times_us[order], stream.bits[order], order, stream.tick[order]


@inlined
def _bits_set(word: np.uint64) -> np.uint64:
    """How many bits are set: sums of pairs, of fours, of bytes, and of all bytes by one multiplication."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@compiled
def _count(
    left_key: NDArray[np.int32],
    left_time: Ints,
    left_bits: NDArray[np.uint64],
    left_row: Ints,
    left_tick: NDArray[np.int32],
    right_key: NDArray[np.int32],
    right_time: Ints,
    right_bits: NDArray[np.uint64],
    right_row: Ints,
    right_tick: NDArray[np.int32],
    window_us: int,
    common: int,
    counted: NDArray[np.int64],
) -> None:
    first = 0
    for i in range(left_key.size):
        key, low, high = left_key[i], left_time[i] - window_us, left_time[i] + window_us
        while first < right_key.size and (
            right_key[first] < key or (right_key[first] == key and right_time[first] < low)
        ):
            first += 1
        j = first
        while j < right_key.size and right_key[j] == key and right_time[j] <= high:
            tick = max(left_tick[i], right_tick[j])
            counted[2, tick] += 1
            if _bits_set(left_bits[i] & right_bits[j]) >= common:
                counted[0, tick] += 1
                counted[1, tick] += (left_row[i] * FIRST + right_row[j] * SECOND) % MODULUS
            j += 1
