"""Pieces of SQL text for expressions that are rebuilt in every batch: one call into Java for each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidegate.driver.compile.keys import quoted
from tidegate.model.times import BEGINNING_US
from tidegate.worker.runtime.layout import TIME


def literal(value: list[Any], kind: str) -> str:
    """An array as data: it is passed to the compiled code, so that another one needs no compilation."""
    return f"from_json('{json.dumps(value, separators=(',', ':'))}', '{kind}')"


def data(value: float, kind: str, time: str = TIME) -> str:
    """A number as data, beside a time: out of an array, at a place that Spark must ask each row for.

    It is always the first: no time is below the beginning, which Spark does not know. (A test for null would
    not do: of columns without nulls Spark knows the answer.)
    """
    return f"get({literal([value], f'array<{kind}>')}, cast({time} < {BEGINNING_US}L as int))"


def distinguished(values: Sequence[tuple[str, T.DataType]]) -> str:
    """What to hash, so that different values have different hashes.

    Spark's hashes skip nulls and do not mark where nested values end: (null, 1) would be (1, null), and
    [[1], [2]] would be [[1, 2]]. A single value that is not nested needs nothing besides.
    """
    if len(values) == 1 and not isinstance(values[0][1], _NESTED):
        return values[0][0]
    return ", ".join(one for value, kind in values for one in _marked(value, kind, 0))


_NESTED = (T.ArrayType, T.StructType, T.MapType, T.VariantType)


def _marked(value: str, kind: T.DataType, depth: int) -> list[str]:
    """A value with marks: whether it is null, and how long it is."""
    null = f"isnull({value})"
    if isinstance(kind, T.MapType):
        entry = T.StructType([T.StructField("key", kind.keyType), T.StructField("value", kind.valueType)])
        return _marked(f"map_entries({value})", T.ArrayType(entry), depth)
    if isinstance(kind, T.ArrayType):
        item = f"_tidegate_item{depth}"
        items = ", ".join(_marked(item, kind.elementType, depth + 1))
        return [null, f"size({value})", f"transform({value}, {item} -> struct({items}))"]
    if isinstance(kind, T.StructType):
        fields = [(f"{value}.{quoted(field.name)}", field.dataType) for field in kind.fields]
        return [null, *(one for text, inner in fields for one in _marked(text, inner, depth))]
    return [null, f"to_json({value})" if isinstance(kind, T.VariantType) else value]


def condition(where: Any) -> Column:
    """The user's condition as a column."""
    return F.expr(where) if isinstance(where, str) else where
