"""The columns of a join: those stored of each side, and those of the joined row.

`api/joins/joined_columns.py` has the rule by which a joined row is made of the columns of its sides. Semi and
anti joins return the left columns only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

from tidegate.api.joins.joined_columns import JoinedColumn, joined_columns
from tidegate.api.nodes import Join, Node, Source
from tidegate.api.nodes import name_of as node_name
from tidegate.api.streams import HIDDEN
from tidegate.driver.compile import ports
from tidegate.driver.compile.keys import Keys, column_named, quoted, same_names
from tidegate.driver.java_collections import java_items
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
    ComparedKey,
    OutputColumn,
)

#: A column of the joined row and its type.
JoinColumn = tuple[OutputColumn, T.DataType]


def output_columns(
    node: Join, left: DataFrame, right: DataFrame, keys: Keys, timed: bool
) -> list[JoinColumn]:
    """Columns of the joined row with their types, by the rule of `api/joins/joined_columns.py`."""
    names = [[field.name for field in visible(frame)] for frame in (left, right)]
    same = same_names(left.sparkSession)
    columns: list[JoinColumn] = []
    for one in joined_columns(names[0], names[1], node.keys, node.suffix, same):
        kinds = [
            None if name is None else frame.schema[name].dataType
            for frame, name in ((left, one.left), (right, one.right))
        ]
        if None not in kinds and kinds[0] != kinds[1] and node.how in ("right", "full"):
            key = next(key for key in keys.keys if (key.left, key.right) == (one.left, one.right))
            columns.append((OutputColumn(one.name, key.hidden, key.hidden), key.type))
        else:
            kind = kinds[0] or kinds[1]
            if kind is not None:
                columns.append((_shown(one, node), kind))
    if timed:
        columns.append((OutputColumn(TIME, TIME, TIME), T.LongType()))
    return columns


def _shown(column: JoinedColumn, node: Join) -> OutputColumn:
    left, right = column.left, column.right
    return OutputColumn(
        column.name,
        None if left is None else _stored(left, node.left),
        None if right is None else _stored(right, node.right),
    )


def residual_condition(node: Join, left: DataFrame, right: DataFrame, keys: Keys) -> Any:
    """`where` and the rest of an SQL condition, over the columns of the joined row; None without either."""
    if node.rest is None:
        return node.where
    names = [[field.name for field in visible(frame)] for frame in (left, right)]
    same = same_names(left.sparkSession)
    made = joined_columns(names[0], names[1], node.keys, node.suffix, same)
    shown = {
        (side, same(name)): one.name
        for one in made
        for side, name in enumerate((one.left, one.right))
        if name
    }

    def name_of(side: int, column: str) -> str:
        # Refuses a column that does not exist, if that was not known before.
        found = column_named((left, right)[side], column, node_name((node.left, node.right)[side]), "column")
        return shown[side, same(found)]

    text = node.rest.over(name_of)
    if node.where is None:
        return text
    return f"{text} AND ({node.where})" if isinstance(node.where, str) else F.expr(text) & node.where


def check_times(node: Join, left: DataFrame, right: DataFrame) -> None:
    """SQL bounds compare columns; these must still be the event times, whatever steps lie in between."""
    if not node.timed_by_sql:
        return
    for side, frame in ((node.left, left), (node.right, right)):
        source, steps = ports.steps_of(side)
        if not steps or not isinstance(source, Source):
            continue
        if _identity(source.frame, source.time) != _identity(frame, source.time):
            raise FlowError(
                f"Column {source.time!r} of stream {source.name!r} is not its event time any more",
                code="JOIN_SQL_TIME_REPLACED",
                got="a step in front of the join that replaces it",
                why="The SQL condition of the join bounds this column, but rows are joined by event time",
                do="Give the new column another name, or bound the time by within=…",
            )


def _identity(frame: DataFrame, column: str) -> int | None:
    """Spark's number of a column; the same where a column was passed on unchanged."""
    outputs = java_items(frame._jdf.queryExecution().analyzed().output())
    return next((int(one.exprId().id()) for one in outputs if one.name() == column), None)


def pruned(columns: Sequence[JoinColumn], selected: tuple[str, ...] | None) -> list[JoinColumn]:
    """The selected columns and the hidden ones; all columns if a selected name does not exist."""
    by_name = {column.name: (column, kind) for column, kind in columns}
    if selected is None or not set(selected) <= set(by_name):
        return list(columns)
    hidden = [name for name in by_name if name.startswith(HIDDEN)]
    return [by_name[name] for name in (*selected, *hidden)]


def with_repaired_batch(
    columns: Sequence[JoinColumn],
) -> list[JoinColumn]:
    """The columns of a joined row, and the batch that skipped it."""
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
        if key.hidden and not key.expressions and all(key.hidden != name for name, _ in hidden):
            hidden.append((key.hidden, key.canonical(side)))
    for name, value in hidden:
        stored.append((name, value, frame.select(value.alias(name)).schema[name].dataType))
    return stored


def compared(
    verify: Sequence[ComparedKey], left_time: str | None, right_time: str | None
) -> tuple[ComparedKey, ...]:
    """The stored columns to compare; the event time is stored as TIME."""
    return tuple(
        replace(
            key,
            left=TIME if key.left == left_time else key.left,
            right=TIME if key.right == right_time else key.right,
        )
        for key in verify
    )


def spark_schema(
    columns: Sequence[JoinColumn], references: bool = False, cells: bool = False
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
                code="JOIN_COLUMN_TYPE_UNSUPPORTED",
                got=f.dataType.simpleString(),
                why="Rows are stored in Arrow, which has no such type",
                do=f"Drop it, or convert it with with_column, before {operator}",
            ) from error
    serialised: bytes = pa.schema(fields).serialize().to_pybytes()
    return serialised
