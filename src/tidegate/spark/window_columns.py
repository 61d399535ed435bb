"""The columns of a window aggregate in its tasks: partials merged over stretches, results of windows."""

from __future__ import annotations

from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.spark.layout import REPORT, TIME, WindowLayout
from tidegate.spark.partial_columns import as_arrow, as_column, merged_partials
from tidegate.spark.runs import one_array
from tidegate.window.closing import Stretches
from tidegate.window.finals import finish
from tidegate.window.runs import Merged
from tidegate.windowed import END, START


class WindowColumns:
    """What one layout makes of rows in merged order."""

    def __init__(self, layout: WindowLayout) -> None:
        self._layout = layout

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.ipc.read_schema(pa.py_buffer(self._layout.schema))

    def merged(self, table: pa.Table, merged: Merged, stretches: Stretches) -> dict[str, pa.Array]:
        """Partial columns by name, one row per stretch."""
        order = pa.array(merged.order)
        made: dict[str, pa.Array] = {}
        for part, names in self._layout.parts:
            columns = [one_array(table.column(name).take(order)) for name in names]
            made.update(zip(names, merged_partials(part, columns, stretches), strict=True))
        return made

    def closed(self, table: pa.Table, merged: Merged, windows: Stretches) -> pa.RecordBatch:
        """The rows that come out of these windows."""
        if not windows.count:
            return self.nothing()
        partials = self.merged(table, merged, windows)
        keys = table.select(list(self._layout.by)).take(pa.array(merged.order[windows.begin]))
        starts = windows.at * self._layout.spec.slide_us
        known: dict[str, pa.Array] = {
            START: pa.array(starts),
            END: pa.array(starts + self._layout.spec.size_us),
            TIME: pa.array(starts),
            REPORT: pa.nulls(windows.count, pa.string()),
        }
        for name in self._layout.by:
            known[name] = one_array(keys.column(name))
        for name, final, names in self._layout.results:
            known[name] = self._final(name, final, [partials[one] for one in names])
        arrays = [_cast(known[field.name], field.type) for field in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def nothing(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in self.schema], schema=self.schema)

    def _final(self, name: str, final: str, partials: list[pa.Array]) -> pa.Array:
        if final == "value of struct":
            return partials[0].field(1) if not partials[0].null_count else _field_or_null(partials[0])
        if final == "as it is":
            return partials[0]
        kind, columns = self.schema.field(name).type, [as_column(one) for one in partials]
        if final == "avg of decimals":
            return as_arrow(finish(final, columns, digits=kind.scale - partials[0].type.scale), kind)
        return as_arrow(finish(final, columns), kind)


def _field_or_null(structs: pa.Array) -> pa.Array:
    """The value of each struct; a null struct has none."""
    return pc.if_else(structs.is_valid(), structs.field(1), None)


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind) and pa.types.is_integer(array.type):
        return array.cast(pa.timestamp("us")).cast(kind) if kind.tz is None else array.cast(kind)
    return array if array.type == kind else array.cast(kind)
