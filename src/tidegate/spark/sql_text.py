"""Pieces of SQL text for expressions that are rebuilt in every batch: one call into Java for each."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import types as T

from tidegate.spark.keys import quoted


def literal(value: list[Any], kind: str) -> str:
    """An array as data: it is passed to the compiled code, so that another one needs no compilation."""
    return f"from_json('{json.dumps(value, separators=(',', ':'))}', '{kind}')"


def hashable(field: T.StructField) -> str:
    """A column as arguments of Spark's hash: maps, and what contains them, as text.

    The hash passes over nulls, so that (null, 1) and (1, null) would be the same: that a value is null is an
    argument of its own.
    """
    name = quoted(field.name)
    value = f"to_json(struct({name}))" if _has_map(field.dataType) else name
    return f"{value}, isnull({name})"


def key_of(field: T.StructField) -> str:
    """The same for a column that must be told from others: nested values with their nulls, as text."""
    if not isinstance(field.dataType, (T.ArrayType, T.StructType)):
        return hashable(field)
    return f"{hashable(field)}, to_json(struct({quoted(field.name)}), map('ignoreNullFields', 'false'))"


def _has_map(kind: T.DataType) -> bool:
    if isinstance(kind, T.ArrayType):
        return _has_map(kind.elementType)
    if isinstance(kind, T.StructType):
        return any(_has_map(field.dataType) for field in kind.fields)
    return isinstance(kind, (T.MapType, T.VariantType))
