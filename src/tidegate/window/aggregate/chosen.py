"""Chooses a row of each stretch: the first or the last by a key such as event time.

`first`, `last`, `min_by` and `max_by` need a row, not a merged value, so that a value of any type can be
fetched by its position. Rows are compared by a key and, where keys are equal, by a tie; of rows equal in
both the first one is taken. Stretches slide as in `sliding.py`, with positions in place of values.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tidegate.window.aggregate.closing import Stretches
from tidegate.window.kernel_types import FLAGS, INTEGERS, inlined, kernel

Integers: TypeAlias = NDArray[np.int64]


def first_rows(
    keys: Integers, ties: Integers, valid: NDArray[np.bool_] | None, stretches: Stretches
) -> Integers:
    """The row of each stretch with the smallest (key, tie); −1 where none is valid."""
    valid = np.ones(keys.size, np.bool_) if valid is None else valid
    columns = np.ascontiguousarray(keys, np.int64), np.ascontiguousarray(ties, np.int64)
    rows: Integers = _slide_winners(*columns, np.ascontiguousarray(valid), stretches.begin, stretches.end)
    return rows


@inlined
def _better(one: Any, other: Any) -> Any:
    """The better of two candidates (row, key, tie), of which `one` comes first; row −1 means none.

    Only numbers are passed: arrays would be reference-counted at every call.
    """
    if other[0] < 0:
        return one
    if one[0] < 0:
        return other
    if other[1] != one[1]:
        return other if other[1] < one[1] else one
    return other if other[2] < one[2] else one


@kernel(INTEGERS, INTEGERS, FLAGS, INTEGERS, INTEGERS)
def _slide_winners(keys: Any, ties: Any, valid: Any, begins: Any, ends: Any) -> Any:
    merged, until_mark = np.empty(begins.size, np.int64), np.empty(keys.size, np.int64)
    nobody = (np.int64(-1), np.int64(0), np.int64(0))
    mark, seen, since = 0, 0, nobody
    for k in range(begins.size):
        begin, end = begins[k], ends[k]
        if begin >= mark:
            until = nobody
            for row in range(end - 1, begin - 1, -1):
                if valid[row]:
                    until = _better((np.int64(row), keys[row], ties[row]), until)
                until_mark[row] = until[0]
            mark, seen, since = end, end, nobody
            merged[k] = until[0]
        else:
            while seen < end:
                if valid[seen]:
                    since = _better(since, (np.int64(seen), keys[seen], ties[seen]))
                seen += 1
            row = until_mark[begin]
            best = nobody if row < 0 else (row, keys[row], ties[row])
            merged[k] = _better(best, since)[0]
    return merged
