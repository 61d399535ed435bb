"""Exact sums over stretches: 64-bit integers and 128-bit decimals, with an error where a sum does not fit.

Wrapping arithmetic is exact modulo 2**64 or 2**128, whatever overflows on the way. So decimals can even be
subtracted again: the sum of a stretch is the difference of two running sums.

Whether the true sum fits is checked against a floating-point sum. A wrapped sum is off by a multiple of
2**64 (or 2**128), a floating-point sum by far less than half of that, so they disagree exactly where a sum
does not fit. Mostly even this check is unnecessary: if the largest value times the number of values fits,
every sum does.

Where we differ from Spark: with ANSI on, Spark fails when an intermediate sum does not fit, although the
total would. Here only the sum of a window counts, so the order of rows plays no role. Both fail the batch.

Decimals are unscaled 128-bit integers, two words each as Arrow lays them out: the lower one first.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import BatchFailed
from tidegate.window.aggregate.closing import Stretches
from tidegate.window.aggregate.sliding import slide_integers, slide_reals
from tidegate.window.kernel_types import KEYS, kernel

Integers: TypeAlias = NDArray[np.int64]
#: Shape (rows, 2).
Decimals: TypeAlias = NDArray[np.uint64]
_WORD = 2.0**64
#: The digits of Spark's largest decimal.
DIGITS = 38


def integer_sums(values: Integers, stretches: Stretches) -> Integers:
    """64-bit sums; an error where a sum does not fit."""
    sums = slide_integers("sum", values, stretches)
    largest = max(-float(values.min(initial=0)), float(values.max(initial=0)))
    if largest * values.size >= 2.0**62:
        expected = slide_reals("sum", values.astype(np.float64), stretches)
        off = np.abs(expected - sums.astype(np.float64)) > _WORD / 2
        _refuse(off, stretches, "64 bits", "Cast the argument to decimal or double")
    return sums


def decimal_sums(values: Decimals, stretches: Stretches) -> Decimals:
    """Exact sums of decimals; an error where a sum has more than `DIGITS` digits."""
    sums: Decimals = _differences(_running(values), stretches.begin, stretches.end)
    approximate = _approximate(values)
    if np.abs(approximate).sum() >= 0.99 * 10.0**DIGITS:
        expected, found = slide_reals("sum", approximate, stretches), _approximate(sums)
        off = np.abs(expected - found) > _WORD * _WORD / 2
        for near in np.flatnonzero(np.abs(expected) >= 0.99 * 10.0**DIGITS):
            off[near] |= abs(unscaled(sums[near])) >= 10**DIGITS
        do = "Cast the argument to a decimal of fewer digits, or to double"
        _refuse(off, stretches, f"{DIGITS} digits", do)
    return sums


def unscaled(words: NDArray[np.uint64]) -> int:
    """One decimal as a Python integer."""
    low, high = (int(word) for word in words)
    return (high << 64 | low) - (2**128 if high >= 2**63 else 0)


def decimal_words(integers: list[int]) -> Decimals:
    """Python integers as decimals: the inverse of `unscaled`."""
    pairs = [(value & 2**64 - 1, value >> 64 & 2**64 - 1) for value in integers]
    return np.array(pairs, np.uint64).reshape(-1, 2)


def _approximate(values: Decimals) -> NDArray[np.float64]:
    upper, lower = values[:, 1].view(np.int64), values[:, 0]
    return upper.astype(np.float64) * _WORD + lower.astype(np.float64)


def _refuse(off: NDArray[np.bool_], stretches: Stretches, room: str, do: str) -> None:
    if off.any():
        k = int(np.flatnonzero(off)[0])
        raise BatchFailed(
            f"A sum does not fit into {room}",
            code="AGGREGATE_OVERFLOW",
            got=f"window number {int(stretches.at[k])}, and {int(off.sum()) - 1} more of this batch",
            why="A sum that overflows would be a wrong number",
            do=do,
        )


@kernel(KEYS)
def _running(values: Any) -> Any:
    """Line k: the sum of the first k decimals, modulo 2**128."""
    sums = np.zeros((values.shape[0] + 1, 2), np.uint64)
    for row in range(values.shape[0]):
        low = sums[row, 0] + values[row, 0]
        sums[row + 1, 0] = low
        sums[row + 1, 1] = sums[row, 1] + values[row, 1] + np.uint64(low < values[row, 0])
    return sums


def _differences(sums: Decimals, begin: Integers, end: Integers) -> Decimals:
    upper, lower = sums[end], sums[begin]
    difference: Decimals = upper - lower
    difference[:, 1] -= upper[:, 0] < lower[:, 0]
    return difference
