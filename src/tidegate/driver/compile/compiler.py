"""Compiles a described flow to ports, operators in the order in which they run, and outputs.

The result is static: nothing in it changes from batch to batch. Operators are known by their names, which do
not depend on the order of outputs. Checkpoints rely on this.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, cast

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidegate.api.nodes import Node, OperatorNode, Output, Refused, Source, StatelessStep, Union, name_of
from tidegate.driver.compile import ports
from tidegate.driver.compile.compiled import Compiled, Entry
from tidegate.driver.compile.counted_streams import judged_by_spark, observed_streams
from tidegate.driver.compile.graph_checks import (
    all_streaming_or_none,
    check_columns,
    check_estimates,
    check_outputs,
    graph_of,
    sources_of,
)
from tidegate.driver.compile.join_columns import visible
from tidegate.driver.compile.keys import quoted
from tidegate.driver.compile.ports import Port
from tidegate.driver.operators.registry import build
from tidegate.driver.operators.tap import PortInput, Tap
from tidegate.driver.operators.union import UnionPort
from tidegate.driver.operators.united import United, inputs_of
from tidegate.errors import REPORT_BUG, FlowError
from tidegate.model.times import BEGINNING_US
from tidegate.worker.runtime.layout import CELL, REPORT, TAG, TIME


def compile_flow(
    outputs: Sequence[Output],
    partitions: int,
    cells: bool = False,
    sifts: bool = False,
    repairs: bool = False,
) -> Compiled:
    """Check and compile a flow.

    `cells`: rows of inner joins carry the cell they were found in, for a utility. `sifts`: rows may be
    dropped in front of matches, so that Spark must count them. `repairs`: joins repair skipped pairs, and
    their rows carry the batch that skipped them where an output shows it.
    """
    return _Compiler(outputs, partitions, cells, sifts, repairs).compile()


def output_schema(output: Output) -> T.StructType:
    """The columns that an output writes."""
    compiler = _Compiler([output], 1, cells=False, sifts=False, repairs=False)
    compiler.compile()
    return T.StructType(visible(compiler.frame(output.node)))


class _Compiler:
    """Visits the flow in topological order and builds its operators; it is their `Builder`."""

    def __init__(self, outputs: Sequence[Output], partitions: int, cells: bool, sifts: bool, repairs: bool):
        check_outputs(outputs)
        graph, self._names = graph_of(outputs)
        check_estimates(graph)
        self.outputs, self.partitions, self.cells = outputs, partitions, cells
        marked = {graph.outputs[output.name] for output in outputs if output.repair_column is not None}
        #: Joins whose rows carry the batch that skipped them.
        self._repaired = graph.may_repair() & marked if repairs else frozenset[str]()
        self._timed_operators = graph.needs_time()
        self._sifts = sifts
        self._tags = iter(range(0, 2**15 - 1, 2))
        #: The ports of sources, projected once all lanes are assigned.
        self._waiting: list[Callable[[], Entry]] = []
        sources = sources_of(outputs)
        streaming = all_streaming_or_none(sources)
        self.spark = sources[0].frame.sparkSession
        self.compiled = Compiled(self.spark, streaming, tuple(outputs), graph, {s.name: s for s in sources})

    def compile(self) -> Compiled:
        compiled = self.compiled
        for output in compiled.outputs:
            self._visit(output.node)
        compiled.observed = observed_streams(compiled, self._sifts)
        compiled.judged_by_spark = judged_by_spark(compiled)
        for output in compiled.outputs:
            base, _ = ports.steps_of(output.node)
            if compiled.operator_of(base) is None and id(output.node) not in compiled.taps:
                compiled.taps[id(output.node)] = self._source_tap(output.node)
        compiled.entries = [build() for build in self._waiting]
        for output in compiled.outputs:
            check_columns(output, visible(self.frame(output.node)))
        compiled.fingerprint = self._fingerprint()
        return compiled

    # -- operators, in topological order --------------------------------------------------------------

    def _visit(self, node: Node) -> None:
        base, _ = ports.steps_of(node)
        if self.compiled.operator_of(base) is not None:
            return
        for parent in () if isinstance(base, Union) else base.inputs:
            self._visit(parent)
        if isinstance(base, OperatorNode):
            self.compiled.operators.append(build(base, self._names[id(base)], self))

    def needs_time(self, name: str) -> bool:
        return name in self._timed_operators

    def repairs(self, name: str) -> bool:
        return name in self._repaired

    def port(
        self, node: Node, stored: Sequence[tuple[str, Column, T.DataType]], code: Column, keyless: Column
    ) -> PortInput:
        base, steps = ports.steps_of(node)
        lanes = self.compiled.lanes.assign([kind for _, _, kind in stored])
        stream = base.name if isinstance(base, Source) else None
        port = Port(next(self._tags), stream, tuple(name for name, _, _ in stored), lanes)
        values = [value for _, value, _ in stored]

        def project(rows: DataFrame) -> DataFrame:
            return ports.project(rows, port, self.compiled.lanes, values, code, keyless)

        if isinstance(base, Source):
            self._waiting.append(lambda: _entry(base.name, project(self._entering(base, steps))))
        return PortInput(node, port, project)

    def tap(
        self,
        node: Node,
        observed_as: str | None = None,
        without: str | None = None,
        only: Collection[str] | None = None,
    ) -> Tap | None:
        base, _ = ports.steps_of(node)
        return self._source_tap(node, observed_as, without, only) if isinstance(base, Source) else None

    def union(self, node: Union, name: str) -> tuple[UnionPort, list[T.StructField]]:
        tags = [next(self._tags) for _ in node.sources]
        fields = visible(United(node, name, tags, self._timed).frame)
        lanes = self.compiled.lanes.assign([f.dataType for f in fields])
        port = Port(tags[0], None, tuple(f.name for f in fields), lanes)
        values = [F.col(quoted(f.name)) for f in fields]

        def build() -> Entry:
            united = United(node, name, tags, lambda source: self._entering(source, ()))
            row = (united.frame, port, self.compiled.lanes, values, F.lit(0).cast("long"), F.lit(False))
            return Entry(ports.project(*row, tag=F.col(TAG)), tuple(united.parts))

        self._waiting.append(build)
        return UnionPort(port, inputs_of(node)), fields

    # -- outputs that come straight from a source ----------------------------------------------------

    def _source_tap(
        self,
        node: Node,
        observed_as: str | None = None,
        without: str | None = None,
        only: Collection[str] | None = None,
    ) -> Tap:
        """Rows of a source that pass by all joins; counted behind their steps as `observed_as`, if given.

        `without`: a column that is not needed. `only`: the columns that are needed; None: all.
        """
        base, steps = ports.steps_of(node)
        source = base.parent if isinstance(base, Refused) else cast(Source, base)
        kind = base.kind if isinstance(base, Refused) else "rows"
        if kind != "rows":
            steps = []  # Refused rows are selected first; their steps apply afterwards.
        frame = ports.apply_steps(self._timed(source), steps, repr(source.name))
        fields = [f for f in visible(frame) if f.name != without and (only is None or f.name in only)]
        lanes = self.compiled.lanes.assign([f.dataType for f in fields])
        port = Port(next(self._tags), source.name, tuple(f.name for f in fields), lanes)
        values = [F.col(quoted(f.name)) for f in fields]

        def build() -> DataFrame:
            rows = (
                self._measured(source, self._timed(source))
                if kind != "rows"
                else self._entering(source, steps)
            )
            if observed_as is not None and ports.may_drop(steps):
                rows = ports.counted(
                    rows, self._observation(self.compiled.observations.entering, observed_as)
                )
            return ports.project(rows, port, self.compiled.lanes, values, F.lit(0).cast("long"), F.lit(False))

        self._waiting.append(lambda: _entry(source.name, build()))
        return Tap(node, port, source.name, kind)

    # -- frames and time -----------------------------------------------------------------------------

    def frame(self, node: Node) -> DataFrame:
        """A frame with the node's columns: the stream itself, or an empty frame for an operator."""
        base, steps = ports.steps_of(node)
        source = base.parent if isinstance(base, Refused) else base
        if isinstance(source, Source):
            return ports.apply_steps(self._timed(source), steps, repr(source.name))
        operator = self.compiled.operator_of(base)
        if operator is None:
            raise FlowError(
                "An operator was not compiled",
                code="INTERNAL_OPERATOR_MISSING",
                got=name_of(base),
                do=REPORT_BUG,
            )
        empty = self.spark.createDataFrame([], operator.schema).drop(REPORT, CELL)
        # Rows carry a time only if a later operator needs it.
        return ports.apply_steps(empty, steps, operator.name, timed=self.needs_time(operator.name))

    def _entering(self, source: Source, steps: Sequence[StatelessStep]) -> DataFrame:
        """Rows of a source behind its steps; counted before them if the tasks cannot count them."""
        if source.name not in self.compiled.observed:
            frame = self._measured(source, self._timed(source))
            return ports.apply_steps(frame, steps, repr(source.name))
        # One observation per stream: a second one on another branch would count every row twice.
        if source.name in self.compiled.observations.streams:
            frame = self._timed(source)
        else:
            watch = self._observation(self.compiled.observations.streams, source.name)
            frame = ports.watched(source, watch, by_spark=source.name in self.compiled.judged_by_spark)
        frame = self._measured(source, frame).filter(F.col(TIME) != F.lit(BEGINNING_US))
        return ports.apply_steps(frame, steps, repr(source.name))

    def _measured(self, source: Source, frame: DataFrame) -> DataFrame:
        """The rows of a source; on the first branch that reads them, `available_at` is observed."""
        known = self.compiled.observations.available
        if source.available_at is None or source.name in known:
            return frame
        watch = f"{source.name}.available_at"
        known[source.name] = watch if self.compiled.streaming else Observation(watch)
        return ports.measured(frame, source, known[source.name])

    def _observation(self, known: dict[str, Observation | str], name: str) -> Observation | str:
        """Named in a streaming query, an object in a batch one."""
        return known.setdefault(name, name if self.compiled.streaming else Observation(name))

    def _timed(self, source: Source) -> DataFrame:
        return ports.timed(source, by_spark=source.name in self.compiled.judged_by_spark)

    def time_type(self, node: Node) -> T.DataType:
        base, _ = ports.steps_of(node)
        while isinstance(base, OperatorNode):
            base, _ = ports.steps_of(base.inputs[0])
        return base.frame.schema[base.time].dataType if isinstance(base, Source) else T.NullType()

    def _fingerprint(self) -> dict[str, Any]:
        """What must not change between two runs on one checkpoint."""
        compiled = self.compiled
        found = {operator.name: operator.fingerprint() for operator in compiled.operators}
        operators = {name: one for name, one in found.items() if one is not None}
        return {
            "partitions": self.partitions,
            "streams": {
                name: {"time": source.time, "schema": source.frame.schema.simpleString()}
                for name, source in compiled.sources.items()
            },
            "operators": operators,
        }


def _entry(stream: str, frame: DataFrame) -> Entry:
    return Entry(frame, ((stream, frame),))
