"""Reads a residual condition that tasks can evaluate themselves: comparisons of whole numbers and times.

    where = "bids = most AND price > 100"  ──▶  Comparison("bids", "=", "most"), Comparison("price", ">", 100)

Pairs that fail it are then never built, and never pass from Python to Spark. All other conditions stay with
Spark: a task must not differ from Spark in the semantics of SQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from tidegate.driver.compile.column_pruning import blank_frame
from tidegate.driver.compile.join_columns import JoinColumn
from tidegate.driver.java_collections import java_items
from tidegate.driver.sql_text import condition
from tidegate.worker.runtime.layout import Comparison

#: Types whose values are whole numbers, also in Arrow.
_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.DateType, T.TimestampType, T.TimestampNTZType)
_OPERATORS = {
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "EqualTo": "=",
}


def comparisons_of(
    session: SparkSession, columns: Sequence[JoinColumn], where: Any
) -> tuple[Comparison, ...] | None:
    """The condition over these columns of the joined row as comparisons; None: Spark must evaluate it."""
    base = blank_frame(session, {column.name: kind for column, kind in columns})
    plan = base.where(condition(where))._jdf.queryExecution().optimizedPlan()
    if plan.nodeName() != "Filter":
        return None
    whole = {column.name for column, kind in columns if isinstance(kind, _WHOLE)}
    parts = _parts(plan.condition())
    # The optimiser adds that compared columns are not null, which a comparison implies.
    present = {_operand(one.child(), whole) for one in parts if _kind(one) == "IsNotNull"}
    found = [_comparison(part, whole) for part in parts if _kind(part) != "IsNotNull"]
    known = tuple(one for one in found if one is not None)
    compared = {name for one in known for name in (one.left, one.right)}
    return known if len(known) == len(found) and present <= compared else None


def _parts(expression: Any) -> list[Any]:
    """The parts of a conjunction."""
    if _kind(expression) != "And":
        return [expression]
    return [part for child in java_items(expression.children()) for part in _parts(child)]


def _comparison(expression: Any, whole: set[str]) -> Comparison | None:
    operator = _OPERATORS.get(_kind(expression))
    if operator is None:
        return None
    left, right = (_operand(one, whole) for one in java_items(expression.children()))
    return Comparison(left, operator, right) if isinstance(left, str) and right is not None else None


def _operand(expression: Any, whole: set[str]) -> str | int | None:
    """A column or a whole number; None: anything else."""
    if _kind(expression) == "AttributeReference":
        name = str(expression.name())
        return name if name in whole else None
    if _kind(expression) == "Literal" and isinstance(expression.value(), int):
        return int(expression.value())
    return None


def _kind(expression: Any) -> str:
    return str(expression.getClass().getSimpleName())
