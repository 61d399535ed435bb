"""Sliding aggregation: one value per stretch of rows, at a few steps per row, however far stretches overlap.

Paper: two-stacks aggregation, Tangwongsan, Hirzel and Schneider, "Low-Latency Sliding-Window Aggregation in
Worst-Case Constant Time" (DEBS 2017), section 2; in blocks it is the algorithm of van Herk, Gil and Werman.

Removing a row by subtraction would lose floating-point digits, and is not possible for a minimum. So
nothing is ever removed. A mark lies inside each stretch. To its left, the aggregate from each row up to the
mark is stored; to its right, the aggregate of all rows since:

    rows          a   b   c   d   e │ f   g   h
    stored       a…e b…e c…e d…e  e │     f…h         stretch b … h  =  (b…e) ⊕ (f…h)

Once a stretch begins behind the mark, the mark moves to its end, and the aggregates to the left are
computed again: each row takes part in that once, and once to the right of a mark.

Stretches must only move forward, at both ends (`closing.py` guarantees it). Guarantee: the merge is applied
to the rows of a stretch in their order, with different bracketing; at most two merges per row and one per
stretch. Integers wrap around in 64 bits, so their sums are exact modulo 2**64 in any bracketing
(`sums.py`).
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tidegate.window.aggregate.closing import Stretches
from tidegate.window.kernel_types import FLAGS, INTEGERS, NUMBER, REAL, REALS, inlined, kernel

Integers: TypeAlias = NDArray[np.int64]
Reals: TypeAlias = NDArray[np.float64]
_SUM, _MIN, _MAX, _AND, _OR, _XOR = range(6)
_NUMBERS = {"sum": _SUM, "min": _MIN, "max": _MAX, "and": _AND, "or": _OR, "xor": _XOR}
#: The neutral element: the result of a stretch without rows.
_NEUTRAL_INTEGERS = {"min": 2**63 - 1, "max": -(2**63), "and": -1}
#: Passed in place of a flag per row where all rows are valid.
_ALL_VALID = np.zeros(0, np.bool_)
#: NaN sorts above all numbers.
_NEUTRAL_REALS = {"min": np.nan, "max": -np.inf}


def slide_integers(
    merge: str, values: Integers, stretches: Stretches, valid: NDArray[np.bool_] | None = None
) -> Integers:
    """`merge` is sum (modulo 2**64), min, max, and, or, xor; rows that are not valid are ignored."""
    valid = _ALL_VALID if valid is None else np.ascontiguousarray(valid)
    values = np.ascontiguousarray(values, np.int64)
    start = _NEUTRAL_INTEGERS.get(merge, 0)
    merged: Integers = _slide_integers(_NUMBERS[merge], start, values, valid, stretches.begin, stretches.end)
    return merged


def slide_reals(
    merge: str, values: Reals, stretches: Stretches, valid: NDArray[np.bool_] | None = None
) -> Reals:
    """`merge` is sum, min or max; the order of reals is Spark's: NaN above all numbers."""
    valid = _ALL_VALID if valid is None else np.ascontiguousarray(valid)
    values = np.ascontiguousarray(values, np.float64)
    start = _NEUTRAL_REALS.get(merge, 0.0)
    merged: Reals = _slide_reals(_NUMBERS[merge], start, values, valid, stretches.begin, stretches.end)
    return merged


def any_valid(valid: NDArray[np.bool_], stretches: Stretches) -> NDArray[np.bool_]:
    """Per stretch: whether any of its rows is not null."""
    found: NDArray[np.bool_] = _any_valid(np.ascontiguousarray(valid), stretches.begin, stretches.end)
    return found


@inlined
def _merge_integers(number: Any, one: Any, other: Any) -> Any:
    if number == _SUM:
        return one + other
    if number == _MIN:
        return min(one, other)
    if number == _MAX:
        return max(one, other)
    if number == _XOR:
        return one ^ other
    return one & other if number == _AND else one | other


@inlined
def _below(one: Any, other: Any) -> Any:
    return one < other or (other != other and one == one)


@inlined
def _merge_reals(number: Any, one: Any, other: Any) -> Any:
    if number == _SUM:
        return one + other
    if number == _MIN:
        return other if _below(other, one) else one
    return other if _below(one, other) else one


@kernel(NUMBER, NUMBER, INTEGERS, FLAGS, INTEGERS, INTEGERS)
def _slide_integers(number: Any, start: Any, values: Any, valid: Any, begins: Any, ends: Any) -> Any:
    merged, until_mark = np.empty(begins.size, np.int64), np.empty(values.size, np.int64)
    mark, seen, since, nulls = 0, 0, start, valid.size > 0
    for k in range(begins.size):
        begin, end = begins[k], ends[k]
        if begin >= mark:
            until = start
            for row in range(end - 1, begin - 1, -1):
                if not nulls or valid[row]:
                    until = _merge_integers(number, values[row], until)
                until_mark[row] = until
            mark, seen, since = end, end, start
            merged[k] = until
        else:
            while seen < end:
                if not nulls or valid[seen]:
                    since = _merge_integers(number, since, values[seen])
                seen += 1
            merged[k] = _merge_integers(number, until_mark[begin], since)
    return merged


# The same for floating point. One function for both would be a closure, which numba cannot cache.
@kernel(NUMBER, REAL, REALS, FLAGS, INTEGERS, INTEGERS)
def _slide_reals(number: Any, start: Any, values: Any, valid: Any, begins: Any, ends: Any) -> Any:
    merged, until_mark = np.empty(begins.size, np.float64), np.empty(values.size, np.float64)
    mark, seen, since, nulls = 0, 0, start, valid.size > 0
    for k in range(begins.size):
        begin, end = begins[k], ends[k]
        if begin >= mark:
            until = start
            for row in range(end - 1, begin - 1, -1):
                if not nulls or valid[row]:
                    until = _merge_reals(number, values[row], until)
                until_mark[row] = until
            mark, seen, since = end, end, start
            merged[k] = until
        else:
            while seen < end:
                if not nulls or valid[seen]:
                    since = _merge_reals(number, since, values[seen])
                seen += 1
            merged[k] = _merge_reals(number, until_mark[begin], since)
    return merged


@kernel(FLAGS, INTEGERS, INTEGERS)
def _any_valid(valid: Any, begins: Any, ends: Any) -> Any:
    found = np.empty(begins.size, np.bool_)
    seen, latest = 0, -1
    for k in range(begins.size):
        seen = max(seen, begins[k])
        while seen < ends[k]:
            latest = seen if valid[seen] else latest
            seen += 1
        found[k] = latest >= begins[k]
    return found
