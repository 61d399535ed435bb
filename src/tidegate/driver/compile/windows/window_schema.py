"""The columns of a window aggregate: grouping columns, output schema, fingerprint for the checkpoint."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tidegate.api.nodes import Window, name_of
from tidegate.driver.compile.join_columns import visible
from tidegate.driver.compile.keys import is_binary
from tidegate.driver.compile.windows.window_aggregates import PartialAggregates
from tidegate.errors import FlowError
from tidegate.window.spec import END, HIGH, LOW, START
from tidegate.worker.runtime.layout import REPORT, TIME, WindowLayout

_PLAIN = (T.IntegralType, T.BooleanType, T.DateType, T.TimestampType, T.TimestampNTZType, T.DecimalType)


def check_by(node: Window, frame: DataFrame) -> None:
    """The grouping columns must exist and be hashable."""
    known = [field.name for field in visible(frame)]
    missing = [name for name in node.by if name not in known]
    if missing:
        raise FlowError(
            f"A window groups by columns that {name_of(node.parent)!r} does not have",
            code="WINDOW_BY_UNKNOWN",
            got=f"by={', '.join(missing)}; columns {', '.join(known)}",
            do="Name columns of the stream in by=…, or add them with with_column",
        )
    unclear = [name for name in node.by if not _equal_where_hashes_are(frame.schema[name].dataType)]
    if unclear and (node.approximate or node.spec.counts_rows or node.drops_groups):
        which = "Windows of rows" if node.spec.counts_rows else "Approximate windows"
        which = 'Windows with drop="groups"' if node.drops_groups else which
        raise FlowError(
            f"{which} cannot group by columns of this type",
            code="WINDOW_BY_TYPE_INVALID",
            got=", ".join(f"{name}: {frame.schema[name].dataType.simpleString()}" for name in unclear),
            why="Groups are distinguished by a hash, and equal values of this type may have different ones",
            do="Group by a part of it, or by a string or number made of it with with_column",
        )


def check_rows(node: Window, taken: PartialAggregates) -> None:
    """Windows of rows are computed from single rows, so every partial must exist for a single row."""
    if node.spec.counts_rows and not taken.may_go_by_row:
        raise FlowError(
            "Windows of rows cannot have approximate aggregates",
            code="ROW_WINDOW_SKETCH",
            got=", ".join(taken.sketched),
            why="A sketch would be larger than the few rows of a window",
            do="Use collect_set or collect_list, or a tg.Aggregator, which can see all rows of a window",
        )


def columns_read(node: Window, taken: PartialAggregates) -> set[str] | None:
    """Columns that a window reads; None: all, because sampling and row order hash the whole row."""
    if node.approximate or node.spec.counts_rows:
        return None
    return {*node.by, *taken.reads}


def plain_keys(node: Window, frame: DataFrame) -> bool:
    """Whether keys have no floats (several forms of zero and NaN), no collations and nothing nested."""
    kinds = [frame.schema[name].dataType for name in node.by]
    return all(isinstance(kind, _PLAIN) or (type(kind) is T.StringType and is_binary(kind)) for kind in kinds)


def _equal_where_hashes_are(kind: T.DataType, inside: bool = False) -> bool:
    """False for maps (entries have no order), collated strings, and floats inside other types."""
    if isinstance(kind, T.ArrayType):
        return _equal_where_hashes_are(kind.elementType, True)
    if isinstance(kind, T.StructType):
        return all(_equal_where_hashes_are(field.dataType, True) for field in kind.fields)
    if isinstance(kind, T.StringType):
        return is_binary(kind)
    return not isinstance(kind, (T.MapType, T.VariantType)) and not (
        inside and isinstance(kind, T.FractionalType)
    )


def window_schema(
    node: Window, frame: DataFrame, taken: PartialAggregates, time_type: T.DataType, timed: bool
) -> T.StructType:
    """Start and end of the window, the key, the aggregates, the time if needed, and the report last."""
    fields = [T.StructField(START, time_type), T.StructField(END, time_type)]
    fields += [T.StructField(name, frame.schema[name].dataType) for name in node.by]
    for result, kind in taken.results:
        fields.append(T.StructField(result.name, kind))
        if node.approximate:
            fields += [T.StructField(result.name + end, bound_type(kind)) for end in (LOW, HIGH)]
    if timed:
        fields.append(T.StructField(TIME, T.LongType()))
    return T.StructType([*fields, T.StructField(REPORT, T.StringType())])


def bound_type(kind: T.DataType) -> T.DataType:
    """The type of interval bounds: double for numbers; other values have bounds only if exact."""
    return T.DoubleType() if isinstance(kind, T.NumericType) else kind


def window_fingerprint(
    layout: WindowLayout, taken: PartialAggregates, schema: T.StructType
) -> dict[str, Any]:
    """What must not change between two runs on one checkpoint, because stored partials depend on it."""
    return {
        **asdict(layout.spec),
        "stream": layout.stream,
        "by": list(layout.by),
        "arguments": taken.described,
        "partials": [text for _, text in taken.partials],
        "aggregators": {
            name: {"state": udaf.declared, "merge": udaf.udaf.merge is not None}
            for name, udaf in layout.udafs.items()
        },
        "output": schema.simpleString(),
    }
