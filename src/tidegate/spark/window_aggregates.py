"""Aggregates as users write them (`F.sum("fare")`), taken apart into the partials of `window/aggregates.py`.

A Spark column is an unresolved tree; its root must be one aggregate of the catalogue. The arguments below it
may be any expression: each becomes a hidden column in front of the aggregation, which partials name in SQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.classic.column import Column as ClassicColumn

from tidegate.errors import FlowError, explain
from tidegate.flow import HIDDEN
from tidegate.spark.layout import TIME
from tidegate.window.aggregates import Aggregate, Merge, Part, aggregate, result_type

#: Families of types, as the catalogue names them. Kernels compare values by rank: nested ones have none.
_FAMILIES: dict[str, tuple[type[T.DataType], ...]] = {
    "any": (T.DataType,),
    "numeric": (T.NumericType,),
    "integral": (T.IntegralType,),
    "boolean": (T.BooleanType,),
    "orderable": (T.AtomicType, T.NullType),
}
#: Functions whose second argument says whether nulls are ignored.
_FLAGGED = ("first", "last", "any_value", "first_value", "last_value")
#: Parts that the tasks cannot merge yet.
_TO_COME = (Merge.CONCAT, Merge.UNION, Merge.SKETCH)


@dataclass
class Taken:
    """All aggregates of a window, taken apart."""

    #: Hidden argument columns, in front of the aggregation.
    arguments: list[tuple[str, Column]] = field(default_factory=list)
    #: Partial columns: name and SQL over the arguments.
    partials: list[tuple[str, str]] = field(default_factory=list)
    #: The same partials of a single row.
    of_rows: list[tuple[str, str]] = field(default_factory=list)
    #: Types of the partial columns.
    types: dict[str, T.DataType] = field(default_factory=dict)
    parts: list[tuple[Part, tuple[str, ...]]] = field(default_factory=list)
    #: Result columns: name, formula, partial columns, type.
    results: list[tuple[str, str, tuple[str, ...], T.DataType]] = field(default_factory=list)


def taken_apart(frame: DataFrame, aggregates: Sequence[tuple[str, Any]]) -> Taken:
    """The aggregates of a window over the rows of a frame."""
    taken, known = Taken(), dict[tuple[str, ...], tuple[str, ...]]()
    for name, given in aggregates:
        function, arguments = _called(frame, name, given)
        types = [frame.select(argument.alias("x")).schema["x"].dataType for argument in arguments]
        decimal = bool(types) and isinstance(types[0], T.DecimalType)
        found = _known(name, function, decimal, len(arguments))
        check_types(name, found, types)
        hidden = []
        for argument in arguments:
            hidden.append(f"{HIDDEN}arg_{len(taken.arguments)}")
            taken.arguments.append((hidden[-1], argument))
        columns: list[str] = []
        for part in found.parts:
            texts = tuple(_text(text, hidden) for text in part.pane)
            if texts not in known:
                first = len(taken.partials)
                known[texts] = tuple(f"{HIDDEN}part_{first + i}" for i in range(len(texts)))
                taken.partials += zip(known[texts], texts, strict=True)
                taken.of_rows += zip(known[texts], (_text(text, hidden) for text in part.row), strict=True)
                taken.parts.append((part, known[texts]))
            columns += known[texts]
        kind = T._parse_datatype_string(result_type(found, types[0].simpleString()))
        taken.results.append((name, found.final, tuple(columns), kind))
    given_to = frame.select(TIME, *[column.alias(name) for name, column in taken.arguments])
    added_up = given_to.agg(*[F.expr(text).alias(name) for name, text in taken.partials])
    taken.types = {field.name: field.dataType for field in added_up.schema.fields}
    return taken


def _known(name: str, function: str, decimal: bool, arguments: int) -> Aggregate:
    try:
        found = aggregate(function, decimal=decimal)
    except FlowError as error:
        raise FlowError(f"Aggregate {name!r}: {error}") from None
    if any(part.merge in _TO_COME for part in found.parts):
        raise FlowError(
            explain(
                f"Aggregate {name!r}: this version cannot merge {function} over windows",
                why="It would be computed from all rows of each window, time and again",
                do="Use an aggregate of numbers, min, max, first or last",
            )
        )
    if arguments != found.arguments:
        raise FlowError(
            explain(f"Aggregate {name!r}: {function} takes {found.arguments} argument(s) here", got=arguments)
        )
    return found


def check_types(name: str, found: Aggregate, types: Sequence[T.DataType]) -> None:
    """Arguments have types that the parts of the aggregate can be merged of."""
    if not all(isinstance(one, _FAMILIES[found.accepts]) for one in types):
        raise FlowError(
            explain(
                f"Aggregate {name!r}: {found.name} does not take this type",
                got=", ".join(one.simpleString() for one in types),
                why=f"Over windows it takes {found.accepts} types",
                do="Cast the argument, or take one of its fields",
            )
        )


def _text(template: str, hidden: Sequence[str]) -> str:
    return template.format(*hidden, time=TIME)


def _called(frame: DataFrame, name: str, given: Any) -> tuple[str, list[Column]]:
    """The aggregate function and its arguments."""
    column = F.expr(given) if isinstance(given, str) else given
    if not isinstance(column, ClassicColumn):
        raise _refused(name, given, "it is no Spark column")
    node = column._jc.node()
    while node.getClass().getSimpleName() == "Alias":
        node = node.child()
    kind = node.getClass().getSimpleName()
    if kind == "SqlExpression":
        return _parsed(frame, name, node.expression())
    if kind != "UnresolvedFunction" or node.isDistinct():
        raise _refused(name, given, "it is not one plain aggregate function")
    jvm = frame.sparkSession._jvm
    assert jvm is not None
    arguments = _without_flag(name, str(node.functionName()), node.arguments())
    columns: list[Column] = [
        F.lit(1) if _is_star(one) else ClassicColumn(jvm.org.apache.spark.sql.Column(one))
        for one in arguments
    ]
    return str(node.functionName()), columns


def _parsed(frame: DataFrame, name: str, text: str) -> tuple[str, list[Column]]:
    """An aggregate that was given as SQL."""
    expression = frame.sparkSession._jsparkSession.sessionState().sqlParser().parseExpression(text)
    while expression.getClass().getSimpleName() == "UnresolvedAlias":
        expression = expression.child()
    if expression.getClass().getSimpleName() == "AggregateExpression":
        # Spark's grammar knows `first`, `last` and `any_value` by name, and gives them back as they are.
        function = expression.aggregateFunction()
        if function.ignoreNulls():
            raise _null_ignored(name)
        return str(function.prettyName()), [F.expr(function.children().apply(0).sql())]
    if expression.getClass().getSimpleName() != "UnresolvedFunction":
        raise _refused(name, text, "it is not one plain aggregate function")
    if expression.isDistinct() or expression.filter().isDefined():
        raise _refused(name, text, "DISTINCT and FILTER are not taken")
    if expression.ignoreNulls().isDefined() and expression.ignoreNulls().get():
        raise _null_ignored(name)
    function = str(expression.nameParts().mkString("."))
    found = _without_flag(name, function, expression.arguments())
    columns = [F.lit(1) if _is_star(one) else F.expr(one.sql()) for one in found]
    return function, columns


def _without_flag(name: str, function: str, arguments: Any) -> list[Any]:
    """The arguments but for `ignorenulls`, which `F.first` and `F.last` always write down."""
    found = [arguments.apply(i) for i in range(arguments.size())]
    if len(found) != 2 or function.lower() not in _FLAGGED:
        return found
    if found[1].getClass().getSimpleName() != "Literal" or found[1].value():
        raise _null_ignored(name)
    return found[:1]


def _null_ignored(name: str) -> FlowError:
    return FlowError(
        explain(
            f"Aggregate {name!r}: nulls cannot be ignored here",
            why="First and last are those of all rows of a window, by event time",
            do="Filter the stream, or use min_by or max_by with a key that is null where the value is",
        )
    )


def _is_star(node: Any) -> bool:
    return str(node.getClass().getSimpleName()) == "UnresolvedStar"


def _refused(name: str, given: Any, why: str) -> FlowError:
    return FlowError(
        explain(
            f"Aggregate {name!r} cannot be computed over windows: {why}",
            got=str(given),
            why="What is merged from panes must be one aggregate; its arguments may be any expression",
            do='Write for example F.max(F.col("a") + F.col("b")), and compute with results behind the window',
        )
    )
