"""Intersects two sorted arrays of key codes: the probing rows whose code is stored, and where it is stored.

Two algorithms, chosen by the lengths alone:

- *Merge*, for lengths of one order of magnitude. Which side advances is unpredictable, so the step has no
  branch: it compares both codes and moves the pointers by the outcome (0 or 1). A step waits only for the one
  before it; two independent halves are stepped alternately to fill that wait.
- *Leap*, when one side is far longer. Codes are well mixed and therefore evenly spread. The search guesses
  the distance to the next code, and closes in by doubling steps. Cost: the short side times the logarithm
  of the error of the guess. Codes with any other distribution give the same result, more slowly.

Guarantee: each probing row whose code is stored is returned once, in ascending order, with the first stored
row of that code.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.join.kernel_types import CODES, inlined, kernel

#: Leap when one side is this many times as long as the other: about where the measured costs cross.
LEAP_RATIO = 32


def meet(
    probing: NDArray[np.uint64], stored: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Probing rows whose code is stored, each with the first stored row of its code.

    Both arrays must be sorted and contiguous.
    """
    if stored.size > LEAP_RATIO * probing.size:
        rows, places = leap_in_stored(probing, stored)
    elif probing.size > LEAP_RATIO * stored.size:
        rows, places = leap_in_probing(probing, stored)
    else:
        rows, places = merge(probing, stored)
    return rows, places


@inlined
def _first_at_least(codes: Any, code: Any) -> Any:
    low, high = 0, codes.size
    while low < high:
        middle = (low + high) >> 1
        if codes[middle] < code:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(CODES, CODES)
def merge(probing: Any, stored: Any) -> Any:
    # Positions are unsigned: numba would check a signed index for a negative value at every step.
    half = probing.size // 2
    while 0 < half < probing.size and probing[half] == probing[half - 1]:
        half += 1  # The rows of a code stay in one half: the other half would start behind its stored rows.
    half_stored = _first_at_least(stored, probing[half]) if half < probing.size else stored.size
    end_a, end_b = np.uint64(half), np.uint64(half_stored)
    end_c, end_d = np.uint64(probing.size), np.uint64(stored.size)
    a, b, c, d = np.uint64(0), np.uint64(0), end_a, end_b
    # Each half has room for all its probing rows and for one more write, which is discarded.
    rows, places = np.empty(probing.size + 2, np.int64), np.empty(probing.size + 2, np.int64)
    begin_high = end_a + np.uint64(1)
    low, high = np.uint64(0), begin_high
    while True:
        # A pointer moves by at most one per step, so this many steps need no bounds check.
        steps = min(min(end_a - a, end_b - b), min(end_c - c, end_d - d))
        if steps == 0:
            break
        for _ in range(steps):
            code_a, code_b, code_c, code_d = probing[a], stored[b], probing[c], stored[d]
            rows[low], places[low], rows[high], places[high] = a, b, c, d
            low += np.uint64(code_a == code_b)
            a += np.uint64(code_a <= code_b)
            b += np.uint64(code_b < code_a)
            high += np.uint64(code_c == code_d)
            c += np.uint64(code_c <= code_d)
            d += np.uint64(code_d < code_c)
    # One half is done; at most one of the next two loops steps through the rest of the other.
    while a < end_a and b < end_b:
        code_a, code_b = probing[a], stored[b]
        rows[low], places[low] = a, b
        low += np.uint64(code_a == code_b)
        a += np.uint64(code_a <= code_b)
        b += np.uint64(code_b < code_a)
    while c < end_c and d < end_d:
        code_c, code_d = probing[c], stored[d]
        rows[high], places[high] = c, d
        high += np.uint64(code_c == code_d)
        c += np.uint64(code_c <= code_d)
        d += np.uint64(code_d < code_c)
    for place in range(begin_high, high):
        rows[low], places[low] = rows[place], places[place]
        low += np.uint64(1)
    return rows[:low], places[:low]


@inlined
def _leap_to(codes: Any, place: Any, code: Any, rows_per_code: Any) -> Any:
    """First place, from `place` on, whose code is not below `code`; the end of `codes` if there is none."""
    count = codes.size
    if codes[place] >= code:
        return place
    # Invariant: codes[below] < code <= codes[above], where codes[count] counts as infinite.
    below, above = place, count
    guess = place + np.int64(min(float(code - codes[place]) * rows_per_code, float(count - 1 - place)))
    step = 4
    if codes[guess] < code:
        below = guess
        while below + step < count and codes[below + step] < code:
            below += step
            step *= 2
        above = min(below + step, count)
    else:
        above = guess
        while above - step > below and codes[above - step] >= code:
            above -= step
            step *= 2
        below = max(below, above - step)
    while above - below > 1:
        middle = (below + above) >> 1
        if codes[middle] < code:
            below = middle
        else:
            above = middle
    return above


@inlined
def _evenly_spread(codes: Any) -> Any:
    """Rows per unit of code, if the codes are evenly spread."""
    return codes.size / max(float(codes[codes.size - 1] - codes[0]), 1.0)


@kernel(CODES, CODES)
def leap_in_stored(probing: Any, stored: Any) -> Any:
    rows, places = np.empty(probing.size, np.int64), np.empty(probing.size, np.int64)
    found = 0
    if stored.size > 0:
        rows_per_code = _evenly_spread(stored)
        place = 0
        for row in range(probing.size):
            place = _leap_to(stored, place, probing[row], rows_per_code)
            if place == stored.size:
                break
            rows[found], places[found] = row, place
            found += int(stored[place] == probing[row])
    return rows[:found], places[:found]


@kernel(CODES, CODES)
def leap_in_probing(probing: Any, stored: Any) -> Any:
    rows, places = np.empty(probing.size, np.int64), np.empty(probing.size, np.int64)
    found = 0
    if probing.size > 0:
        rows_per_code = _evenly_spread(probing)
        row = 0
        for place in range(stored.size):
            code = stored[place]
            row = _leap_to(probing, row, code, rows_per_code)
            while row < probing.size and probing[row] == code:
                rows[found], places[found] = row, place
                found += 1
                row += 1
            if row == probing.size:
                break
    return rows[:found], places[:found]
