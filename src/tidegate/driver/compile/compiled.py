"""A flow, compiled: plain descriptions of what runs, made once when a query starts (by `compile.py`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import types as T

from tidegate.api.nodes import Join, Match, Node, Output, Source, Window
from tidegate.control.watermarks import ClockSettings
from tidegate.driver.compile import ports
from tidegate.driver.compile.ports import Lanes, Port
from tidegate.driver.compile.window_aggregates import Taken
from tidegate.driver.java_collections import java_items
from tidegate.model.times import END_US
from tidegate.sift.queries.query_set import QuerySet
from tidegate.worker.runtime.layout import JoinLayout, MatchLayout, WindowLayout


@dataclass(frozen=True)
class JoinInput:
    """One side of a compiled join: its port, and what projects a frame of its rows onto the layout."""

    node: Node
    port: Port
    #: From a frame of the node's rows to rows in the shared layout.
    project: Callable[[DataFrame], DataFrame]

    @property
    def from_source(self) -> bool:
        return self.port.stream is not None


@dataclass(frozen=True)
class CompiledJoin:
    node: Join
    layout: JoinLayout
    inputs: tuple[JoinInput, JoinInput]
    #: Spark schema of the rows its tasks return, the report last.
    schema: T.StructType
    #: The same with all columns there are, also those that nobody asks for in this run.
    whole: T.StructType
    #: Where a residual condition is judged between two steps: what the first step returns.
    candidates: JoinLayout | None = None
    candidates_schema: T.StructType | None = None


@dataclass(frozen=True)
class CompiledMatch:
    node: Match
    layout: MatchLayout
    #: Where its rows enter; None where another operator feeds it.
    tap: Tap | None
    queries: QuerySet
    schema: T.StructType


@dataclass(frozen=True)
class CompiledWindow:
    node: Window
    layout: WindowLayout
    #: Where its rows enter; None where another operator feeds it.
    tap: Tap | None
    taken: Taken
    schema: T.StructType
    #: Are keys equal just where their hashes are, so that tasks may tell groups apart by themselves? And can
    #: they make every partial?
    plain: bool = False


@dataclass(frozen=True)
class Tap:
    """Rows of a source that go straight to an output: on-time rows of a node, or refused rows."""

    node: Node
    port: Port
    stream: str
    kind: str


CompiledOperator = CompiledJoin | CompiledMatch | CompiledWindow


@dataclass
class Compiled:
    """A flow, ready to run."""

    spark: SparkSession
    streaming: bool
    outputs: tuple[Output, ...]
    sources: dict[str, Source] = field(default_factory=dict)
    #: In the order in which their inputs are complete.
    operators: list[CompiledOperator] = field(default_factory=list)
    taps: dict[int, Tap] = field(default_factory=dict)
    lanes: Lanes = field(default_factory=Lanes)
    #: Streams whose rows are counted by observed metrics, not by join tasks.
    observed: set[str] = field(default_factory=set)
    #: Their observations: named in a streaming query, objects in a batch one.
    observations: dict[str, Observation | str] = field(default_factory=dict)
    #: The same for rows that enter a match, by operator, where boxes in front of it may drop some.
    counted: dict[str, Observation | str] = field(default_factory=dict)
    #: Streams whose times too far ahead are found by Spark, because not only join tasks see them.
    judged_by_spark: set[str] = field(default_factory=set)
    fingerprint: dict[str, Any] = field(default_factory=dict)
    #: Frames of source-fed ports in the shared layout, in tag order.
    port_frames: list[DataFrame] = field(default_factory=list)
    #: The streams that they are of.
    port_streams: list[str] = field(default_factory=list)

    @property
    def joins(self) -> list[CompiledJoin]:
        return [operator for operator in self.operators if isinstance(operator, CompiledJoin)]

    @property
    def matches(self) -> list[CompiledMatch]:
        return [operator for operator in self.operators if isinstance(operator, CompiledMatch)]

    @property
    def windows(self) -> list[CompiledWindow]:
        return [operator for operator in self.operators if isinstance(operator, CompiledWindow)]

    @property
    def clocks(self) -> dict[str, ClockSettings]:
        return {
            name: ClockSettings(source.lateness_us, source.idle_timeout_us)
            for name, source in self.sources.items()
        }

    def newest_us(self, stream: str, now_us: int) -> int:
        """The newest time of a stream that its join tasks believe, by the clock of the plan."""
        ahead_us = self.sources[stream].max_ahead_us
        return END_US if ahead_us is None or stream in self.judged_by_spark else now_us + ahead_us

    def join_of(self, node: Join) -> CompiledJoin:
        return next(join for join in self.joins if join.node is node)

    def operator_of(self, node: Join | Match | Window) -> CompiledOperator:
        return next(operator for operator in self.operators if operator.node is node)

    @property
    def read_by_operators(self) -> set[str]:
        """Operators whose results another operator reads."""
        parents = [side.node for join in self.joins for side in join.inputs]
        parents += [match.node.parent for match in self.matches]
        parents += [window.node.parent for window in self.windows]
        return {name for parent in parents if (name := self._behind(parent)) is not None}

    def feeding(self, output: Output) -> str | None:
        """The operator whose rows an output shows; None where a stream feeds it."""
        return self._behind(output.node)

    def _behind(self, node: Node) -> str | None:
        base, _ = ports.boxes_of(node)
        return self.operator_of(base).layout.operator if isinstance(base, (Join, Match, Window)) else None

    def input_frame(self) -> DataFrame:
        """The one input of the query: all ports in one union, with a heartbeat when streaming."""
        beats = [ports.heartbeat(self.spark, self.lanes)] if self.streaming else []
        return ports.union([*self.port_frames, *beats])

    def streams_by_leaf(self) -> list[str]:
        """By source of the one input, in Spark's order and without the heartbeat: the stream it is of."""
        both = zip(self.port_streams, self.port_frames, strict=True)
        return [stream for stream, frame in both for _ in range(streaming_leaves(frame))]


def streaming_leaves(frame: DataFrame) -> int:
    """Sources that a frame is made of."""
    leaves = java_items(frame._jdf.queryExecution().analyzed().collectLeaves())
    return sum(bool(leaf.isStreaming()) for leaf in leaves)
