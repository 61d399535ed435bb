"""The columns of a window aggregate: what it may group by, what comes out, what a checkpoint holds it to."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tidegate.errors import FlowError, explain
from tidegate.spark.compiled import CompiledWindow
from tidegate.spark.joined_row import visible
from tidegate.spark.keys import is_binary
from tidegate.spark.layout import REPORT, TIME
from tidegate.spark.window_aggregates import Taken
from tidegate.windowed import END, START, Window

_PLAIN = (T.IntegralType, T.BooleanType, T.DateType, T.TimestampType, T.TimestampNTZType, T.DecimalType)


def check_by(node: Window, frame: DataFrame) -> None:
    """Groups are told apart by columns that are there."""
    known = [field.name for field in visible(frame)]
    missing = [name for name in node.by if name not in known]
    if missing:
        raise FlowError(
            explain(
                "A window groups by columns that its stream does not have",
                got=f"{', '.join(missing)}; the stream has {', '.join(known)}",
                do="Name columns as they are, or add them with with_column",
            )
        )


def plain_keys(node: Window, frame: DataFrame) -> bool:
    """No floats, whose zeros and NaNs come in several forms, no collations, nothing nested."""
    kinds = [frame.schema[name].dataType for name in node.by]
    return all(isinstance(kind, _PLAIN) or (type(kind) is T.StringType and is_binary(kind)) for kind in kinds)


def window_schema(
    node: Window, frame: DataFrame, taken: Taken, time_type: T.DataType, timed: bool
) -> T.StructType:
    """Start and end of the window, the key, the aggregates, perhaps the time, and a report at the end."""
    fields = [T.StructField(START, time_type), T.StructField(END, time_type)]
    fields += [T.StructField(name, frame.schema[name].dataType) for name in node.by]
    fields += [T.StructField(result.name, kind) for result, kind in taken.results]
    if timed:
        fields.append(T.StructField(TIME, T.LongType()))
    return T.StructType([*fields, T.StructField(REPORT, T.StringType())])


def window_fingerprint(window: CompiledWindow) -> dict[str, Any]:
    """What must not change between two runs on one checkpoint: stored partials depend on it."""
    spec = window.layout.spec
    return {
        "size_us": spec.size_us,
        "slide_us": spec.slide_us,
        "stream": window.layout.stream,
        "by": list(window.layout.by),
        "arguments": window.taken.described,
        "partials": [text for _, text in window.taken.partials],
        "udafs": {
            name: {"state": layout.declared, "merge": layout.udaf.merge is not None}
            for name, layout in window.layout.udafs.items()
        },
        "output": window.schema.simpleString(),
    }
