"""Plans that are compiled once and run over the rows of each batch.

A flow is compiled on the data frames of its streams, which have no rows yet. In a batch the same analysed
plan runs over the rows that Spark took: a `Graft` remembers where the plans of the streams stand in it, and
puts others with the same columns there. So a user's function is called once, Spark analyses each step once,
and a batch costs a few calls into Java, however many steps there are.

Spark keeps the identities of a stream's columns in the plan of each batch, which makes this possible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

from pyspark.sql import DataFrame

from tidegate.driver.java_collections import java_items
from tidegate.errors import FlowError


def analyzed(frame: DataFrame) -> Any:
    """The analysed logical plan of a frame, as Java's object."""
    return frame._jdf.queryExecution().analyzed()


#: Classes of Java by virtual machine and name: every part of a name that is looked up takes a call.
_CLASSES: dict[tuple[int, str], Any] = {}


def java(session: Any, name: str) -> Any:
    """A class of Java by its full name."""
    key = id(session._jvm), name
    if key not in _CLASSES:
        _CLASSES[key] = reduce(getattr, name.split("."), session._jvm)
    return _CLASSES[key]


def frame_of(plan: Any, session: Any) -> DataFrame:
    """The data frame of a logical plan, in a session."""
    dataset = java(session, "org.apache.spark.sql.classic.Dataset")
    return DataFrame(dataset.ofRows(session._jsparkSession, plan), session)


def bounded(frame: DataFrame) -> DataFrame:
    """The rows of a frame as a source of their own: an ordinary batch, with the same columns.

    Spark does the same for `foreachBatch`. What stands in front is planned once and shown to no later step.
    """
    session: Any = frame.sparkSession
    rows = frame._jdf.queryExecution().toRdd()
    logical = java(session, "org.apache.spark.sql.execution.LogicalRDD$.MODULE$")
    return frame_of(logical.fromDataset(rows, frame._jdf, False, False), session)


def grouped_in_place(frame: DataFrame) -> DataFrame:
    """The same, so that an aggregation makes groups within each partition, without a shuffle.

    Spark is told that the rows are partitioned by a hash of no columns, which suits every grouping. A group
    then has a row for every partition that has rows of it.
    """
    session: Any = frame.sparkSession
    plan = analyzed(bounded(frame))
    # Output, rows, partitioning, ordering, whether it streams, its stream.
    parts = session._sc._gateway.new_array(java(session, "java.lang.Object"), plan.productArity())
    for number, part in enumerate(java_items(plan.productIterator())):
        parts[number] = part
    # With columns, Spark would not recognise a second reader of the same rows.
    hashed = java(session, "org.apache.spark.sql.catalyst.plans.physical.HashPartitioning")
    parts[2] = hashed(scala_list(session, []), parts[1].getNumPartitions())
    return frame_of(plan.makeCopy(parts), session)


def first_rows(frame: DataFrame, rows: int) -> DataFrame:
    """At most so many rows of each partition, those that come first."""
    session: Any = frame.sparkSession
    catalyst = "org.apache.spark.sql.catalyst"
    number = java(session, f"{catalyst}.expressions.Literal$.MODULE$").apply(rows)
    limit = java(session, f"{catalyst}.plans.logical.LocalLimit")
    return frame_of(limit(number, analyzed(frame)), session)


def renewed(frame: DataFrame) -> DataFrame:
    """The same frame with new identities of its columns, so that it can stand in a plan beside the original.

    Spark does this for the second of two equal inputs of a union.
    """
    return frame_of(analyzed(frame.union(frame)).children().apply(1), frame.sparkSession)


def standing_in(original: Any, rows: DataFrame) -> Any:
    """The plan of these rows with the column identities of another plan, whose place it can take."""
    session: Any = rows.sparkSession
    plan = analyzed(rows)
    nothing, none = scala_list(session, []), java(session, "scala.None$.MODULE$")
    alias = java(session, "org.apache.spark.sql.catalyst.expressions.Alias")
    columns = [
        alias(given, wanted.name(), wanted.exprId(), nothing, none, nothing)
        for wanted, given in zip(java_items(original.output()), java_items(plan.output()), strict=True)
    ]
    project = java(session, "org.apache.spark.sql.catalyst.plans.logical.Project")
    return project(scala_list(session, columns), plan)


