"""Columns as coordinates: which columns range queries can use, and how their values become numbers.

When a query starts, Spark types become kinds of axes. In a batch, Spark columns become coordinates for the
sifter; tasks do the same with Arrow columns (`worker/match/task.py`).
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tidegate.api.nodes import Match
from tidegate.driver.compile.join_columns import visible
from tidegate.driver.compile.keys import is_binary, quoted
from tidegate.errors import FlowError
from tidegate.sift.queries.axes import Axis
from tidegate.worker.runtime.layout import QUERY_NAME, REPORT, TIME

_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
#: Different decimals with more digits could be equal as doubles.
_DIGITS_EXACT = 15


def kinds_of(schema: T.StructType) -> dict[str, str]:
    """The kind of axis of each column; the name of its type if queries cannot use it."""
    return {field.name: _kind(field.dataType) or field.dataType.simpleString() for field in schema.fields}


def _kind(kind: T.DataType) -> str | None:
    if isinstance(kind, _WHOLE):
        return "integer"
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        return "number"
    if isinstance(kind, T.DecimalType):
        return "number" if kind.precision <= _DIGITS_EXACT else None
    if isinstance(kind, T.BooleanType) or (isinstance(kind, T.StringType) and is_binary(kind)):
        return "category"
    return None


def check_mark(node: Match, frame: DataFrame) -> None:
    """If sources sift, the column in which they mark samples must exist."""
    if node.sample_column is not None and (
        node.sample_column not in frame.columns
        or not isinstance(frame.schema[node.sample_column].dataType, T.BooleanType)
    ):
        raise FlowError(
            f"sample_column {node.sample_column!r} is not a boolean column of the stream",
            code="MATCH_SAMPLE_COLUMN_INVALID",
            got="columns " + ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in visible(frame)),
            do="Name the column that `tidegate sift --mark` adds, and keep it in every step before match",
        )


def match_schema(frame: DataFrame, timed: bool) -> T.StructType:
    """The columns of the row, the query, the time if needed, and the report last."""
    fields = [T.StructField(field.name, field.dataType, True) for field in visible(frame)]
    if any(field.name.lower() == QUERY_NAME for field in fields):
        raise FlowError(
            f"The stream already has a column {QUERY_NAME!r}",
            code="MATCH_COLUMN_EXISTS",
            why="match writes the name of the query there",
            do="Rename it with with_column_renamed before match",
        )
    fields.append(T.StructField(QUERY_NAME, T.StringType(), True))
    if timed:
        fields.append(T.StructField(TIME, T.LongType(), True))
    return T.StructType([*fields, T.StructField(REPORT, T.StringType(), True)])


def coordinate_sql(axis: Axis) -> str:
    """The coordinate in Spark SQL; null if there is none. Strings are quoted by `hex`."""
    column = quoted(axis.column)
    if axis.kind != "category":
        return f"cast({column} as double)"
    texts = ", ".join(f"decode(X'{text.encode().hex()}', 'utf-8')" for text in axis.categories)
    place = f"array_position(array({texts}), cast({column} as string))" if texts else f"0 * length({column})"
    return f"cast(if({place} = 0, {axis.other}, {place} - 1) as double)"
