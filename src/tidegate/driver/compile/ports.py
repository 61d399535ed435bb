"""Ports, where rows enter an operator, and lanes, the typed columns that the ports of an operator share.

Each source becomes a frame with a usable event time beside its columns: the time is read before any stateless
step. A port projects the rows behind the steps onto the row layout of its operator
(`worker/runtime/layout.py`). All of this is compiled once and runs in the batch (`frames/stream_rows.py`).

A join of two inputs with three bigint columns each needs three bigint lanes, not six nullable columns: half
the bytes in the shuffle and on the way into Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidegate.api.nodes import Node, Source, StatelessStep
from tidegate.api.streams import HIDDEN
from tidegate.driver.compile.expression_checks import spark_errors_as
from tidegate.driver.compile.keys import quoted
from tidegate.errors import FlowError, TidegateError, in_one_line
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


#: Kinds of steps that neither drop nor multiply rows.
KEEPS_ROWS = ("select", "with_column", "with_columns", "with_column_renamed", "drop")


@dataclass(frozen=True)
class Port:
    """One entry of rows into the engine."""

    tag: int
    stream: str | None
    columns: tuple[str, ...]
    lanes: tuple[str, ...]


def micros(frame: DataFrame, name: str) -> Column | None:
    """A timestamp column in microseconds; one without a time zone is in UTC. None if it is no timestamp."""
    kind, column = frame.schema[name].dataType, F.col(quoted(name))
    if isinstance(kind, T.TimestampType):
        return F.unix_micros(column)
    if isinstance(kind, T.TimestampNTZType):
        return F.timestamp_diff("MICROSECOND", F.expr("timestamp_ntz'1970-01-01 00:00:00'"), column)
    return None


def timed(source: Source) -> DataFrame:
    """The source with its event time in microseconds; BEGINNING_US if it has none."""
    time = micros(source.frame, source.time)
    if time is None:
        raise FlowError(
            f"The time column of stream {source.name!r} is not a timestamp",
            code="STREAM_TIME_TYPE_INVALID",
            got=f"{source.time!r}: {source.frame.schema[source.time].dataType.simpleString()}",
            do="Convert it before tg.stream, for example with to_timestamp or timestamp_micros",
        )
    frame: DataFrame = source.frame.withColumn(TIME, F.coalesce(time, F.lit(BEGINNING_US)))
    return frame


def check_available(source: Source) -> None:
    """Raise if `available_at` is no timestamp."""
    name = source.available_at
    if name is None or micros(source.frame, name) is not None:
        return
    raise FlowError(
        f"available_at of stream {source.name!r} is not a timestamp",
        code="STREAM_AVAILABLE_AT_TYPE",
        got=f"{name!r}: {source.frame.schema[name].dataType.simpleString()}",
        why="The latency of a row is counted from this time",
        do="Convert it, for example with to_timestamp or timestamp_millis, or leave out available_at=…",
    )


def steps_of(node: Node) -> tuple[Node, list[StatelessStep]]:
    """The node below all stateless steps, and the steps in the order in which they apply."""
    steps: list[StatelessStep] = []
    while isinstance(node, StatelessStep):
        steps.append(node)
        node = node.parent
    return node, steps[::-1]


def apply_steps(
    frame: DataFrame, steps: Sequence[StatelessStep], what: str, timed: bool = True, tagged: bool = False
) -> DataFrame:
    """Apply stateless steps; they must keep the hidden time, and the hidden tag, if there is one."""
    for step in steps:
        frame = _applied(frame, step, what)
        if not isinstance(frame, DataFrame):
            raise FlowError(
                f"The function of a {step.kind} of {what} did not return a data frame",
                code="STEP_RESULT_INVALID",
                got=type(frame).__name__,
                do="Return the transformed data frame",
            )
    if (timed and TIME not in frame.columns) or (tagged and TAG not in frame.columns):
        raise FlowError(
            f"A transform of {what} dropped the event time",
            code="STEP_TIME_LOST",
            got="columns " + ", ".join(frame.columns),
            why="Rows without a time cannot be placed in windows",
            do=f"Keep every column that starts with {TIME.rsplit('_', 1)[0]!r}",
        )
    return frame


def _applied(frame: DataFrame, step: StatelessStep, what: str) -> Any:
    """The result of a step, or the error for a mistake in it."""
    known = ", ".join(name for name in frame.columns if not name.startswith(HIDDEN))
    constants = "; write constants as F.lit(1)" if step.kind.startswith("with_column") else ""
    try:
        with spark_errors_as(
            f"Spark rejects a {step.kind} of {what}",
            code="STEP_INVALID",
            do=f"Use expressions over the columns {known}{constants}",
        ):
            return step.apply(frame)
    except TidegateError:
        raise
    except Exception as error:
        raise FlowError(
            f"The function of a {step.kind} of {what} raised an error",
            code="STEP_FAILED",
            got=in_one_line(error),
            why="It is called once when the query starts, with a data frame that has no rows yet",
            do="Correct the function; it must only describe the transformation",
        ) from error


def may_drop(steps: Sequence[StatelessStep]) -> bool:
    """Whether any of these steps can drop or multiply rows."""
    return any(step.kind not in KEEPS_ROWS for step in steps)


def projection(
    port: Port, lanes: Lanes, values: Sequence[Column], code: Column, keyless: Column
) -> list[Column]:
    """The columns of rows in the shared layout, with the tag of the port."""
    given = dict(zip(port.lanes, values, strict=True))
    # A null key has no code; any number that spreads such rows over instances is valid.
    spread = F.when(keyless, F.xxhash64(F.col(TIME))).otherwise(code)
    tag = F.when(keyless, F.lit(port.tag + 1)).otherwise(F.lit(port.tag))
    return [
        tag.cast("short").alias(TAG),
        F.coalesce(F.col(TIME), F.lit(BEGINNING_US)).alias(TIME),
        F.coalesce(spread, F.lit(0)).cast("long").alias(CODE),
        *[given.get(name, F.lit(None)).cast(kind).alias(name) for name, kind in lanes.types.items()],
    ]


def union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionAll, frames)
