"""SQL text for expressions that are rebuilt in every batch: text costs one call into Java."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidegate.driver.compile.keys import quoted
from tidegate.model.times import BEGINNING_US
from tidegate.worker.runtime.layout import TIME


def literal(value: list[Any], kind: str) -> str:
    """An array as data to the compiled code, so that new values need no compilation."""
    return f"from_json('{json.dumps(value, separators=(',', ':'))}', '{kind}')"


def data(value: float, kind: str, time: str = TIME) -> str:
    """A number as data to the compiled code: an array entry whose index depends on the row's time.

    The index is always 0, because no time is below the beginning, but Spark cannot know this and so does not
    fold the expression. (A null test would be folded for columns without nulls.)
    """
    return f"get({literal([value], f'array<{kind}>')}, cast({time} < {BEGINNING_US}L as int))"


def distinguished(values: Sequence[tuple[str, T.DataType]]) -> str:
    """Arguments for a Spark hash such that different values have different hash inputs.

    Spark's hashes skip nulls and do not mark the ends of nested values: (null, 1) would hash as (1, null) and
    [[1], [2]] as [[1, 2]]. A single value that is not nested is used as it is.
    """
    if len(values) == 1 and not isinstance(values[0][1], _NESTED):
        return values[0][0]
    return ", ".join(one for value, kind in values for one in _marked(value, kind, 0))


def lot_bits(seed: int, batch: int, columns: Sequence[T.StructField]) -> str:
    """64 bits that decide the fate of a row: a hash of its time, these columns, the batch and the seed.

    A replay decides the same. Rows that are equal in all of this share their fate: nothing else distinguishes
    them that Spark promises to be the same in a replay. (The place of a row in its task depends on how files
    are split, which depends on the number of cores.) Columns that nothing reads should be left out, because
    reading them would cost more than they distinguish.
    """
    values = [_hashable(field) for field in columns]
    return f"xxhash64({', '.join([f'{seed}L', data(batch, 'bigint'), TIME, *values])})"


def lot(seed: int, batch: int, columns: Sequence[T.StructField]) -> str:
    """The same as a whole number in [0, 2^53), which Spark compares at less cost than a double."""
    return f"shiftrightunsigned({lot_bits(seed, batch, columns)}, 11)"


def lot_limit(share: float) -> int:
    """The number of lots that a share of all rows has, rounded up: lots below it make up this share."""
    return math.ceil(share * 2.0**53)


def _hashable(field: T.StructField) -> str:
    """A column that Spark hashes: maps and variants have no hash, so their text stands in for them."""
    name, kind = quoted(field.name), field.dataType.json()
    return f"to_json(struct({name}))" if '"map"' in kind or '"variant"' in kind else name


_NESTED = (T.ArrayType, T.StructType, T.MapType, T.VariantType)


def _marked(value: str, kind: T.DataType, depth: int) -> list[str]:
    """A value with marks for null and length."""
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
