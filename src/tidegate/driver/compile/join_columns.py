"""The columns of a join: those stored of each side, and those of the joined row.

Equality keys come first and once, under the left name; then the other left columns, then the right ones, with
the suffix `_right` if names clash. Semi and anti joins return the left columns only.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

from tidegate.api.nodes import Join, Node, Source
from tidegate.api.streams import HIDDEN
from tidegate.driver.compile import ports
from tidegate.driver.compile.keys import Keys, quoted
from tidegate.errors import FlowError
from tidegate.worker.runtime.layout import (
    CELL,
    LEFT_ROW,
    LEFT_RUN,
    REPAIRED,
    REPORT,
    RIGHT_ROW,
    RIGHT_RUN,
    TIME,
    OutputColumn,
)


def output_columns(
    node: Join, left: DataFrame, right: DataFrame, keys: Keys, timed: bool
) -> list[tuple[OutputColumn, T.DataType]]:
    """Columns of the joined row with their types: keys once, then the left side, then the right."""
    coalesced = node.how in ("right", "full")
    columns: list[tuple[OutputColumn, T.DataType]] = []
    for key in keys.keys:
        left_type, right_type = left.schema[key.left].dataType, right.schema[key.right].dataType
        if coalesced and left_type != right_type:
            columns.append((OutputColumn(key.left, key.hidden, key.hidden), key.type))
        else:
            stored = OutputColumn(key.left, _stored(key.left, node.left), _stored(key.right, node.right))
            columns.append((stored, left_type))
    left_keys, right_keys = {k.left for k in keys.keys}, {k.right for k in keys.keys}
    for f in visible(left):
        if f.name not in left_keys:
            columns.append((OutputColumn(f.name, _stored(f.name, node.left), None), f.dataType))
    # As Spark resolves names: V and v clash, unless the session is case-sensitive.
    same = str if left.sparkSession.conf.get("spark.sql.caseSensitive") == "true" else str.lower
    taken = {same(column.name) for column, _ in columns}
    for f in visible(right):
        if f.name not in right_keys:
            shown = f"{f.name}_right" if same(f.name) in taken else f.name
            if same(shown) in taken:
                raise FlowError(
                    "Two columns of the joined row have the same name",
                    got=shown,
                    do="Rename one with select or with_column before the join",
                )
            taken.add(same(shown))
            columns.append((OutputColumn(shown, None, _stored(f.name, node.right)), f.dataType))
    if timed:
        columns.append((OutputColumn(TIME, TIME, TIME), T.LongType()))
    return columns


def pruned(
    columns: Sequence[tuple[OutputColumn, T.DataType]], selected: tuple[str, ...] | None
) -> list[tuple[OutputColumn, T.DataType]]:
    """The selected columns and the hidden ones; all columns if a selected name does not exist."""
    by_name = {column.name: (column, kind) for column, kind in columns}
    if selected is None or not set(selected) <= set(by_name):
        return list(columns)
    hidden = [name for name in by_name if name.startswith(HIDDEN)]
    return [by_name[name] for name in (*selected, *hidden)]


def with_repaired_batch(
    columns: Sequence[tuple[OutputColumn, T.DataType]],
) -> list[tuple[OutputColumn, T.DataType]]:
    """The columns of a joined row, and the batch that skipped it."""
    if any(column.name.lower() == REPAIRED for column, _ in columns):
        raise FlowError(
            f"A column {REPAIRED!r} is in the way",
            why="With repair, joined rows say in it which batch they should have come in",
            do="Rename it with select or with_column before the join, or use repair=None",
        )
    return [*columns, (OutputColumn(REPAIRED, None, None), T.LongType())]


def _stored(column: str, node: Node) -> str:
    """The stored column that holds a visible one."""
    return TIME if column == time_name(node) else column


def time_name(node: Node) -> str | None:
    """The visible column that equals the event time, and so is not stored a second time."""
    base, steps = ports.steps_of(node)
    if isinstance(base, Source) and all(step.kind == "filter" for step in steps):
        return base.time
    return None


def visible(frame: DataFrame) -> list[T.StructField]:
    """The user's columns of a frame."""
    return [f for f in frame.schema.fields if not f.name.startswith(HIDDEN)]


def stored_columns(
    frame: DataFrame, time_name: str | None, keys: Keys, side: int
) -> list[tuple[str, Column, T.DataType]]:
    """Columns of a side as they are stored: name, expression, type."""
    stored = [
        (f.name, F.col(quoted(f.name)), f.dataType)
        for f in frame.schema.fields
        if f.name != time_name and f.name != TIME
    ]
    hidden = list(keys.hidden(side))
    for key in keys.keys:
        if key.hidden and all(key.hidden != name for name, _ in hidden):
            hidden.append((key.hidden, key.canonical((key.left, key.right)[side])))
    for name, value in hidden:
        stored.append((name, value, frame.select(value.alias(name)).schema[name].dataType))
    return stored


def compared(
    verify: tuple[tuple[str, str], ...], left_time: str | None, right_time: str | None
) -> tuple[tuple[str, str], ...]:
    return tuple(
        (TIME if left == left_time else left, TIME if right == right_time else right)
        for left, right in verify
    )


def spark_schema(
    columns: Sequence[tuple[OutputColumn, T.DataType]], references: bool = False, cells: bool = False
) -> T.StructType:
    fields = [T.StructField(column.name, kind, True) for column, kind in columns]
    if cells:
        fields.append(T.StructField(CELL, T.IntegerType()))
    if references:
        fields += [T.StructField(n, T.LongType()) for n in (LEFT_RUN, LEFT_ROW, RIGHT_RUN, RIGHT_ROW)]
    return T.StructType([*fields, T.StructField(REPORT, T.StringType(), True)])


def arrow_schema(schema: T.StructType, operator: str) -> bytes:
    fields = []
    for f in schema.fields:
        try:
            fields.append(pa.field(f.name, to_arrow_type(f.dataType, timezone="UTC"), True))
        except PySparkException as error:
            raise FlowError(
                f"Column {f.name!r} of {operator} cannot be stored",
                got=f.dataType.simpleString(),
                why="Rows are kept in Arrow, which has no such type",
                do="Leave it out, or convert it before the join",
            ) from error
    serialised: bytes = pa.schema(fields).serialize().to_pybytes()
    return serialised
