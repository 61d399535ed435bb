"""Merges lists and sets of panes into those of windows, by positions, so that items can be of any type.

A partial is a list of items. All lists of all rows are laid out consecutively in merged order, as in Arrow:
list k has the items offsets[k] … offsets[k + 1] − 1. The list of a window concatenates those of its rows:

    rows of a stretch     3 │ 4 │ 5          items of the lists 3, 4, 5, in this order: positions, to be taken

Rows of equal group and pane may come in several runs. Their items are first sorted by time (`by_time`).
Panes follow each other in time, so this moves no item into another pane, and the items of every window are
in order of time without another sort.

A set keeps the first of equal items; for that the caller numbers distinct items from 0 on.

Cost: the items of the output, which is unavoidable, plus one sort of the input.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tidegate.window.aggregate.closing import Stretches
from tidegate.window.kernel_types import INTEGERS, NUMBER, kernel

Integers: TypeAlias = NDArray[np.int64]


class Lists(NamedTuple):
    """List k is items[offsets[k]] … items[offsets[k + 1] − 1]: positions among the given items."""

    offsets: Integers
    items: Integers


def by_time(offsets: Integers, group: Integers, time: Integers, tie: Integers) -> Integers | None:
    """The order of all items by group, time and tie; None if they are sorted. `group` is per row."""
    groups = np.repeat(group, np.diff(offsets))
    same = groups[1:] == groups[:-1]
    earlier = (time[1:] < time[:-1]) | ((time[1:] == time[:-1]) & (tie[1:] < tie[:-1]))
    return np.lexsort((tie, time, groups)) if (same & earlier).any() else None


def concatenate(offsets: Integers, stretches: Stretches) -> Lists:
    """The concatenated list of each stretch of rows."""
    offsets = np.ascontiguousarray(offsets, np.int64)
    return Lists(*_concatenate(offsets[stretches.begin], offsets[stretches.end]))


def distinct(lists: Lists, numbers: Integers) -> Lists:
    """Each list without duplicates, where items with equal numbers (from 0 on) are equal."""
    numbers = np.ascontiguousarray(numbers, np.int64)
    return Lists(*_distinct(lists.offsets, lists.items, numbers, int(numbers.max(initial=-1)) + 1))


def by_number(lists: Lists, numbers: Integers) -> Lists:
    """Each list in the order of the numbers of its items."""
    each = np.repeat(np.arange(lists.offsets.size - 1), np.diff(lists.offsets))
    return Lists(lists.offsets, lists.items[np.lexsort((numbers[lists.items], each))])


@kernel(INTEGERS, INTEGERS)
def _concatenate(begins: Any, ends: Any) -> Any:
    merged = np.zeros(begins.size + 1, np.int64)
    for k in range(begins.size):
        merged[k + 1] = merged[k] + ends[k] - begins[k]
    items, place = np.empty(merged[-1], np.int64), 0
    for k in range(begins.size):
        for item in range(begins[k], ends[k]):
            items[place] = item
            place += 1
    return merged, items


@kernel(INTEGERS, INTEGERS, INTEGERS, NUMBER)
def _distinct(offsets: Any, items: Any, numbers: Any, count: Any) -> Any:
    merged, kept = np.zeros(offsets.size, np.int64), np.empty(items.size, np.int64)
    # The last list that contained each item, so that nothing has to be cleared between lists.
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
