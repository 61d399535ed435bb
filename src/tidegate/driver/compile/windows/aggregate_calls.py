"""Finds the aggregate function of a user's expression: `F.sum("fare")`, or "sum(fare)" as text.

A Spark column is an unresolved tree; its root must be one aggregate function. Its arguments may be any
expressions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.classic.column import Column as ClassicColumn

from tidegate.api.streams import HIDDEN
from tidegate.driver.compile.expression_checks import spark_errors_as
from tidegate.driver.java_collections import java_items
from tidegate.errors import FlowError

#: Functions whose second argument says whether nulls are ignored.
_FLAGGED = ("first", "last", "any_value", "first_value", "last_value")


def called(frame: DataFrame, name: str, given: Any) -> tuple[str, list[Column]]:
    """The aggregate function and its arguments."""
    column = F.expr(given) if isinstance(given, str) else given
    if not isinstance(column, ClassicColumn):
        raise _refused(name, given, "it is not a Spark column")
    node = column._jc.node()
    while node.getClass().getSimpleName() == "Alias":
        node = node.child()
    kind = node.getClass().getSimpleName()
    if kind == "SqlExpression":
        # Text is parsed only now.
        with spark_errors_as(f"Aggregate {name!r}: Spark cannot parse it", code="AGGREGATE_SQL_INVALID"):
            return _parsed(frame, name, node.expression())
    if kind != "UnresolvedFunction" or not str(node.functionName()).isidentifier():
        raise _refused(name, given, "it is not one plain aggregate function")
    if node.isDistinct():
        raise _refused(name, given, _DISTINCT, _APPROXIMATELY)
    jvm = frame.sparkSession._jvm
    assert jvm is not None
    arguments = without_flag(name, str(node.functionName()), node.arguments())
    columns: list[Column] = [
        F.lit(1) if _is_star(one) else ClassicColumn(jvm.org.apache.spark.sql.Column(one))
        for one in arguments
    ]
    return str(node.functionName()), columns


def _parsed(frame: DataFrame, name: str, text: str) -> tuple[str, list[Column]]:
    """An aggregate that was given as SQL."""
    expression = frame.sparkSession._jsparkSession.sessionState().sqlParser().parseExpression(text)
    while expression.getClass().getSimpleName() in ("UnresolvedAlias", "Alias"):
        expression = expression.child()
    if expression.getClass().getSimpleName() == "AggregateExpression":
        # Spark's grammar has rules for `first`, `last` and `any_value` and does not return them as calls.
        function = expression.aggregateFunction()
        if function.ignoreNulls():
            raise _null_ignored(name)
        return str(function.prettyName()), [F.expr(function.children().apply(0).sql())]
    if expression.getClass().getSimpleName() != "UnresolvedFunction":
        raise _refused(name, text, "it is not one plain aggregate function")
    if expression.isDistinct() or expression.filter().isDefined():
        raise _refused(name, text, _DISTINCT, _APPROXIMATELY)
    if expression.ignoreNulls().isDefined() and expression.ignoreNulls().get():
        raise _null_ignored(name)
    function = str(expression.nameParts().mkString("."))
    found = without_flag(name, function, expression.arguments())
    columns = [F.lit(1) if _is_star(one) else F.expr(one.sql()) for one in found]
    return function, columns


def without_flag(name: str, function: str, arguments: Any) -> list[Any]:
    """The arguments without `ignorenulls`, which `F.first` and `F.last` always add."""
    found = java_items(arguments)
    if len(found) != 2 or function.lower() not in _FLAGGED:
        return found
    if found[1].getClass().getSimpleName() != "Literal" or found[1].value():
        raise _null_ignored(name)
    return found[:1]


def _null_ignored(name: str) -> FlowError:
    return FlowError(
        f"Aggregate {name!r}: nulls cannot be ignored over windows",
        code="AGGREGATE_IGNORES_NULLS",
        why="The first and last value are those of all rows of a window, by event time",
        do="Filter the stream, or use min_by or max_by with a key that is null where the value is",
    )


def _is_star(node: Any) -> bool:
    return str(node.getClass().getSimpleName()) == "UnresolvedStar"


_DISTINCT = "DISTINCT and FILTER are not supported"
_APPROXIMATELY = 'Use F.approx_count_distinct("cell"), F.collect_set("cell"), or F.count_if(condition)'
_ONE_FUNCTION = 'Write for example F.max(F.col("a") + F.col("b")), and compute with results after the window'


def _refused(name: str, given: Any, why: str, do: str = _ONE_FUNCTION) -> FlowError:
    return FlowError(
        f"Aggregate {name!r} cannot be computed over windows: {why}",
        code="AGGREGATE_UNSUPPORTED",
        got=str(given),
        why="Windows are merged from panes, so each aggregate must be one function of any expressions",
        do=do,
    )


def analysed(frame: DataFrame, name: str, column: Column) -> tuple[Any, T.DataType]:
    """An argument as Spark resolves it over the frame: the Java expression and its type."""
    known = [column for column in frame.columns if not column.startswith(HIDDEN)]
    with spark_errors_as(
        f"Aggregate {name!r}: Spark cannot resolve an argument",
        code="AGGREGATE_ARGUMENT_INVALID",
        do=f"Use the columns of the stream: {', '.join(known)}",
    ):
        selected = frame.select(column.alias("x"))
    expression = selected._jdf.queryExecution().analyzed().expressions().head()
    if expression.getClass().getSimpleName() == "Alias":
        expression = expression.child()
    return expression, selected.schema["x"].dataType


def columns_in(expression: Any) -> set[str]:
    """Names of the columns that a Java expression reads."""
    return {str(column.name()) for column in java_items(expression.references().toSeq())}


class ConstantArgument(NamedTuple):
    """One number, or (`many`) the numbers of an array."""

    values: tuple[float, ...]
    many: bool = False


def constant(frame: DataFrame, name: str, what: str, column: Column) -> ConstantArgument:
    """A constant number, or a constant array of numbers."""
    _, kind = analysed(frame, name, column)
    many = isinstance(kind, T.ArrayType)
    expression, _ = analysed(frame, name, column.cast("array<double>" if many else "double"))
    value = expression.eval(None) if expression.foldable() else None
    if value is None:
        raise FlowError(
            f"Aggregate {name!r}: {what} must be a constant number",
            code="AGGREGATE_CONSTANT_REQUIRED",
            got=str(column),
            why="A sketch has one size for all rows",
            do=f"Write {what} as a number",
        )
    return ConstantArgument(tuple(value.toDoubleArray()), many) if many else ConstantArgument((float(value),))