def scala_list(session: Any, items: Sequence[Any]) -> Any:
    """A list of Scala's."""
    found = java(session, "scala.collection.immutable.Nil$.MODULE$")
    for item in reversed(items):
        found = found.prepended(item)
    return found


def holds(plan: Any, session: Any, *patterns: str) -> bool:
    """Whether a plan has an expression of any of these patterns of Spark."""
    known = session._jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    return any(plan.containsPattern(getattr(known, one)()) for one in patterns)


def at_time(plan: Any, session: Any, now_ms: int) -> Any:
    """The plan with this time in place of the current one, as Spark itself does for a micro-batch.

    So a replay computes the same rows, and all readers of a batch agree.
    """
    return plan.transformAllExpressions(_CurrentTime(session._jvm, now_ms))


class _CurrentTime:
    """A partial function of Scala on expressions; Java calls it."""

    def __init__(self, jvm: Any, now_ms: int) -> None:
        self._jvm, self._now_ms = jvm, now_ms

    def applyOrElse(self, expression: Any, default: Any) -> Any:  # noqa: N802 - Scala's name
        """A literal for an expression that is the current time; the expression itself if it is none."""
        kind = expression.getClass().getSimpleName()
        if kind not in ("CurrentTimestamp", "Now", "LocalTimestamp", "CurrentDate"):
            return default.apply(expression)
        local = kind in ("LocalTimestamp", "CurrentDate")
        zone = expression.timeZoneId() if local else self._jvm.scala.Option.apply("UTC")
        time = self._jvm.org.apache.spark.sql.catalyst.expressions.CurrentBatchTimestamp
        return time(self._now_ms, expression.dataType(), zone).toLiteral()

    class Java:
        implements: ClassVar = ["scala.PartialFunction"]


@dataclass(frozen=True)
class _Branch:
    """A node of a plan with the children that have places below them."""

    node: Any
    children: Mapping[int, _Branch | str]

    def on(self, plans: Mapping[str, Any]) -> Any:
        children = self.node.children()
        for number, child in self.children.items():
            plan = plans[child] if isinstance(child, str) else child.on(plans)
            children = children.updated(number, plan)
        return self.node.withNewChildren(children)


class Graft:
    """A compiled plan in which other plans can take the places of some frames."""

    def __init__(self, frame: DataFrame, places: Mapping[str, DataFrame]):
        """`places`: by name, frames that `frame` was derived from."""
        plan = analyzed(frame)
        self._root = _find(plan, {name: analyzed(one) for name, one in places.items()})
        #: Its expressions ask for the current time.
        self.reads_clock: bool = holds(plan, frame.sparkSession, "CURRENT_LIKE")
        #: Streaming sources of the plan that are in no place.
        self._others: list[str] = _sources_outside(plan, self._root)

    def on(self, plans: Mapping[str, Any]) -> Any:
        """The plan with these plans, by name, in the places of the originals."""
        root = self._root
        assert root is not None
        return plans[root] if isinstance(root, str) else root.on(plans)

    def check(self) -> None:
        """Raise if a user's function returned something that does not come from its stream."""
        if self._root is None or self._others:
            raise FlowError(
                "A transform does not return the rows of its stream",
                code="STEP_STREAM_LOST",
                got=", ".join(self._others) or "a data frame that has nothing of the stream",
                why="Its function is called once, and its plan runs on the rows of each batch",
                do="Derive the result from the function's argument; join streams with Stream.join",
            )


def _find(plan: Any, places: Mapping[str, Any]) -> _Branch | str | None:
    """Where the places are in a plan; None if there are none."""
    for name, place in places.items():
        if plan.equals(place):
            return name
    found = {number: _find(child, places) for number, child in enumerate(java_items(plan.children()))}
    below = {number: one for number, one in found.items() if one is not None}
    return _Branch(plan, below) if below else None


def _sources_outside(plan: Any, found: _Branch | str | None) -> list[str]:
    """The streaming sources of a plan that stand in none of the places."""
    if isinstance(found, str) or not plan.isStreaming():
        return []
    children = java_items(plan.children())
    if not children:
        return [str(plan.simpleString(100))]
    below = {} if found is None else found.children
    return [
        one for number, child in enumerate(children) for one in _sources_outside(child, below.get(number))
    ]
