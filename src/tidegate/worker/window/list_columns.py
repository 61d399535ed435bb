"""Converts lists between Arrow and `window/aggregate/lists.py`: sorted by time, merged by stretch, as sets.

An item is a struct. In a list: time, tie, value; in a set: tie, check, value. Values of a set are equal if
both hashes are equal; two different values collide with probability 2**-128.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.window.aggregate.aggregates import Merge
from tidegate.window.aggregate.closing import Stretches
from tidegate.window.aggregate.lists import Lists, by_number, by_time, concatenate, distinct

TIME, TIE, CHECK, VALUE = "time", "tie", "check", "value"


class ListItems(NamedTuple):
    """A column of lists, in merged order: row k has the items offsets[k] … offsets[k + 1] − 1."""

    offsets: NDArray[np.int64]
    items: pa.StructArray

    def stretches(self, of_rows: Stretches) -> Stretches:
        """Stretches of rows as stretches of items."""
        return Stretches(of_rows.at, self.offsets[of_rows.begin], self.offsets[of_rows.end])


def items_of(merge: Merge, lists: pa.Array, listed: NDArray[np.int64]) -> ListItems:
    """The items of all rows; in lists, sorted by time among rows of equal number in `listed`."""
    lengths = lists.value_lengths().fill_null(0).to_numpy()
    offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    items = lists.flatten()
    if merge is not Merge.UNION:
        order = by_time(offsets, listed, _whole(items, TIME), _whole(items, TIE))
        items = items if order is None else items.take(pa.array(order))
    return ListItems(offsets, items)


def merged_items(merge: Merge, items: ListItems, stretches: Stretches, kind: pa.DataType) -> pa.Array:
    """A list per stretch, to store."""
    chosen = _chosen(merge, items, stretches)
    return _lists(chosen, items.items, kind)


def values_of(merge: Merge, items: ListItems, stretches: Stretches) -> pa.Array:
    """A list of values per stretch, to emit."""
    values = items.items.field(VALUE)
    return _lists(_chosen(merge, items, stretches), values, pa.list_(values.type))


def _chosen(merge: Merge, items: ListItems, stretches: Stretches) -> Lists:
    lists = concatenate(items.offsets, stretches)
    if merge is not Merge.UNION:
        return lists
    numbers = _numbers(items.items)
    return by_number(distinct(lists, numbers), numbers)


def _numbers(items: pa.StructArray) -> NDArray[np.int64]:
    """A number per item, equal for equal values, in the order of their hashes."""
    tie, check = _whole(items, TIE), _whole(items, CHECK)
    order = np.lexsort((check, tie))
    new = (tie[order][1:] != tie[order][:-1]) | (check[order][1:] != check[order][:-1])
    numbers = np.zeros(len(order), np.int64)
    numbers[order[1:]] = np.cumsum(new)
    return numbers


def _lists(lists: Lists, items: pa.Array, kind: pa.DataType) -> pa.Array:
    offsets = pa.array(lists.offsets.astype(np.int32))
    return pa.ListArray.from_arrays(offsets, items.take(pa.array(lists.items)), type=kind)


def _whole(items: pa.StructArray, name: str) -> NDArray[Any]:
    numbers: NDArray[Any] = items.field(name).to_numpy()
    return numbers
