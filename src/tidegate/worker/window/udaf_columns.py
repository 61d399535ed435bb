"""Converts user-defined aggregates between Arrow and Python: arguments, states and results.

Arguments are numpy arrays, which functions must not change. Nulls are represented by type:

    floats                 unchanged         null is NaN
    integers               unchanged         with nulls: float64, null is NaN
    booleans               bool              with nulls: objects, null is None
    dates, timestamps      datetime64        UTC; null is NaT
    strings, binaries, decimals              objects; null is None
    nested                                   objects; structs and maps are dicts, arrays are numpy arrays, or
                                             lists if their items are nested; null is None

Whether there are nulls is decided per slice, so results do not depend on how rows were cut into batches.

A state is stored with its declared types and is returned as plain Python values of these types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.window.aggregate.aggregates import Merge
from tidegate.window.aggregate.udaf import (
    Naming,
    State,
    Udaf,
    failure,
    finish_rows,
    finish_states,
    merged_states,
    pane_states,
)
from tidegate.worker.runtime.layout import UdafLayout, WindowLayout
from tidegate.worker.window.list_columns import VALUE, ListItems, items_of
from tidegate.worker.window.merged_rows import MergedRows

#: What Arrow raises for values of another type.
_REFUSED = (pa.ArrowException, TypeError, ValueError, OverflowError)


class Argument:
    """One argument of all rows, cut into arrays for the user's functions."""

    def __init__(self, column: pa.Array) -> None:
        self._null: NDArray[np.bool_] | None = None
        self._values: NDArray[Any]
        kind = column.type
        if column.null_count and (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
            self._null = column.is_null().to_numpy(zero_copy_only=False)
            column = column.fill_null(False if pa.types.is_boolean(kind) else 0)
        self._values = _objects(column) if pa.types.is_nested(kind) else column.to_numpy(zero_copy_only=False)
        # A function must not be able to change the arrays of another window.
        self._values.flags.writeable = False

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        values = self._values[rows]
        if self._null is None or not self._null[rows].any():
            return values
        if values.dtype == np.bool_:
            values = values.astype(object)
            values[self._null[rows]] = None
            return values
        return np.where(self._null[rows], np.nan, values.astype(np.float64))


def new_state_column(layout: WindowLayout, one: UdafLayout, lists: pa.Array, cells: MergedRows) -> pa.Array:
    """The states of newly arrived rows, in lists."""
    items = items_of(Merge.STATES, lists, cells.listed)
    naming = _naming(layout, cells, of_panes=True)
    states = pane_states(one.udaf, _arguments(items), items.stretches(cells.stretches), naming)
    return _state_column(one, "update", states, naming)


def merged_state_column(
    layout: WindowLayout, one: UdafLayout, column: pa.Array, cells: MergedRows
) -> pa.Array:
    """Stored states merged into one per group and pane."""
    naming = _naming(layout, cells, of_panes=True)
    states = list(merged_states(one.udaf, _states(column), cells.stretches, naming))
    return _state_column(one, "merge", states, naming)


def finished(
    layout: WindowLayout, udaf: Udaf, column: pa.Array, windows: MergedRows, kind: pa.DataType
) -> pa.Array:
    """The results of windows, from stored states or from rows."""
    naming = _naming(layout, windows, of_panes=False)
    if udaf.merge is not None:
        results = finish_states(udaf, _states(column), windows.stretches, naming)
    else:
        items = items_of(Merge.ROWS, column, windows.listed)
        results = finish_rows(udaf, _arguments(items), items.stretches(windows.stretches), naming)
    return _typed(udaf, "finish", "The result", results, kind, naming)


def _naming(layout: WindowLayout, rows: MergedRows, *, of_panes: bool) -> Naming:
    about = rows.windows if of_panes else rows.window
    return lambda k: f"{rows.group(layout.by, k)}{about(layout.spec, k)}"


def _arguments(items: ListItems) -> list[Argument]:
    rows = items.items.field(VALUE)
    return [Argument(rows.field(number)) for number in range(rows.type.num_fields)]


def _state_column(one: UdafLayout, role: str, states: Sequence[State], naming: Naming) -> pa.Array:
    """A struct per state, of the declared types."""
    schema = pa.ipc.read_schema(pa.py_buffer(one.state))
    columns = [
        _typed(one.udaf, role, f"Field {field.name}", [state[i] for state in states], field.type, naming)
        for i, field in enumerate(schema)
    ]
    return pa.StructArray.from_arrays(columns, fields=list(schema))


def _states(column: pa.StructArray) -> list[State]:
    fields = (field.to_pylist(maps_as_pydicts="strict") for field in column.flatten())
    return list(zip(*fields, strict=True))


def _objects(column: pa.Array) -> NDArray[Any]:
    if pa.types.is_list(column.type) and not pa.types.is_nested(column.type.value_type):
        objects: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        return objects
    objects = np.empty(len(column), object)
    objects[:] = column.to_pylist(maps_as_pydicts="strict")
    return objects


def _typed(
    udaf: Udaf, role: str, what: str, values: Sequence[Any], kind: pa.DataType, naming: Naming
) -> pa.Array:
    """Values as a column; the error for a wrong type names the window."""
    try:
        return pa.array(values, kind)
    except _REFUSED:
        for k, value in enumerate(values):
            _check(udaf, role, what, value, kind, naming(k))
        raise


def _check(udaf: Udaf, role: str, what: str, value: Any, kind: pa.DataType, about: str) -> None:
    try:
        pa.array([value], kind)
    except _REFUSED as error:
        got = f"{type(value).__name__} where {kind} was declared ({error})"
        raise failure(udaf, role, about, f"{what}: {got}", "Return what was declared") from error
