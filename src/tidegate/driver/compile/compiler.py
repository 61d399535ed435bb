"""Compiles a described flow to ports, operators in the order in which they run, and outputs.

The result is static: nothing in it changes from batch to batch. Operators are known by their names, which do
not depend on the order of outputs. Checkpoints rely on this.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidegate.api.nodes import Node, OperatorNode, Output, Refused, Source, StatelessStep, Union, name_of
from tidegate.control.identity.flow_change import FlowChange
from tidegate.driver.compile import ports
from tidegate.driver.compile.column_pruning import (
    StoredBefore,
    blank_frame,
    columns_needed,
    stored_by,
    visible_only,
)
from tidegate.driver.compile.compiled import Compiled
from tidegate.driver.compile.counted_streams import judged_by_spark, observed_streams, shared_streams
from tidegate.driver.compile.graph_checks import (
    all_streaming_or_none,
    check_columns,
    check_estimates,
    check_outputs,
    graph_of,
    in_order,
    renames_of,
    sources_of,
)
from tidegate.driver.compile.join_columns import visible
from tidegate.driver.compile.keys import quoted
from tidegate.driver.compile.lineage import steps_text
from tidegate.driver.compile.one_scan import one_scan
from tidegate.driver.compile.ports import Lanes, Port
from tidegate.driver.frames.frame_cache import Selection
from tidegate.driver.frames.grafts import renewed
from tidegate.driver.operators.join import JoinOperator
from tidegate.driver.operators.protocol import Operator, RunNeeds
from tidegate.driver.operators.registry import build
from tidegate.driver.operators.tap import Entry, PortInput, Tap
from tidegate.driver.operators.union import UnionPort, United, inputs_of
from tidegate.errors import FlowError
from tidegate.model.codec import to_json_values
from tidegate.model.times import BEGINNING_US
from tidegate.worker.runtime.layout import TAG, TIME


def compile_flow(
    outputs: Sequence[Output],
    partitions: int,
    needs: RunNeeds | None = None,
    stored: Mapping[str, Any] | None = None,
    renames: Mapping[str, str] | None = None,
) -> Compiled:
    """Check and compile a flow.

    `stored`: the description of the flow in the checkpoint. `renames`: names in it, and those that they have
    now.
    """
    return _Compiler(outputs, partitions, needs or RunNeeds(), stored or {}, renames or {}).compile()


def output_schema(output: Output) -> T.StructType:
    """The columns that an output writes."""
    compiler = _Compiler([output], 1, RunNeeds(), stored={}, renames={})
    compiler.compile()
    return T.StructType(visible(compiler.frame(output.node)))


class _Compiler:
    """Visits the flow in topological order and builds its operators; it is their `Builder`."""

    def __init__(
        self,
        outputs: Sequence[Output],
        partitions: int,
        needs: RunNeeds,
        stored: Mapping[str, Any],
        renames: Mapping[str, str],
    ):
        check_outputs(outputs)
        graph, self._names = graph_of(outputs)
        change = FlowChange.between(stored, graph.names, renames_of(outputs, renames))
        stored = change.names.flow(stored)
        graph = replace(graph, streams=in_order(graph.streams, stored.get("names", {}).get("streams", ())))
        check_estimates(graph)
        self.outputs, self.partitions, self.needs = outputs, partitions, needs
        marked = {graph.outputs[output.name] for output in outputs if output.repair_column is not None}
        #: Joins whose rows carry the batch that skipped them.
        self._repaired = graph.may_repair() & marked if needs.repairs else frozenset[str]()
        self._timed_operators = graph.needs_time()
        self._stored = stored
        #: By operator: the columns that are read behind it.
        self._wanted: dict[str, frozenset[str]] = {}
        #: The tag of each port of an operator, by its place; the same if the operator is built again.
        self._tags: dict[tuple[str, int], int] = {}
        self._building, self._ports = "", 0
        sources = sources_of(outputs)
        streaming = all_streaming_or_none(sources)
        self.spark = sources[0].frame.sparkSession
        self.compiled = Compiled(self.spark, streaming, tuple(outputs), graph, {s.name: s for s in sources})

    def compile(self) -> Compiled:
        compiled = self.compiled
        for output in compiled.outputs:
            self._visit(output.node)
        self._prune()
        compiled.observed = observed_streams(compiled, self.needs.sifts and compiled.streaming)
        compiled.judged_by_spark = judged_by_spark(compiled)
        for output in compiled.outputs:
            base, _ = ports.steps_of(output.node)
            if compiled.operator_of(base) is None and id(output.node) not in compiled.taps:
                compiled.taps[id(output.node)] = self._source_tap(output.node)
        for join in compiled.joins:
            self._read_in_one_scan(join)
        compiled.shared = shared_streams(compiled)
        compiled.finish()
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
            self.compiled.operators.append(self._built(base, self._names[id(base)]))

    def _built(self, node: OperatorNode, name: str) -> Operator:
        self._building, self._ports = name, 0
        return build(node, name, self)

    def _next_tag(self) -> int:
        self._ports += 1
        return self._tags.setdefault((self._building, self._ports), 2 * len(self._tags))

    def _prune(self) -> None:
        """Build operators again without the columns that nothing behind them reads, the last ones first."""
        operators = self.compiled.operators
        for place in reversed(range(len(operators))) if not self.needs.cells else ():
            one = operators[place]
            wanted = self._read_behind(one) if one.prunes else frozenset(one.columns)
            if wanted.issuperset(one.columns) and one.name not in self._stored.get("operators", {}):
                continue
            self._wanted[one.name] = wanted
            self.compiled.forget_entries(one)
            operators[place] = self._built(one.node, one.name)

    def _read_in_one_scan(self, join: JoinOperator) -> None:
        both = one_scan(join.entries)
        if both is not None:
            self.compiled.forget_entries(join)
            self.compiled.entries.append(both)
            join.both = both

    def _read_behind(self, operator: Operator) -> frozenset[str]:
        """The columns of an operator that its readers need."""
        base = blank_frame(self.spark, operator.columns)
        shown = operator.shown(base)
        wanted: set[str] = set()
        for output in self.outputs:
            node, steps = ports.steps_of(output.node)
            if node is operator.node:
                if not steps:
                    return frozenset(operator.columns)
                rows = ports.apply_steps(shown, steps, operator.name, timed=False)
                wanted |= columns_needed(base, visible_only(rows))
        for reader in self.compiled.operators:
            for number, given in enumerate(reader.node.inputs):
                node, steps = ports.steps_of(given)
                if node is operator.node:
                    rows = ports.apply_steps(
                        shown, steps, operator.name, timed=self.needs_time(operator.name)
                    )
                    wanted |= columns_needed(base, reader.needs(number, rows))
        return frozenset(wanted)

    def wanted(self, name: str) -> frozenset[str] | None:
        return self._wanted.get(name)

    def stored(self, name: str, side: int) -> StoredBefore | None:
        # What is read is known when an operator is built for the second time.
        return stored_by(self._stored, name, side) if name in self._wanted else None

    def basic_us(self, name: str) -> int | None:
        # Stored rows lie in basic windows, so a join keeps those that it began with.
        stored = self._stored.get("operators", {}).get(name)
        if stored is None:
            return self.needs.basic_us
        known: int | None = stored.get("within", {}).get("basic_us")
        return known

    def needs_time(self, name: str) -> bool:
        return name in self._timed_operators

    def repairs(self, name: str) -> bool:
        return name in self._repaired

    def port(
        self,
        node: Node,
        stored: Sequence[tuple[str, Column, T.DataType]],
        code: Column,
        keyless: Column,
        lanes: Lanes,
    ) -> PortInput:
        base, steps = ports.steps_of(node)
        assigned = lanes.assign([kind for _, _, kind in stored])
        stream = base.name if isinstance(base, Source) else None
        port = Port(self._next_tag(), stream, tuple(name for name, _, _ in stored), assigned)
        values = [value for _, value, _ in stored]

        @cache
        def columns() -> Selection:
            return Selection(ports.projection(port, lanes, values, code, keyless))

        def project(rows: DataFrame) -> DataFrame:
            return columns().of(rows)

        entry = None
        if isinstance(base, Source):
            source = base
            entry = self._entry(source, lambda: project(self._behind(source, steps)))
        return PortInput(node, port, lanes, project, entry)

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
        tags = range(len(node.sources))
        fields = visible(United(node, name, tags, self._timed).frame)
        names = [F.col(quoted(field.name)) for field in fields]
        # A stream, or a frame of two streams, may be in a union twice; then Spark would renew its columns.
        stream_of = {f"{source.name} {number}": source.name for number, source in enumerate(node.sources)}
        frames = [self._timed(source) for source in node.sources]
        timed = dict(zip(stream_of, [frames[0], *map(renewed, frames[1:])], strict=True))

        def made() -> DataFrame:
            inputs = iter(timed.values())
            united = United(node, name, tags, lambda source: next(inputs)).frame
            return united.select(F.col(TAG), _time(), *names)

        entry = Entry(timed, made, stream_of=stream_of)
        self.compiled.entries.append(entry)
        return UnionPort(entry, tuple(field.name for field in fields), inputs_of(node)), fields

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
        frame = self._behind(source, steps)
        names = [f.name for f in visible(frame) if f.name != without and (only is None or f.name in only)]

        def made() -> DataFrame:
            return self._behind(source, steps).select(*[F.col(quoted(name)) for name in names], _time())

        counted_as = observed_as if ports.may_drop(steps) else None
        entry = self._entry(source, made, usable_only=kind == "rows", counted_as=counted_as)
        return Tap(node, tuple(names), source.name, kind, entry)

    def _entry(
        self,
        source: Source,
        make: Callable[[], DataFrame],
        usable_only: bool = True,
        counted_as: str | None = None,
    ) -> Entry:
        entry = Entry({source.name: self._timed(source)}, make, usable_only, counted_as)
        self.compiled.entries.append(entry)
        return entry

    # -- frames and time -----------------------------------------------------------------------------

    def frame(self, node: Node) -> DataFrame:
        """A frame with the node's columns: the stream itself, or an empty frame for an operator."""
        base, steps = ports.steps_of(node)
        source = base.parent if isinstance(base, Refused) else base
        if isinstance(source, Source):
            return self._behind(source, steps)
        operator = self.compiled.operator_of(base)
        if operator is None:
            raise FlowError(
                "An operator was not compiled",
                code="INTERNAL_OPERATOR_MISSING",
                got=name_of(base),
            )
        fields = [T.StructField(name, kind) for name, kind in operator.columns.items()]
        empty = self.spark.createDataFrame([], T.StructType(fields))
        # Rows carry a time only if a later operator needs it.
        return ports.apply_steps(empty, steps, operator.name, timed=self.needs_time(operator.name))

    def _behind(self, source: Source, steps: Sequence[StatelessStep]) -> DataFrame:
        """Rows of a source behind its steps."""
        return ports.apply_steps(self._timed(source), steps, repr(source.name))

    def _timed(self, source: Source) -> DataFrame:
        """The source with its event time; one frame for all readers, because they are put on its plan."""
        frames = self.compiled.timed_frames
        if source.name not in frames:
            ports.check_available(source)
            frames[source.name] = ports.timed(source)
        return frames[source.name]

    def time_type(self, node: Node) -> T.DataType:
        base, _ = ports.steps_of(node)
        while isinstance(base, OperatorNode):
            base, _ = ports.steps_of(base.inputs[0])
        return base.frame.schema[base.time].dataType if isinstance(base, Source) else T.NullType()

    def _steps(self, name: str) -> list[str]:
        """What stands in front of each input of an operator, as text."""
        inputs = next(one.node.inputs for one in self.compiled.operators if one.name == name)
        texts = []
        for node in inputs:
            base, steps = ports.steps_of(node)
            below = (base.frame, self._timed(base)) if isinstance(base, Source) else ()
            texts.append(steps_text(self.frame(node), steps, below))
        return texts

    def _fingerprint(self) -> dict[str, Any]:
        """What must not change between two runs on one checkpoint."""
        compiled = self.compiled
        found = {operator.name: operator.fingerprint() for operator in compiled.operators}
        operators = {name: one for name, one in found.items() if one is not None}
        return {
            "partitions": self.partitions,
            "streams": {
                name: {
                    "time": source.time,
                    "schema": {one.name: one.dataType.simpleString() for one in source.frame.schema.fields},
                }
                for name, source in compiled.sources.items()
            },
            "operators": operators,
            "steps": {name: self._steps(name) for name in operators},
            "names": to_json_values(compiled.graph.names),
        }


def _time() -> Column:
    """The event time; steps may have lost it for some rows."""
    return F.coalesce(F.col(TIME), F.lit(BEGINNING_US)).alias(TIME)
