"""Lists and sets of panes into those of windows: by positions of items, so that items can be of any type.

A partial is a list of items. All lists of all runs lie one behind the other, as Arrow lays them out: list k
has
the items offsets[k] … offsets[k + 1] − 1. The list of a window is those of its rows, in merged order:

    rows of a stretch     2 │ 0 │ 5          items of lists 2, 0 and 5, in this order: positions, to be taken

Items come in the order of panes and, within one, of runs; Spark promises none. A set keeps the first of equal
items; for that the caller numbers distinct items from 0 on (a dictionary), which also says what is equal.

Cost: the items that come out, which no other way could save, plus the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tidegate.window.kernel import INTEGERS, NUMBER, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tidegate.window.closing import Stretches

    Integers = NDArray[np.int64]


class Lists(NamedTuple):
    """List k is made of items[offsets[k]] … items[offsets[k + 1] − 1]: positions among the items given."""

    offsets: Integers
    items: Integers


def concatenate(offsets: Integers, order: Integers, stretches: Stretches) -> Lists:
    """The list of each stretch of merged rows; `order` is that of `runs.merge_runs`."""
    offsets = np.ascontiguousarray(offsets, np.int64)
    return Lists(*_concatenate(offsets, order, stretches.begin, stretches.end))


def distinct(lists: Lists, numbers: Integers) -> Lists:
    """Each list without repeated items, where items with equal numbers (from 0 on) are equal."""
    numbers = np.ascontiguousarray(numbers, np.int64)
    return Lists(*_distinct(lists.offsets, lists.items, numbers, int(numbers.max(initial=-1)) + 1))


@kernel(INTEGERS, INTEGERS, INTEGERS, INTEGERS)
def _concatenate(offsets: Any, order: Any, begins: Any, ends: Any) -> Any:
    merged = np.zeros(begins.size + 1, np.int64)
    until = np.zeros(order.size + 1, np.int64)
    for row in range(order.size):
        until[row + 1] = until[row] + offsets[order[row] + 1] - offsets[order[row]]
    for k in range(begins.size):
        merged[k + 1] = merged[k] + until[ends[k]] - until[begins[k]]
    items, place = np.empty(merged[-1], np.int64), 0
    for k in range(begins.size):
        for row in range(begins[k], ends[k]):
            for item in range(offsets[order[row]], offsets[order[row] + 1]):
                items[place] = item
                place += 1
    return merged, items


@kernel(INTEGERS, INTEGERS, INTEGERS, NUMBER)
def _distinct(offsets: Any, items: Any, numbers: Any, count: Any) -> Any:
    merged, kept = np.zeros(offsets.size, np.int64), np.empty(items.size, np.int64)
    # The list in which each item was seen last: nothing has to be cleared between two lists.
    seen, place = np.full(count, -1, np.int64), 0
    for k in range(offsets.size - 1):
        for at in range(offsets[k], offsets[k + 1]):
            number = numbers[items[at]]
            if seen[number] != k:
                seen[number] = k
                kept[place] = items[at]
                place += 1
        merged[k + 1] = place
    return merged, kept[:place].copy()
