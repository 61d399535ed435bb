"""A compiled flow: plain descriptions of what runs, made once when a query starts (by `compiler.py`)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from tidegate.api.nodes import Node, Output, Source
from tidegate.control.watermarks import ClockSettings
from tidegate.driver.compile import ports
from tidegate.driver.frames.grafts import Graft
from tidegate.driver.frames.query_input import QueryInput
from tidegate.driver.java_collections import java_items
from tidegate.driver.operators.join import JoinOperator
from tidegate.driver.operators.match import MatchOperator
from tidegate.driver.operators.protocol import Operator
from tidegate.driver.operators.tap import Entry, Tap
from tidegate.driver.operators.union import UnionOperator
from tidegate.driver.operators.window import WindowOperator
from tidegate.model.graph import FlowGraph
from tidegate.model.plan import Plan
from tidegate.model.times import END_US

#: Spark's watermarks are whole milliseconds.
SPARK_GRAIN_US = 1000


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
    #: Streams whose rows are counted by observed metrics, not by join tasks.
    observed: set[str] = field(default_factory=set)
    #: Streams for which Spark finds times too far ahead, because not only join tasks read them.
    judged_by_spark: set[str] = field(default_factory=set)
    fingerprint: dict[str, Any] = field(default_factory=dict)
    #: Readers of streams.
    entries: list[Entry] = field(default_factory=list)
    #: By stream: its frame with the event time, on which its readers are built.
    timed_frames: dict[str, DataFrame] = field(default_factory=dict)
    #: Streams that are kept in a batch, because several readers share their rows.
    shared: set[str] = field(default_factory=set)
    _timed: dict[str, Graft] = field(default_factory=dict)

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
    def direct_tap(self) -> Tap | None:
        """The tap of a flow that has no operators and one output, which the action of a batch can write."""
        if not self.streaming or self.operators or len(self.outputs) != 1:
            return None
        (output,) = self.outputs
        tap = self.taps.get(id(output.node))
        # A function may read its rows several times, or not at all; a table is appended to once.
        by_spark = output.function is None and output.table is None
        return tap if by_spark and tap is not None and tap.kind == "rows" else None

    @property
    def clocks(self) -> dict[str, ClockSettings]:
        return {
            name: ClockSettings(source.lateness_us, source.idle_timeout_us, SPARK_GRAIN_US)
            for name, source in self.sources.items()
        }

    def newest_us(self, stream: str | None, plan: Plan) -> int:
        """The newest time of a stream that its tasks accept, by the clock of the plan."""
        return END_US if stream is None or stream in self.judged_by_spark else self.accepted_us(stream, plan)

    def accepted_us(self, stream: str, plan: Plan) -> int:
        """The newest time of a stream that is not too far ahead of the clock of the plan."""
        ahead_us = self.sources[stream].max_ahead_us
        return END_US if ahead_us is None else plan.now_us + ahead_us

    def operator_of(self, node: Node) -> Operator | None:
        """The operator of a node; None if the node is not an operator."""
        return next((operator for operator in self.operators if operator.node is node), None)

    def named(self, name: str) -> Operator:
        """The operator of a name."""
        return next(operator for operator in self.operators if operator.name == name)

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

    def forget_entries(self, operator: Operator) -> None:
        """Forget the readers of an operator that is built again."""
        own = {id(entry) for entry in operator.entries}
        self.entries = [entry for entry in self.entries if id(entry) not in own]

    def finish(self) -> None:
        """Compile the plans of all readers."""
        for name, frame in self.timed_frames.items():
            self._timed[name] = Graft(frame, {name: self.sources[name].frame})
        for entry in self.entries:
            entry.graft.check()

    def timed(self, stream: str) -> Graft:
        """The plan that reads the event time of a stream."""
        return self._timed[stream]

    @cached_property
    def query_input(self) -> QueryInput:
        """The one input of a streaming query."""
        return QueryInput(self.spark, {name: self.sources[name].frame for name in self.graph.streams})

    def stream_of(self, file: str) -> str | None:
        """The stream that reads this file; None if no one stream is known to."""
        found = {name for name, source in self.sources.items() if _reads(source.frame, file)}
        return found.pop() if len(found) == 1 else None


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
