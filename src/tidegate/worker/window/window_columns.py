"""The columns of a window aggregate in its tasks: partials merged over stretches, results of windows.

Most partials are numeric columns, merged by `partial_columns.py` and finished by a formula. Results of lists,
sketches and user-defined aggregates are computed directly from the partials of a window.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidegate.window.aggregate.aggregates import AggregatePart, Merge
from tidegate.window.aggregate.finals import finish
from tidegate.window.spec import END, START
from tidegate.worker.runtime.layout import REPORT, TIME, WindowLayout, WindowResult
from tidegate.worker.runtime.runs import one_array
from tidegate.worker.window.estimated_columns import ESTIMATES, estimated_values, with_bounds
from tidegate.worker.window.list_columns import items_of, merged_items, values_of
from tidegate.worker.window.merged_rows import MergedRows
from tidegate.worker.window.partial_columns import as_arrow, as_column, merged_partials
from tidegate.worker.window.sketch_columns import estimates, merged_sketches, quantiles
from tidegate.worker.window.udaf_columns import finished, merged_state_column, new_state_column

_LISTS = (Merge.CONCAT, Merge.UNION, Merge.ROWS)
_SKETCHES = (Merge.DISTINCT, Merge.QUANTILES)
_STATES = (Merge.STATES,)


class WindowColumns:
    """Computes the columns of one layout from rows in merged order."""

    def __init__(self, layout: WindowLayout) -> None:
        self._layout = layout
        self._part_of = {name: part for part, names in layout.parts for name in names}
        #: By name of the state column.
        self._udaf_of = {
            result.columns[0]: layout.udafs[result.name]
            for result in layout.results
            if result.name in layout.udafs
        }

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.ipc.read_schema(pa.py_buffer(self._layout.schema))

    def partials(self, cells: MergedRows, *, fresh: bool = False) -> dict[str, pa.Array]:
        """Partial columns by name, a row per group and pane; `fresh`: from rows that were never stored."""
        made: dict[str, pa.Array] = {}
        for part, names in self._layout.parts:
            made.update(zip(names, self._merged(part, names, cells, fresh), strict=True))
        return made

    def closed(
        self,
        windows: MergedRows,
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        sampled: NDArray[np.bool_] | None = None,
    ) -> pa.RecordBatch:
        """The output rows of these windows, given the start and end of each.

        `sampled`: in approximate windows, those from which rows may have been dropped.
        """
        count = windows.stretches.count
        if not count:
            return self.nothing()
        known: dict[str, pa.Array] = {
            START: pa.array(starts),
            END: pa.array(ends),
            TIME: pa.array(starts),
            REPORT: pa.nulls(count, pa.string()),
            **self.results(windows, sampled),
        }
        arrays = [_cast(known[field.name], field.type) for field in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def results(self, windows: MergedRows, sampled: NDArray[np.bool_] | None = None) -> dict[str, pa.Array]:
        """The key and the aggregates of windows; for approximate ones also intervals."""
        numbers: dict[str, pa.Array] = {}
        for part, names in self._layout.parts:
            if part.merge not in (*_LISTS, *_SKETCHES, *_STATES):
                numbers.update(zip(names, self._merged(part, names, windows, False), strict=True))
        keys = windows.keys(self._layout.by)
        made = {name: one_array(keys.column(name)) for name in self._layout.by}
        for result in self._layout.results:
            if result.columns[0] in numbers:
                made[result.name] = self._formula(result, [numbers[name] for name in result.columns])
            else:
                made[result.name] = self._direct(result, windows)
        return made if sampled is None else {**made, **with_bounds(self._layout, made, numbers, sampled)}

    def nothing(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in self.schema], schema=self.schema)

    def _merged(
        self, part: AggregatePart, names: tuple[str, ...], rows: MergedRows, fresh: bool
    ) -> list[pa.Array]:
        columns = [rows.column(name) for name in names]
        stretches = rows.stretches
        if part.merge in _LISTS:
            items = items_of(part.merge, columns[0], rows.listed)
            return [merged_items(part.merge, items, stretches, columns[0].type)]
        if part.merge in _SKETCHES:
            return [merged_sketches(part.merge, columns[0], stretches)]
        if part.merge is Merge.STATES:
            made = new_state_column if fresh else merged_state_column
            return [made(self._layout, self._udaf_of[names[0]], columns[0], rows)]
        return merged_partials(part, columns, stretches)

    def _formula(self, result: WindowResult, partials: list[pa.Array]) -> pa.Array:
        if result.final == "value of struct":
            return partials[0].field(1) if not partials[0].null_count else _field_or_null(partials[0])
        if result.final == "as it is":
            return partials[0]
        kind = self.schema.field(result.name).type
        if result.final in ESTIMATES:
            return estimated_values(result.final, partials, kind)
        columns = [as_column(one) for one in partials]
        if result.final == "avg of decimals":
            return as_arrow(finish(result.final, columns, digits=kind.scale - partials[0].type.scale), kind)
        return as_arrow(finish(result.final, columns), kind)

    def _direct(self, result: WindowResult, windows: MergedRows) -> pa.Array:
        """A result that is not a formula over numbers."""
        name, kind = result.columns[0], self.schema.field(result.name).type
        column, merge = windows.column(name), self._part_of[name].merge
        match merge:
            case Merge.CONCAT | Merge.UNION:
                return values_of(merge, items_of(merge, column, windows.listed), windows.stretches)
            case Merge.DISTINCT:
                return estimates(column, windows.stretches)
            case Merge.QUANTILES:
                return quantiles(column, windows.stretches, result.percentages, kind)
            case _:
                udaf = self._layout.udafs[result.name].udaf
                return finished(self._layout, udaf, column, windows, kind)


def _field_or_null(structs: pa.Array) -> pa.Array:
    """The value of each struct; null for a null struct."""
    return pc.if_else(structs.is_valid(), structs.field(1), None)


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind) and pa.types.is_integer(array.type):
        return array.cast(pa.timestamp("us")).cast(kind) if kind.tz is None else array.cast(kind)
    return array if array.type == kind else array.cast(kind)
