"""Two inputs of a join that come from one stream are read in one scan.

    events ─▶ counts ─▶ those that either input takes ─┬─▶ as a left row  ─┐
                                                       └─▶ as a right row ─┴─▶ join

Events of several kinds often come as one stream, and a flow joins one kind with another. With a plan for each
input, Spark plans and runs two scans in every batch, or keeps all rows in between if they are costly to read
twice. Here each row is read once, and copied for each input that takes it.

Spark's optimiser brings the steps of an input into one list of columns and one condition. Inputs whose steps
do more (a function of Python, the current time, an explode) are read apart. The columns of one input are not
computed for rows of the other, because an expression may fail on rows that its filter removes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame

from tidegate.driver.compile.column_pruning import blank_like
from tidegate.driver.frames.grafts import analyzed, frame_of, holds, java, scala_list, standing_in
from tidegate.driver.java_collections import java_items
from tidegate.driver.operators.tap import Entry

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
_PLANS = "org.apache.spark.sql.catalyst.plans.logical"
#: What belongs to a batch, or cannot be brought into one condition and one list.
_OWN_PLAN = ("CURRENT_LIKE", "PYTHON_UDF", "SCALA_UDF", "PLAN_EXPRESSION")
#: Expressions that cost nothing and cannot fail.
_PLAIN = {"Alias", "AttributeReference", "Literal", "GetStructField", "Coalesce"}


@dataclass(frozen=True)
class _Input:
    """The steps of one input, brought into one list of columns and one condition."""

    columns: list[Any]
    #: None: it takes every row.
    condition: Any
    #: What these read of the stream.
    reads: list[Any]


def one_scan(entries: Sequence[Entry]) -> Entry | None:
    """One reader in place of several of the same stream; None if they must be read apart."""
    places = {tuple(entry.timed) for entry in entries}
    same = {(entry.usable_only, entry.counted_as) for entry in entries}
    if len(entries) < 2 or len(places) > 1 or len(same) > 1 or any(entry.stream_of for entry in entries):
        return None
    ((place, timed),) = entries[0].timed.items()
    if len(set(timed.columns)) < len(timed.columns):
        return None
    for entry in entries:
        entry.graft.check()
    blank = blank_like(timed)
    inputs = [_input(entry, place, timed, blank) for entry in entries]
    taken = [one for one in inputs if one is not None]
    if len(taken) < len(inputs):
        return None
    made = _copies(taken, standing_in(analyzed(blank), timed), timed.sparkSession)
    return Entry({place: timed}, lambda: made, entries[0].usable_only, entries[0].counted_as)


def _input(entry: Entry, place: str, timed: DataFrame, blank: DataFrame) -> _Input | None:
    session: Any = timed.sparkSession
    whole = entry.graft.on({place: standing_in(analyzed(timed), blank)})
    if holds(whole, session, *_OWN_PLAN) or not whole.deterministic():
        return None
    plan = frame_of(whole, session)._jdf.queryExecution().optimizedPlan()
    if plan.nodeName() != "Project":
        return None
    columns, plan = java_items(plan.projectList()), plan.child()
    condition = None
    if plan.nodeName() == "Filter":
        condition, plan = plan.condition(), plan.child()
    reads = java_items(plan.output())
    if plan.nodeName() == "Project":
        reads, plan = java_items(plan.projectList()), plan.child()
    return None if java_items(plan.children()) else _Input(columns, condition, reads)


def _copies(inputs: Sequence[_Input], stream: Any, session: Any) -> DataFrame:
    """The rows of a stream, once for each input that takes them, with the columns of that input."""
    reads = {one.exprId().id(): one for given in inputs for one in given.reads}
    rows = _plan("Project", session, scala_list(session, list(reads.values())), stream)
    conditions = [given.condition for given in inputs if given.condition is not None]
    if len(conditions) == len(inputs):
        either = reduce(lambda one, other: _expression("Or", session, one, other), conditions)
        rows = _plan("Filter", session, either, rows)
    always = _literal(session, True)
    takes = [_named(session, given.condition or always, "_tidegate_takes") for given in inputs]
    rows = _plan("Project", session, scala_list(session, [*java_items(rows.output()), *takes]), rows)
    lists = [
        [*(_only_if(session, take.toAttribute(), column) for column in given.columns), take.toAttribute()]
        for given, take in zip(inputs, takes, strict=True)
    ]
    shown = [_column(session, same) for same in zip(*(given.columns for given in inputs), strict=True)]
    taken = _named(session, always, "_tidegate_taken").toAttribute().withNullability(True)
    projections = scala_list(session, [scala_list(session, columns) for columns in lists])
    copies = _plan("Expand", session, projections, scala_list(session, [*shown, taken]), rows)
    return frame_of(
        _plan("Project", session, scala_list(session, shown), _plan("Filter", session, taken, copies)),
        session,
    )


def _only_if(session: Any, taken: Any, column: Any) -> Any:
    """The value of a column, where its input takes the row; null elsewhere, if it costs anything."""
    value = column.child() if _kind(column) == "Alias" else column
    if _is_plain(value):
        return value
    return _expression("If", session, taken, value, _literal(session, None, value.dataType()))


def _is_plain(expression: Any) -> bool:
    return _kind(expression) in _PLAIN and all(map(_is_plain, java_items(expression.children())))


def _column(session: Any, same: Sequence[Any]) -> Any:
    """The column that holds one column of each input."""
    first = _named(session, _literal(session, None, same[0].dataType()), same[0].name())
    return first.toAttribute()


def _kind(expression: Any) -> str:
    return str(expression.getClass().getSimpleName())


def _plan(kind: str, session: Any, *parts: Any) -> Any:
    return java(session, f"{_PLANS}.{kind}")(*parts)


def _expression(kind: str, session: Any, *parts: Any) -> Any:
    return java(session, f"{_EXPRESSIONS}.{kind}")(*parts)


def _literal(session: Any, value: Any, kind: Any = None) -> Any:
    literals = java(session, f"{_EXPRESSIONS}.Literal$.MODULE$")
    return literals.apply(value) if kind is None else literals.create(value, kind)


def _named(session: Any, expression: Any, name: str) -> Any:
    """An expression under a name, with an identity of its own."""
    identity = java(session, f"{_EXPRESSIONS}.NamedExpression$.MODULE$").newExprId()
    nothing, none = scala_list(session, []), java(session, "scala.None$.MODULE$")
    return _expression("Alias", session, expression, name, identity, nothing, none, nothing)
