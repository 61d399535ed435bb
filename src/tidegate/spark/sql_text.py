"""Pieces of SQL text for expressions that are rebuilt in every batch: one call into Java for each."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import types as T

from tidegate.spark.keys import quoted
from tidegate.spark.layout import TIME
from tidegate.values import BEGINNING_US

#: Always 0, which Spark does not know: no time is below the first. (A test for null would not do: of columns
#: without nulls Spark knows the answer.)
ZERO = f"cast({TIME} < {BEGINNING_US}L as int)"


def literal(value: list[Any], kind: str) -> str:
    """An array as data: it is passed to the compiled code, so that another one needs no compilation."""
    return f"from_json('{json.dumps(value, separators=(',', ':'))}', '{kind}')"


def data(value: float, kind: str) -> str:
    """A number as data, beside a TIME: out of an array, at a place that Spark must ask each row for."""
    return f"get({literal([value], f'array<{kind}>')}, {ZERO})"


def hashable(field: T.StructField) -> str:
    """A column as something that Spark can hash: maps, and what contains them, as text."""
    name = quoted(field.name)
    return f"to_json(struct({name}))" if _has_map(field.dataType) else name


def _has_map(kind: T.DataType) -> bool:
    if isinstance(kind, T.ArrayType):
        return _has_map(kind.elementType)
    if isinstance(kind, T.StructType):
        return any(_has_map(field.dataType) for field in kind.fields)
    return isinstance(kind, (T.MapType, T.VariantType))
