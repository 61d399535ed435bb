"""Join keys in Spark: one 64-bit code per row, and the columns that must be compared besides.

Equality is Spark's own: both columns are cast to the type that Spark's analyser picks for `left = right`,
-0.0 equals 0.0, NaN equals NaN, collated strings compare by their collation key. The code is XXH64 of the
canonical key. Over one value of at most 64 bits XXH64 is a bijection, so equal codes mean equal keys. In all
other cases equal codes only give candidate pairs, whose canonical keys are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.utils import get_active_spark_context

from tidegate.api.streams import HIDDEN
from tidegate.errors import FlowError

_SMALL = (T.BooleanType, T.ByteType, T.ShortType, T.IntegerType, T.DateType)
_WHOLE = (*_SMALL, T.LongType, T.TimestampType, T.TimestampNTZType, T.DayTimeIntervalType)
_REFUSED = (T.ArrayType, T.MapType, T.StructType, T.VariantType, T.NullType)
#: The hash of keys. Tests replace it by a worse one to get collisions.
hash_of: Callable[..., Column] = F.xxhash64


@dataclass(frozen=True)
class Key:
    """One pair of key columns."""

    left: str
    right: str
    type: T.DataType
    #: The stored column that holds the canonical key; None where the columns themselves are canonical.
    hidden: str | None

    def canonical(self, column: str) -> Column:
        value = F.col(quoted(column)).cast(self.type)
        if isinstance(self.type, (T.DoubleType, T.FloatType)):
            return value + F.lit(0.0).cast(self.type)
        if isinstance(self.type, T.StringType) and not is_binary(self.type):
            return _collation_key(value)
        return value


@dataclass(frozen=True)
class Keys:
    """All key columns of a join."""

    keys: tuple[Key, ...]

    @property
    def exact(self) -> bool:
        """Whether equal codes mean equal keys; true without keys."""
        if not self.keys:
            return True
        if len(self.keys) == 2:
            return all(isinstance(key.type, _SMALL) for key in self.keys)
        return len(self.keys) == 1 and _fits_64_bits(self.keys[0].type)

    @property
    def verify(self) -> tuple[tuple[str, str], ...]:
        """Stored columns, left and right, to compare on every candidate pair."""
        if self.exact:
            return ()
        return tuple((key.hidden or key.left, key.hidden or key.right) for key in self.keys)

    def hidden(self, side: int) -> list[tuple[str, Column]]:
        """Canonical keys that must be stored beside the columns of a side."""
        if self.exact:
            return []
        return [(k.hidden, k.canonical((k.left, k.right)[side])) for k in self.keys if k.hidden]

    def code(self, side: int) -> Column:
        columns = [key.canonical((key.left, key.right)[side]) for key in self.keys]
        if self.exact and len(columns) == 2:
            high, low = (_as_long(c, k.type) for c, k in zip(columns, self.keys, strict=True))
            return hash_of(F.shiftleft(high, 32).bitwiseOR(low.bitwiseAND(F.lit(0xFFFFFFFF))))
        if self.exact and isinstance(self.keys[0].type, _SMALL):
            return hash_of(_as_long(columns[0], self.keys[0].type))
        return hash_of(*columns)

    def is_null(self, side: int) -> Column:
        result = F.lit(False)
        for key in self.keys:
            result = result | F.col(quoted((key.left, key.right)[side])).isNull()
        return result


def match_keys(left: DataFrame, right: DataFrame, pairs: tuple[tuple[str, str], ...]) -> Keys:
    """Check the key columns of both sides and find the types they are compared in."""
    keys = []
    for number, (left_name, right_name) in enumerate(pairs):
        left_type, right_type = type_of(left, left_name, "left"), type_of(right, right_name, "right")
        common = _common_type(left.sparkSession, left_type, right_type, left_name, right_name)
        plain = left_type == right_type == common and _is_plain(common)
        keys.append(Key(left_name, right_name, common, None if plain else f"{HIDDEN}key{number}"))
    return Keys(tuple(keys))


def quoted(column: str) -> str:
    """A column name that Spark takes literally, including dots."""
    return "`" + column.replace("`", "``") + "`"


def type_of(frame: DataFrame, name: str, side: str, what: str = "key column") -> T.DataType:
    """The type of a column that a join compares."""
    if name not in frame.columns:
        raise FlowError(
            f"The {side} stream has no {what} {name!r}",
            got="columns " + ", ".join(c for c in frame.columns if not c.startswith(HIDDEN)),
            do="Name columns of both streams in on=…",
        )
    return frame.schema[name].dataType


def _common_type(
    spark: SparkSession, left: T.DataType, right: T.DataType, left_name: str, right_name: str
) -> T.DataType:
    for kind in (left, right):
        if isinstance(kind, _REFUSED):
            raise FlowError(
                f"A {kind.simpleString()} column cannot be a join key",
                got=f"{left_name!r} = {right_name!r}",
                do="Join on its parts, or on a string or number made of it",
            )
    if left == right:
        return left
    probe = spark.createDataFrame([], T.StructType([T.StructField("l", left), T.StructField("r", right)]))
    try:
        # Only analysis is needed: the type in which Spark compares the two columns.
        analyzed = probe.select((F.col("l") == F.col("r")).alias("e"))._jdf.queryExecution().analyzed()
    except AnalysisException as error:
        raise FlowError(
            "Key columns of these types are never equal in Spark",
            got=f"{left_name!r}: {left.simpleString()}, {right_name!r}: {right.simpleString()}",
            do="Cast one of them with with_column before the join",
        ) from error
    equality = analyzed.expressions().head().child()
    return T._parse_datatype_json_string(equality.left().dataType().json())


def _collation_key(value: Column) -> Column:
    """Bytes that are equal if the collation says so. Spark has an expression for it but no function."""
    jvm: Any = get_active_spark_context()._jvm
    bridge = jvm.org.apache.spark.sql.classic.ExpressionUtils
    given = bridge.expression(value._jc)
    return Column(bridge.column(jvm.org.apache.spark.sql.catalyst.expressions.CollationKey(given)))


def is_binary(kind: T.StringType) -> bool:
    """Whether these strings compare byte by byte."""
    return getattr(kind, "collation", "UTF8_BINARY") == "UTF8_BINARY"


def _is_plain(kind: T.DataType) -> bool:
    if isinstance(kind, T.StringType):
        return is_binary(kind)
    return True


def _fits_64_bits(kind: T.DataType) -> bool:
    if isinstance(kind, T.DecimalType):
        return kind.precision <= 18
    return isinstance(kind, (*_WHOLE, T.FloatType, T.DoubleType))


def _as_long(column: Column, kind: T.DataType) -> Column:
    if isinstance(kind, T.DateType):
        return F.unix_date(column).cast("long")
    if isinstance(kind, T.BooleanType):
        return column.cast("int").cast("long")
    return column.cast("long")
