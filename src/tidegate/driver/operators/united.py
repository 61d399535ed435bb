"""The frame of a union: its inputs behind their stateless steps, tagged, columns by name as Spark says."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate.api.nodes import Node, Source, Union, name_of
from tidegate.driver.compile import ports
from tidegate.driver.compile.expression_checks import spark_errors_as
from tidegate.driver.compile.join_columns import visible
from tidegate.errors import FlowError
from tidegate.worker.runtime.layout import TAG


class United:
    """The frame of a union. `enter`: gives the rows of a source, with their time."""

    def __init__(self, node: Union, name: str, tags: Sequence[int], enter: Callable[[Source], DataFrame]):
        self._name, self._tags, self._enter = name, iter(tags), enter
        _check_times(node)
        self.frame = self._united(node)

    def _united(self, node: Union) -> DataFrame:
        frame, *others = (self._input(parent) for parent in node.parents)
        for parent, other in zip(node.parents[1:], others, strict=True):
            if not node.allow_missing_columns:
                _check_names(self._name, frame, other, name_of(parent))
            with spark_errors_as(
                f"Spark rejects the union {self._name!r}",
                "Give columns of the same name types that Spark can unite, with with_column",
                code="UNION_INVALID",
            ):
                frame = frame.unionByName(other, allowMissingColumns=node.allow_missing_columns)
        return frame

    def _input(self, node: Node) -> DataFrame:
        base, steps = ports.steps_of(node)
        if isinstance(base, Union):
            return ports.apply_steps(self._united(base), steps, repr(name_of(base)), tagged=True)
        assert isinstance(base, Source)
        frame = ports.apply_steps(self._enter(base), steps, repr(base.name))
        return frame.withColumn(TAG, F.lit(next(self._tags)).cast("short"))


def inputs_of(node: Union) -> tuple[tuple[str, bool], ...]:
    """By input: its source, and whether no stateless step lies between."""
    found: list[tuple[str, bool]] = []
    for parent in node.parents:
        base, steps = ports.steps_of(parent)
        if isinstance(base, Union):
            found += [(source, whole and not steps) for source, whole in inputs_of(base)]
        elif isinstance(base, Source):
            found.append((base.name, not steps))
    return tuple(found)


def _check_times(node: Union) -> None:
    types = {source.name: source.frame.schema[source.time].dataType for source in node.sources}
    if len({repr(kind) for kind in types.values()}) > 1:
        raise FlowError(
            "The time columns of united streams have different types",
            code="UNION_TIME_TYPES_DIFFER",
            got=", ".join(f"{name}: {kind.simpleString()}" for name, kind in types.items()),
            why="Times with and without a time zone cannot be compared",
            do="Convert one of the columns before tg.stream, for example with to_timestamp_ltz",
        )


def _check_names(name: str, left: DataFrame, right: DataFrame, other: str) -> None:
    sensitive = str(left.sparkSession.conf.get("spark.sql.caseSensitive")) == "true"
    ours, theirs = (
        {f.name if sensitive else f.name.lower(): f.name for f in visible(frame)} for frame in (left, right)
    )
    only = [
        f"only {where}: {', '.join(columns[one] for one in columns if one not in others)}"
        for where, columns, others in (("before", ours, theirs), (f"in {other}", theirs, ours))
        if set(columns) - set(others)
    ]
    if only:
        raise FlowError(
            f"The streams of the union {name!r} have different columns",
            code="UNION_COLUMNS_DIFFER",
            got="; ".join(only),
            do="Select or rename columns until they agree, or write allow_missing_columns=True",
        )
