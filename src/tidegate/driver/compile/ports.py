"""Ports, where rows enter the engine, and lanes, the typed columns that all ports of a query share.

Each source becomes a frame with a usable event time beside its columns. Spark runs the stateless steps in
front of a port, and the port projects the result onto the shared row layout (`worker/runtime/layout.py`). The
union of all ports is the one input of the query, so there is one offset log. A heartbeat in it triggers
batches even when no row arrives.

Time is read before any stateless step. If no step in front of a port can drop rows, tasks count rows and find
the newest time at no cost. Otherwise Spark's observed metrics count in front of the steps.

Two streams with three bigint columns each need three bigint lanes, not six nullable columns: half the bytes
in the shuffle and on the way into Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidegate.api.nodes import Node, Source, StatelessStep
from tidegate.driver.compile.expression_checks import spark_errors_as
from tidegate.driver.compile.keys import quoted
from tidegate.errors import FlowError
from tidegate.model.times import BEGINNING_US
from tidegate.worker.runtime.layout import CODE, TAG, TIME


class Lanes:
    """Assigns lanes; the n-th column of a type always gets the same lane."""

    def __init__(self) -> None:
        self._types: dict[str, T.DataType] = {}
        self._names: dict[tuple[str, int], str] = {}

    def assign(self, types: Sequence[T.DataType]) -> tuple[str, ...]:
        """A lane for each column of one port."""
        used: Counter[str] = Counter()
        names = []
        for kind in types:
            text = kind.json()
            place = (text, used[text])
            used[text] += 1
            if place not in self._names:
                name = f"l{len(self._names)}"
                self._names[place] = name
                self._types[name] = kind
            names.append(self._names[place])
        return tuple(names)

    @property
    def types(self) -> dict[str, T.DataType]:
        """Every lane, in the order of the row layout."""
        return self._types


#: Tag of heartbeat rows: no port has it.
HEARTBEAT = -1


@dataclass(frozen=True)
class Port:
    """One entry of rows into the engine."""

    tag: int
    stream: str | None
    columns: tuple[str, ...]
    lanes: tuple[str, ...]


def timed(source: Source, by_spark: bool) -> DataFrame:
    """The source with its event time in microseconds; BEGINNING_US if it cannot be used.

    `by_spark`: times too far ahead of the clock are rejected here. Tasks do it at less cost: Spark compiles
    its clock into the code, so each batch costs a compilation and runs cold code.
    """
    kind = source.frame.schema[source.time].dataType
    column = F.col(quoted(source.time))
    if isinstance(kind, T.TimestampType):
        micros = F.unix_micros(column)
    elif isinstance(kind, T.TimestampNTZType):
        micros = F.timestamp_diff("MICROSECOND", F.expr("timestamp_ntz'1970-01-01 00:00:00'"), column)
    else:
        raise FlowError(
            f"The time column of stream {source.name!r} is not a timestamp",
            got=f"{source.time!r}: {kind.simpleString()}",
            do="Convert it first, for example with to_timestamp or timestamp_micros",
        )
    usable = micros.isNotNull()
    if by_spark and source.max_ahead_us is not None:
        usable = usable & (micros <= F.unix_micros(F.current_timestamp()) + F.lit(source.max_ahead_us))
    frame: DataFrame = source.frame.withColumn(TIME, F.when(usable, micros).otherwise(F.lit(BEGINNING_US)))
    return frame


def watched(source: Source, observation: Observation | str, by_spark: bool) -> DataFrame:
    """The source, counted in front of its steps; `by_spark` as in `timed`."""
    frame = timed(source, by_spark)
    usable = F.col(TIME) != F.lit(BEGINNING_US)
    return frame.observe(
        observation,
        F.count(F.lit(1)).alias("offered"),
        F.count_if(~usable).alias("rejected"),
        F.max(F.when(usable, F.col(TIME))).alias("seen_us"),
    )


def counted(frame: DataFrame, observation: Observation | str) -> DataFrame:
    """The rows of a frame, counted."""
    return frame.observe(observation, F.count(F.lit(1)).alias("rows"))


def steps_of(node: Node) -> tuple[Node, list[StatelessStep]]:
    """The node below all stateless steps, and the steps in the order in which they apply."""
    steps: list[StatelessStep] = []
    while isinstance(node, StatelessStep):
        steps.append(node)
        node = node.parent
    return node, steps[::-1]


def apply_steps(frame: DataFrame, steps: Sequence[StatelessStep], what: str, timed: bool = True) -> DataFrame:
    """Apply stateless steps; they must keep the hidden time if there is one."""
    for step in steps:
        with spark_errors_as(f"Spark does not understand a {step.kind} of {what}"):
            frame = step.apply(frame)
        if not isinstance(frame, DataFrame):
            raise FlowError(
                f"A {step.kind} of {what} returns no data frame",
                got=type(frame).__name__,
                do="Let the function return what it made of the data frame that it was given",
            )
    if timed and TIME not in frame.columns:
        raise FlowError(
            f"A transform lost the event time of {what}",
            got="columns " + ", ".join(frame.columns),
            why="Rows without a time cannot be judged late or put into windows",
            do=f"Let the function keep every column that starts with {TIME.rsplit('_', 1)[0]!r}",
        )
    return frame


def may_drop(steps: Sequence[StatelessStep]) -> bool:
    """Whether any of these steps can drop or multiply rows."""
    return any(step.kind not in ("select", "with_column") for step in steps)


def project(
    frame: DataFrame, port: Port, lanes: Lanes, values: Sequence[Column], code: Column, keyless: Column
) -> DataFrame:
    """The rows of a frame in the shared layout."""
    given = dict(zip(port.lanes, values, strict=True))
    # A null key has no code; any number that spreads such rows over instances is valid.
    spread = F.when(keyless, F.xxhash64(F.col(TIME))).otherwise(code)
    tag = F.when(keyless, F.lit(port.tag + 1)).otherwise(F.lit(port.tag))
    return frame.select(
        tag.cast("short").alias(TAG),
        F.coalesce(F.col(TIME), F.lit(BEGINNING_US)).alias(TIME),
        F.coalesce(spread, F.lit(0)).cast("long").alias(CODE),
        *[given.get(name, F.lit(None)).cast(kind).alias(name) for name, kind in lanes.types.items()],
    )


def heartbeat(spark: SparkSession, lanes: Lanes) -> DataFrame:
    """A row a second that belongs to no port."""
    beats = spark.readStream.format("rate").option("rowsPerSecond", 1).option("numPartitions", 1).load()
    return beats.select(
        F.lit(HEARTBEAT).cast("short").alias(TAG),
        F.lit(BEGINNING_US).alias(TIME),
        F.lit(0).cast("long").alias(CODE),
        *[F.lit(None).cast(kind).alias(name) for name, kind in lanes.types.items()],
    )


def union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionAll, frames)
