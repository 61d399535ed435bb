"""Which row of a stretch is chosen: the first or the last by something, such as event time.

`first`, `last`, `min_by` and `max_by` need a row, not a merged value, so that any type of value can be
fetched by its position. Rows are compared by a key and, where keys are equal, by a tie; of rows equal in
both the one that comes first is taken. Stretches slide as in `sliding.py`, with positions in the place of
values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.window.kernel import FLAGS, INTEGERS, inlined, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tidegate.window.closing import Stretches

    Integers = NDArray[np.int64]


def first_rows(
    keys: Integers, ties: Integers, valid: NDArray[np.bool_] | None, stretches: Stretches
) -> Integers:
    """The row of each stretch with the smallest (key, tie); −1 where none is valid."""
    valid = np.ones(keys.size, np.bool_) if valid is None else valid
    columns = np.ascontiguousarray(keys, np.int64), np.ascontiguousarray(ties, np.int64)
    rows: Integers = _slide_winners(*columns, np.ascontiguousarray(valid), stretches.begin, stretches.end)
    return rows


@inlined
def _better(keys: Any, ties: Any, valid: Any, one: Any, other: Any) -> Any:
    """The better of two rows, of which `one` comes first; −1 is no row."""
    if other < 0 or not valid[other]:
        return one
    if one < 0 or not valid[one]:
        return other
    if keys[other] != keys[one]:
        return other if keys[other] < keys[one] else one
    return other if ties[other] < ties[one] else one


@kernel(INTEGERS, INTEGERS, FLAGS, INTEGERS, INTEGERS)
def _slide_winners(keys: Any, ties: Any, valid: Any, begins: Any, ends: Any) -> Any:
    merged, until_mark = np.empty(begins.size, np.int64), np.empty(keys.size, np.int64)
    mark, seen, since = 0, 0, -1
    for k in range(begins.size):
        begin, end = begins[k], ends[k]
        if begin >= mark:
            until = -1
            for row in range(end - 1, begin - 1, -1):
                until = _better(keys, ties, valid, row, until)
                until_mark[row] = until
            mark, seen, since = end, end, -1
            best = until
        else:
            while seen < end:
                since = _better(keys, ties, valid, since, seen)
                seen += 1
            best = _better(keys, ties, valid, until_mark[begin], since)
        merged[k] = best if best >= 0 and valid[best] else -1
    return merged
