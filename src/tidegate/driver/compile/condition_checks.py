"""Checks join conditions and utilities when a query starts, so that no batch fails because of them.

Also computes the code that spreads the rows of a join without a key over instances.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidegate.api.joins.conditions import Condition, OnPairs, OnSets
from tidegate.api.nodes import Join
from tidegate.api.streams import HIDDEN
from tidegate.driver.compile.expression_checks import check_serialisable, spark_errors_as
from tidegate.driver.compile.keys import is_binary, quoted, type_of
from tidegate.driver.sql_text import condition
from tidegate.errors import FlowError
from tidegate.worker.runtime.layout import TIME

if TYPE_CHECKING:
    from tidegate.driver.operators.join import JoinOperator


def check_utility(spark: SparkSession, joins: Sequence[JoinOperator], utility: Any) -> None:
    """A utility must be a number that is computed from the columns of every inner join."""
    valued = [join for join in joins if join.layout.cells]
    if not valued:
        raise FlowError(
            "utility needs an inner join, whose pairs it values",
            code="SHED_UTILITY_WITHOUT_JOIN",
            got="a flow without an inner join",
            do="Leave out utility",
        )
    for join in valued:
        empty = spark.createDataFrame([], join.schema)
        known = ", ".join(column.name for column in join.layout.output)
        with spark_errors_as(
            f"utility cannot be computed from the rows of {join.name}",
            code="SHED_UTILITY_INVALID",
            do=f"Use columns of the joined row: {known}",
        ):
            kind = empty.select(condition(utility)).schema.fields[0].dataType
        if not isinstance(kind, T.NumericType):
            raise FlowError(
                "utility must be a number",
                code="SHED_UTILITY_INVALID",
                got=kind.simpleString(),
                do="Give a numeric column or expression, for example utility='fare'",
            )


_ITEMS = (
    T.BooleanType,
    T.ByteType,
    T.ShortType,
    T.IntegerType,
    T.LongType,
    T.DecimalType,
    T.StringType,
    T.BinaryType,
    T.DateType,
    T.TimestampType,
    T.TimestampNTZType,
)


def check_condition(
    condition: Condition, left: DataFrame, right: DataFrame, streams: tuple[str, str]
) -> None:
    """The columns exist and have types that can be compared, and a function is serialisable."""
    if not condition.holds_sets:
        check_serialisable(
            f"The pairwise function {cast(OnPairs, condition).name!r}", cast(OnPairs, condition).function
        )
    for names in condition.columns:
        kinds = [
            type_of(frame, name, stream, "column")
            for frame, name, stream in zip((left, right), names, streams, strict=True)
        ]
        if condition.holds_sets:
            one, other = (
                _items_of(kind, name, cast(OnSets, condition).weighted)
                for kind, name in zip(kinds, names, strict=True)
            )
            if one != other:
                raise FlowError(
                    "The items of the two sides have different types",
                    code="JOIN_ITEM_TYPES_DIFFER",
                    got=", ".join(f"{n!r}: {k.simpleString()}" for n, k in zip(names, kinds, strict=True)),
                    why="No item would ever be common",
                    do="Cast one of the columns with with_column before the join",
                )


def check_where(where: Any, joined: DataFrame, operator: str) -> None:
    """A residual condition must be boolean over the columns of `joined`."""
    known = ", ".join(name for name in joined.columns if not name.startswith(HIDDEN))
    with spark_errors_as(
        f"The `where` of {operator} does not fit its rows",
        code="JOIN_WHERE_INVALID",
        do=f"Use columns of the joined row: {known}",
    ):
        joined.filter(where)


def is_null(condition: Condition | None, side: int) -> Column:
    """True for rows that can never match because their set is null."""
    if condition is None or not condition.holds_sets:
        return F.lit(False)
    return F.col(quoted(condition.columns[0][side])).isNull()


def spreading_code(node: Join, frame: DataFrame) -> Column:
    """A code that spreads rows without a key; deterministic, so that a replay stores them in the same place.

    Matched bits are kept where a row is stored, so joins that need them store all rows in one place.
    """
    if node.how != "inner":
        return F.lit(0).cast("long")
    plain = [f.name for f in frame.schema.fields if not f.name.startswith(HIDDEN) and _hashable(f.dataType)]
    return F.xxhash64(F.col(TIME), *[F.col(quoted(name)) for name in plain])


def _hashable(kind: T.DataType) -> bool:
    """Spark cannot hash maps, nested ones included."""
    return "map<" not in kind.simpleString() and not isinstance(kind, T.VariantType)


def _items_of(kind: T.DataType, name: str, weighted: bool) -> T.DataType:
    """The type of the items of a set."""
    items, weights = _weighted_items(kind) if weighted else _plain_items(kind)
    good = isinstance(items, _ITEMS) and isinstance(weights, T.NumericType)
    if items is None or not good or (isinstance(items, T.StringType) and not is_binary(items)):
        wanted = (
            "a map from item to number, or an array of structs (item, number)" if weighted else "an array"
        )
        raise FlowError(
            f"Column {name!r} does not hold {'weighted ' if weighted else ''}sets of items",
            code="JOIN_ITEMS_TYPE_UNSUPPORTED",
            got=kind.simpleString(),
            do=f"Give {wanted}, with items that are whole numbers, decimals, strings, binaries, dates or "
            "times",
        )
    return items


def _plain_items(kind: T.DataType) -> tuple[T.DataType | None, T.DataType]:
    """The type of the items of an array, each of weight one; None if it is not an array."""
    return kind.elementType if isinstance(kind, T.ArrayType) else None, T.DoubleType()


def _weighted_items(kind: T.DataType) -> tuple[T.DataType | None, T.DataType]:
    """The types of items and weights of a map or an array of pairs; None if it is neither."""
    if isinstance(kind, T.MapType):
        return kind.keyType, kind.valueType
    if isinstance(kind, T.ArrayType) and isinstance(kind.elementType, T.StructType):
        fields = [field.dataType for field in kind.elementType.fields]
        if len(fields) == 2:
            return fields[0], fields[1]
    return None, T.DoubleType()
