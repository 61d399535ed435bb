"""Join keys in Spark: one 64-bit code per row, and the columns that must be compared besides.

Equality is Spark's own: both columns are cast to the type that Spark's analyser picks for `left = right`,
-0.0 equals 0.0, NaN equals NaN, collated strings compare by their collation key. The code is XXH64 of the
canonical key. Over one value of at most 64 bits XXH64 is a bijection, so equal codes mean equal keys. In all
other cases equal codes only give candidate pairs, whose canonical keys are compared.

A null key has no match, unless the key is null-safe: then nulls have a code like any other value, and
candidate pairs are always compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.utils import get_active_spark_context

from tidegate.api.joins.conditions import JoinKey
from tidegate.api.streams import HIDDEN
from tidegate.driver.compile.expression_checks import silent_loggers, spark_errors_as
from tidegate.errors import FlowError
from tidegate.worker.runtime.layout import ComparedKey

_SMALL = (T.BooleanType, T.ByteType, T.ShortType, T.IntegerType, T.DateType)
_WHOLE = (*_SMALL, T.LongType, T.TimestampType, T.TimestampNTZType, T.DayTimeIntervalType)
_REFUSED = (T.ArrayType, T.MapType, T.StructType, T.VariantType, T.NullType)
#: The hash of keys. Tests replace it by a worse one to get collisions.
hash_of: Callable[..., Column] = F.xxhash64


@dataclass(frozen=True)
class Key:
    """One pair of key columns, or of expressions (then `left` and `right` are SQL text)."""

    left: str
    right: str
    type: T.DataType
    #: The stored column that holds the canonical key; None where the columns themselves are canonical.
    hidden: str | None
    null_safe: bool = False
    expressions: bool = False

    def value(self, side: int) -> Column:
        """The key of a row of this side."""
        given = (self.left, self.right)[side]
        return F.expr(given) if self.expressions else F.col(quoted(given))

    def canonical(self, side: int) -> Column:
        value = self.value(side).cast(self.type)
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
        if any(key.null_safe for key in self.keys):
            return False
        if not self.keys:
            return True
        if len(self.keys) == 2:
            return all(isinstance(key.type, _SMALL) for key in self.keys)
        return len(self.keys) == 1 and _fits_64_bits(self.keys[0].type)

    @property
    def verify(self) -> tuple[ComparedKey, ...]:
        """Stored columns, left and right, to compare on every candidate pair."""
        if self.exact:
            return ()
        return tuple(
            ComparedKey(key.hidden or key.left, key.hidden or key.right, key.null_safe) for key in self.keys
        )

    def hidden(self, side: int) -> list[tuple[str, Column]]:
        """Canonical keys that must be stored beside the columns of a side."""
        if self.exact:
            return []
        return [(k.hidden, k.canonical(side)) for k in self.keys if k.hidden]

    def code(self, side: int) -> Column:
        columns = [key.canonical(side) for key in self.keys]
        if self.exact and len(columns) == 2:
            high, low = (_as_long(c, k.type) for c, k in zip(columns, self.keys, strict=True))
            return hash_of(F.shiftleft(high, 32).bitwiseOR(low.bitwiseAND(F.lit(0xFFFFFFFF))))
        if self.exact and isinstance(self.keys[0].type, _SMALL):
            return hash_of(_as_long(columns[0], self.keys[0].type))
        # Spark's hash skips nulls: (null, 1) would collide with (1, null).
        nulls = [key.value(side).isNull() for key in self.keys if key.null_safe]
        return hash_of(*columns, *nulls)

    def is_null(self, side: int) -> Column:
        """True for rows that match nothing because of a null in their key."""
        result = F.lit(False)
        for key in self.keys:
            if not key.null_safe:
                result = result | key.value(side).isNull()
        return result


def match_keys(left: DataFrame, right: DataFrame, pairs: Sequence[JoinKey], streams: tuple[str, str]) -> Keys:
    """Check the keys of both sides and find the types they are compared in."""
    keys = []
    for number, given in enumerate(pairs):
        one, other = given.left, given.right
        if given.expressions:
            left_type, right_type = _expression_type(left, one), _expression_type(right, other)
        else:
            one, other = column_named(left, one, streams[0]), column_named(right, other, streams[1])
            left_type, right_type = left.schema[one].dataType, right.schema[other].dataType
        common = _common_type(left.sparkSession, left_type, right_type, one, other)
        plain = left_type == right_type == common and _is_plain(common) and not given.expressions
        hidden = None if plain else f"{HIDDEN}key{number}"
        keys.append(Key(one, other, common, hidden, given.null_safe, given.expressions))
    return Keys(tuple(keys))


def _expression_type(frame: DataFrame, text: str) -> T.DataType:
    """The type of a key expression, which must give the same value whenever it is evaluated."""
    with spark_errors_as(f"Spark does not understand the join key {text}"):
        # A filter takes neither aggregates nor window functions, and no function that makes rows.
        frame.filter(F.expr(text).isNotNull())
        made = frame.select(F.expr(text).alias("key"))
    if not made._jdf.queryExecution().analyzed().expressions().head().deterministic():
        raise FlowError(
            "A join key is not deterministic",
            code="JOIN_KEY_RANDOM",
            got=text,
            why="A batch that runs again must find the same keys",
            do="Use columns and functions that give the same value every time",
        )
    return made.schema["key"].dataType


def same_names(session: SparkSession) -> Callable[[str], str]:
    """As Spark compares names: V and v are the same, unless the session is case-sensitive."""
    return str if session.conf.get("spark.sql.caseSensitive") == "true" else str.lower


def column_named(frame: DataFrame, name: str, stream: str, what: str = "key column") -> str:
    """The column that a name means, as the frame spells it; the error names the stream."""
    if name in frame.columns:
        return name
    same = same_names(frame.sparkSession)
    found = [one for one in frame.columns if same(one) == same(name) and not one.startswith(HIDDEN)]
    if len(found) != 1:
        raise FlowError(
            f"Stream {stream!r} of a join has no {what} {name!r}",
            code="JOIN_COLUMN_MISSING",
            got="columns " + ", ".join(c for c in frame.columns if not c.startswith(HIDDEN)),
            do='Name columns of both streams in on=…; if their names differ: on={"left_name": "right_name"}',
        )
    return found[0]


def quoted(column: str) -> str:
    """A column name that Spark takes literally, including dots."""
    return "`" + column.replace("`", "``") + "`"


def type_of(frame: DataFrame, name: str, stream: str, what: str = "key column") -> T.DataType:
    """The type of a column that a join compares."""
    return frame.schema[column_named(frame, name, stream, what)].dataType


def _common_type(
    spark: SparkSession, left: T.DataType, right: T.DataType, left_name: str, right_name: str
) -> T.DataType:
    for kind in (left, right):
        if isinstance(kind, _REFUSED):
            raise FlowError(
                f"A join key cannot have the type {kind.simpleString()}",
                code="JOIN_KEY_TYPE",
                got=f"{left_name!r} = {right_name!r}",
                do="Join on its parts, or on a string or number made of it",
            )
    if left == right:
        return left
    probe = spark.createDataFrame([], T.StructType([T.StructField("l", left), T.StructField("r", right)]))
    try:
        # Only analysis is needed: the type in which Spark compares the two columns.
        with silent_loggers():
            analyzed = probe.select((F.col("l") == F.col("r")).alias("e"))._jdf.queryExecution().analyzed()
    except AnalysisException as error:
        raise FlowError(
            "Key columns of these types are never equal in Spark",
            code="JOIN_KEY_TYPES_DIFFER",
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
