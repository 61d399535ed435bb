"""Partial aggregation in the tasks that make the rows of a window aggregate.

    task of a join ─▶ rows ─▶ group, pane ─▶ partials ─▶ Spark: codes, one shuffle ─▶ task of the window

Where only the aggregate reads the results of an operator, and takes its columns as they are, their rows need
not pass through Spark: it would convert each of them and aggregate them in two steps, with a shuffle of its
own. Several tasks may make partials of one group and pane; the window's task merges them like those of
several batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidegate.join.probe.order import sort_by_code_time
from tidegate.model.times import BEGINNING_US
from tidegate.window.aggregate.aggregates import COUNTED, ONE, REAL, VALUE
from tidegate.window.aggregate.closing import cells
from tidegate.window.aggregate.merge_runs import PartialRun, merge_runs
from tidegate.window.panes import Panes
from tidegate.worker.runtime.layout import PANE, ROWS, SEEN, TAG, TIME, WindowLayout
from tidegate.worker.runtime.runs import one_array
from tidegate.worker.window.merged_rows import MergedRows
from tidegate.worker.window.window_columns import WindowColumns
from tidegate.worker.window.work import ON_TIME, REJECTED

#: Rows that are aggregated together.
ROWS_AT_ONCE = 1 << 20
#: Multipliers and shifts of splitmix64, a bijection of words that mixes them well.
_MIX = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
#: Makes null another key than 0, and the second code of a group another than the first.
_NULL, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)


@dataclass(frozen=True)
class EarlyPartials:
    """How the rows of an operator become partials of a window aggregate; sent to the workers."""

    layout: WindowLayout
    #: By partial column: its text for a single row, and the column that the text reads.
    of_rows: Mapping[str, tuple[str, str | None]]
    #: Arrow schema of the partials, serialised.
    schema: bytes

    def begin(self) -> PartialAggregation:
        """The aggregation of the results of one task."""
        return PartialAggregation(self)


class PartialAggregation:
    """Aggregates the results of one task."""

    def __init__(self, how: EarlyPartials) -> None:
        self._how, self._layout = how, how.layout
        self._schema = pa.ipc.read_schema(pa.py_buffer(how.schema))
        self._columns, self._panes = WindowColumns(how.layout), Panes(how.layout.time_spec)
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take more rows; partials if enough have come together."""
        self._waiting.append(batch)
        self._rows += batch.num_rows
        if self._rows >= ROWS_AT_ONCE:
            yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """The partials of all rows that are left."""
        if not self._rows:
            return
        table = pa.Table.from_batches(self._waiting).combine_chunks()
        self._waiting, self._rows = [], 0
        times = one_array(table.column(TIME)).to_numpy(zero_copy_only=False)
        usable = times != BEGINNING_US
        if not usable.all():
            yield self._without_time(int(np.count_nonzero(~usable)))
            table, times = table.filter(pa.array(usable)), times[usable]
        if len(times):
            yield self._aggregated(table, times)

    def _aggregated(self, table: pa.Table, times: NDArray[np.int64]) -> pa.RecordBatch:
        code, check = group_codes([one_array(table.column(name)) for name in self._layout.by], len(times))
        panes = self._panes.of(times)
        order = sort_by_code_time(code, panes).order
        if ((code[order][1:] == code[order][:-1]) & (check[order][1:] != check[order][:-1])).any():
            order = np.lexsort((panes, check, code))
        merged = merge_runs([PartialRun(code[order], panes[order], check[order])])
        stretches = cells(merged)
        rows = MergedRows(self._of_rows(table, pa.array(order)), merged, stretches)
        keys = rows.keys(self._layout.by)
        made = {
            TAG: np.full(stretches.count, ON_TIME, np.int16),
            PANE: stretches.at,
            **{name: one_array(keys.column(name)) for name in self._layout.by},
            **self._columns.partials(rows, fresh=True),
            ROWS: stretches.end - stretches.begin,
            SEEN: np.maximum.reduceat(times[order], stretches.begin),
        }
        return self._batch({name: made[name] for name in self._schema.names}, stretches.count)

    def _of_rows(self, table: pa.Table, order: pa.Array) -> pa.Table:
        """The keys and partials of single rows, in order."""
        columns = {name: table.column(name) for name in self._layout.by}
        for name, (text, read) in self._how.of_rows.items():
            column = None if read is None else one_array(table.column(read))
            columns[name] = _of_row(text, column, table.num_rows, self._schema.field(name).type)
        return pa.table(columns).take(order)

    def _without_time(self, rows: int) -> pa.RecordBatch:
        """Rows without a usable time, which only count."""
        made = {TAG: np.array([REJECTED], np.int16), ROWS: np.array([rows]), SEEN: np.array([BEGINNING_US])}
        return self._batch({name: made.get(name) for name in self._schema.names}, 1)

    def _batch(self, made: Mapping[str, pa.Array | NDArray[np.int64] | None], rows: int) -> pa.RecordBatch:
        arrays = []
        for field in self._schema:
            column = made[field.name]
            array = pa.nulls(rows, field.type) if column is None else pa.array(column)
            arrays.append(array if array.type == field.type else array.cast(field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def group_codes(keys: list[pa.Array], rows: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Two independent codes per row, equal where all keys are equal; null is a key like any other."""
    code, check = np.zeros(rows, np.uint64), np.full(rows, _SECOND)
    for key in keys:
        words, null = _words(key)
        code = _mixed(code ^ _mixed(words)) if len(keys) > 1 else _mixed(words)
        check = _mixed(check ^ words)
        if null is not None:
            code, check = np.where(null, code + _NULL, code), np.where(null, check + _NULL, check)
    return code, check


def _words(key: pa.Array) -> tuple[NDArray[np.uint64], NDArray[np.bool_] | None]:
    """A word per row, equal where keys are equal, and which of them are null."""
    null = key.is_null().to_numpy(zero_copy_only=False) if key.null_count else None
    kind = key.type
    whole = pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date64(kind)
    numbers = key.cast(pa.int64()) if whole else key.dictionary_encode().indices.cast(pa.int64())
    return (pc.fill_null(numbers, 0) if numbers.null_count else numbers).to_numpy().view(np.uint64), null


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    for shift, factor in _MIX:
        words = (words ^ (words >> np.uint64(shift))) * np.uint64(factor)
    return words ^ (words >> np.uint64(31))


def _of_row(text: str, column: pa.Array | None, rows: int, kind: pa.DataType) -> pa.Array:
    """The partial of single rows, by its text in the catalogue."""
    if text == ONE or column is None:
        return pa.array(np.ones(rows, np.int64)).cast(kind)
    if text == COUNTED:
        return column.is_valid().cast(kind)
    return column.cast(kind, safe=False) if text == REAL else column.cast(kind)


#: The texts of single rows that tasks can compute.
TEXTS = (VALUE, ONE, REAL, COUNTED)
