"""A compiled flow: plain descriptions of what runs, made once when a query starts (by `compiler.py`)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, Observation, SparkSession

from tidegate.api.nodes import Node, Output, Source
from tidegate.control.watermarks import ClockSettings
from tidegate.driver.compile import ports
from tidegate.driver.compile.ports import Lanes
from tidegate.driver.java_collections import java_items
from tidegate.driver.operators.join import JoinOperator
from tidegate.driver.operators.match import MatchOperator
from tidegate.driver.operators.protocol import Operator
from tidegate.driver.operators.tap import Tap
from tidegate.driver.operators.union import UnionOperator
from tidegate.driver.operators.window import WindowOperator
from tidegate.model.graph import FlowGraph
from tidegate.model.plan import Plan
from tidegate.model.times import END_US


@dataclass(frozen=True)
class Observations:
    """Spark's observed metrics: names in a streaming query, objects in a batch query."""

    #: By observed stream: its rows.
    streams: dict[str, Observation | str] = field(default_factory=dict)
    #: By operator: rows that enter a match, if stateless steps before it may drop some.
    entering: dict[str, Observation | str] = field(default_factory=dict)
    #: By stream with an `available_at`: when its rows became available.
    available: dict[str, Observation | str] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """One part of the input of a query, in the shared layout."""

    frame: DataFrame
    #: By source that it reads, in Spark's order: its stream, and a frame with its leaves.
    parts: tuple[tuple[str, DataFrame], ...]


@dataclass
class Compiled:
    """A compiled flow, ready to run."""

    spark: SparkSession
    streaming: bool
    outputs: tuple[Output, ...]
    graph: FlowGraph
    sources: dict[str, Source] = field(default_factory=dict)
    #: In topological order.
    operators: list[Operator] = field(default_factory=list)
    taps: dict[int, Tap] = field(default_factory=dict)
    lanes: Lanes = field(default_factory=Lanes)
    #: Streams whose rows are counted by observed metrics, not by join tasks.
    observed: set[str] = field(default_factory=set)
    observations: Observations = field(default_factory=Observations)
    #: Streams for which Spark finds times too far ahead, because not only join tasks read them.
    judged_by_spark: set[str] = field(default_factory=set)
    fingerprint: dict[str, Any] = field(default_factory=dict)
    #: By port of a source, in tag order.
    entries: list[Entry] = field(default_factory=list)

    @property
    def joins(self) -> list[JoinOperator]:
        return [operator for operator in self.operators if isinstance(operator, JoinOperator)]

    @property
    def matches(self) -> list[MatchOperator]:
        return [operator for operator in self.operators if isinstance(operator, MatchOperator)]

    @property
    def windows(self) -> list[WindowOperator]:
        return [operator for operator in self.operators if isinstance(operator, WindowOperator)]

    @property
    def unions(self) -> list[UnionOperator]:
        return [operator for operator in self.operators if isinstance(operator, UnionOperator)]

    @property
    def clocks(self) -> dict[str, ClockSettings]:
        return {
            name: ClockSettings(source.lateness_us, source.idle_timeout_us)
            for name, source in self.sources.items()
        }

    def newest_us(self, stream: str | None, plan: Plan) -> int:
        """The newest time of a stream that its tasks accept, by the clock of the plan."""
        ahead_us = None if stream is None else self.sources[stream].max_ahead_us
        return END_US if ahead_us is None or stream in self.judged_by_spark else plan.now_us + ahead_us

    def operator_of(self, node: Node) -> Operator | None:
        """The operator of a node; None if the node is not an operator."""
        return next((operator for operator in self.operators if operator.node is node), None)

    def feeding(self, node: Node) -> str:
        """The stream or operator that the rows of a node come from."""
        base, _ = ports.steps_of(node)
        operator = self.operator_of(base)
        if operator is not None:
            return operator.name
        return base.name if isinstance(base, Source) else self.feeding(base.inputs[0])

    def shown_by(self, output: Output) -> Operator | None:
        """The operator whose rows an output writes; None if a stream feeds it."""
        return self.operator_of(ports.steps_of(output.node)[0])

    def input_frame(self) -> DataFrame:
        """The one input of the query: all ports in one union, with a heartbeat when streaming."""
        beats = [ports.heartbeat(self.spark, self.lanes)] if self.streaming else []
        return ports.union([*(entry.frame for entry in self.entries), *beats])

    def stream_of(self, file: str) -> str | None:
        """The stream that reads this file; None if no one stream is known to."""
        found = {name for name, source in self.sources.items() if _reads(source.frame, file)}
        return found.pop() if len(found) == 1 else None

    def streams_by_leaf(self) -> list[str]:
        """The stream of each source of the one input, in Spark's order and without the heartbeat."""
        parts = [part for entry in self.entries for part in entry.parts]
        return [stream for stream, frame in parts for _ in range(streaming_leaves(frame))]


def streaming_leaves(frame: DataFrame) -> int:
    """The number of sources that a frame reads."""
    leaves = java_items(frame._jdf.queryExecution().analyzed().collectLeaves())
    return sum(bool(leaf.isStreaming()) for leaf in leaves)


def _reads(frame: DataFrame, file: str) -> bool:
    """Whether a source of the frame reads the folder of a file."""
    try:
        leaves = java_items(frame._jdf.queryExecution().analyzed().collectLeaves())
        texts = [leaf.toString() for leaf in leaves]
    except Py4JError:
        return False
    folders = [path for text in texts for path in re.findall(r"(?:path -> |file:|\[)([^,)\]\s]+)", text)]
    name = re.sub(r"^\w+:/+", "/", file)
    return any(name.startswith(f"{re.sub(r'^[a-z0-9]+:/+', '/', path).rstrip('/')}/") for path in folders)
