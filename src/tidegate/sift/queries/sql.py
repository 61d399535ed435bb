"""Parses a predicate: Spark SQL becomes the tree of `predicates.py`, or an error.

sqlglot parses. This module accepts what ranges can express and refuses everything else, showing the
offending piece. It does not guess how Spark would evaluate the rest (casts, functions, time zones,
patterns): a wrong guess would pass or drop other rows than the query on Spark.
"""

from __future__ import annotations

import re
from decimal import Decimal

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tidegate.errors import FlowError
from tidegate.sift.queries.predicates import And, Compare, ConstantTruth, Literal, Not, Number, Or, Predicate

ALLOWED = (
    "Compare columns with literals by < <= > >= = != <=>, between, in and is null, "
    "and combine comparisons with and, or, not and parentheses"
)
_OPERATORS: dict[type[exp.Expr], str] = {
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.EQ: "=",
    exp.NullSafeEQ: "<=>",
}
_NEGATED: dict[type[exp.Expr], str] = {exp.NEQ: "=", exp.NullSafeNEQ: "<=>"}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<=>": "<=>"}
_NUMBER = re.compile(r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
#: sqlglot and Spark agree only on the escapes of quotes and of the backslash itself.
_ESCAPED = re.compile(r"\\(.?)", re.DOTALL)


def parse(where: str) -> Predicate:
    """The tree of a predicate; FlowError where it is not SQL, or more than ranges can express."""
    if not set(_ESCAPED.findall(where)) <= {"'", '"', "\\"}:
        raise FlowError(
            "A string in the predicate has an escape other than a quote or a backslash",
            code="QUERY_ESCAPE_UNSUPPORTED",
            got=where,
            do="Write the character itself",
        )
    try:
        return _predicate(sqlglot.parse_one(where, dialect="spark"))
    except SqlglotError as error:
        # sqlglot underlines the place with terminal codes; the first line of its message is plain text.
        said = str(error).splitlines()[0]
        raise FlowError(
            "The predicate is not valid SQL", code="QUERY_SQL_INVALID", got=where, why=said, do=ALLOWED
        ) from None
    except RecursionError:
        raise FlowError(
            "The predicate is nested too deeply",
            code="QUERY_TOO_COMPLEX",
            got=where[:80] + "…",
            do="Split it into several queries, or write lists of values as `column in (…)`",
        ) from None


def number(text: str) -> Number:
    """A number as Spark reads it: with an exponent a double, else an exact decimal."""
    return float(text) if "e" in text or "E" in text else Decimal(text)


def _predicate(node: exp.Expr) -> Predicate:
    node = node.unnest()
    if isinstance(node, exp.And):
        return And(tuple(_predicate(part) for part in node.flatten()))
    if isinstance(node, exp.Or):
        return Or(tuple(_predicate(part) for part in node.flatten()))
    if isinstance(node, exp.Not):
        return Not(_predicate(node.this))
    if isinstance(node, exp.Boolean | exp.Null):
        value = _value(node)
        return ConstantTruth(None if value is None else bool(value))
    if isinstance(node, exp.Column):  # a boolean column
        return Compare(_column(node), "=", (True,))
    return _leaf(node)


def _leaf(node: exp.Expr) -> Predicate:
    if (operator := _OPERATORS.get(type(node))) is not None:
        return _comparison(node, node.this, operator, node.expression)
    if (operator := _NEGATED.get(type(node))) is not None:
        return Not(_comparison(node, node.this, operator, node.expression))
    if isinstance(node, exp.Between) and not node.args.get("symmetric"):
        low, high = node.args["low"], node.args["high"]
        return And((_comparison(node, node.this, ">=", low), _comparison(node, node.this, "<=", high)))
    if isinstance(node, exp.In) and node.expressions and _is_column(node.this):
        if all(_is_literal(choice) for choice in node.expressions):
            return Compare(_column(node.this), "=", tuple(_value(choice) for choice in node.expressions))
    elif isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean | exp.Null):
        return _comparison(node, node.this, "<=>", node.expression)
    raise _refused(node)


def _comparison(whole: exp.Expr, left: exp.Expr, operator: str, right: exp.Expr) -> Compare:
    if _is_column(left) and _is_literal(right):
        return Compare(_column(left), operator, (_value(right),))
    if _is_literal(left) and _is_column(right):
        return Compare(_column(right), _MIRRORED[operator], (_value(left),))
    raise _refused(whole)


def _is_column(node: exp.Expr) -> bool:
    return isinstance(node.unnest(), exp.Column)


def _column(node: exp.Expr) -> str:
    column = node.unnest()
    if column.args.get("table") is not None or not isinstance(column.this, exp.Identifier):
        raise FlowError(
            "A predicate may compare whole columns only",
            code="QUERY_PREDICATE_UNSUPPORTED",
            got=column.sql("spark"),
            do="Name the column alone; put a name that contains dots between backticks",
        )
    return str(column.name)


def _is_literal(node: exp.Expr) -> bool:
    node = node.unnest()
    if isinstance(node, exp.Neg):
        inner = node.this.unnest()
        return _is_literal(inner) and isinstance(inner, exp.Literal | exp.Neg) and not inner.is_string
    if isinstance(node, exp.Literal) and not node.is_string:
        return _NUMBER.fullmatch(node.name) is not None
    return isinstance(node, exp.Literal | exp.Boolean | exp.Null)


def _value(node: exp.Expr) -> Literal:
    """The value of a literal that `_is_literal` accepted."""
    node, sign = node.unnest(), ""
    while isinstance(node, exp.Neg):
        node, sign = node.this.unnest(), "" if sign else "-"
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    return str(node.this) if node.is_string else number(sign + node.name)


def _refused(node: exp.Expr) -> FlowError:
    return FlowError(
        "A part of the predicate is not a range of a column",
        code="QUERY_PREDICATE_UNSUPPORTED",
        got=node.sql("spark"),
        why=_reason(node),
        do=ALLOWED,
    )


def _reason(node: exp.Expr) -> str:
    sides = [node.args[side] for side in ("this", "expression") if isinstance(node.args.get(side), exp.Expr)]
    if len(sides) == 2 and all(_is_column(side) for side in sides):
        return "It compares two columns with each other"
    if len(sides) == 2 and all(_is_literal(side) for side in sides):
        return "Neither side is a column"
    if any(isinstance(inner, exp.Concat) for inner in node.walk()):
        return (
            "Adjacent string literals mean different things in different versions of Spark; write a quote "
            "inside a string as \\'"
        )
    return ""
