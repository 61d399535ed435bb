"""Compiles a described flow: which rows enter where, which joins run in which order, what goes out.

The result is static: nothing in it changes from batch to batch. Operators are numbered in the order in
which outputs need them, so the same flow always compiles to the same names, which is what a checkpoint
relies on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

from tidegate.control.clock import ClockSettings
from tidegate.errors import FlowError, explain
from tidegate.flow import HIDDEN, Box, Join, Node, Output, Refused, Source
from tidegate.spark import ports
from tidegate.spark.keys import Keys, match_keys, quoted
from tidegate.spark.lanes import Lanes
from tidegate.spark.layout import (
    LEFT_ROW,
    LEFT_RUN,
    REPORT,
    RIGHT_ROW,
    RIGHT_RUN,
    TIME,
    JoinLayout,
    OutputColumn,
    SideLayout,
)
from tidegate.spark.ports import Port


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
    #: Where a residual condition is judged between two steps: what the first step returns.
    candidates: JoinLayout | None = None
    candidates_schema: T.StructType | None = None


@dataclass(frozen=True)
class Tap:
    """Rows of a source that go straight to an output: on-time rows of a node, or refused rows."""

    node: Node
    port: Port
    stream: str
    kind: str


@dataclass
class Compiled:
    """A flow, ready to run."""

    spark: SparkSession
    streaming: bool
    outputs: tuple[Output, ...]
    sources: dict[str, Source] = field(default_factory=dict)
    joins: list[CompiledJoin] = field(default_factory=list)
    taps: dict[int, Tap] = field(default_factory=dict)
    lanes: Lanes = field(default_factory=Lanes)
    #: Streams whose rows are counted by observed metrics, not by join tasks.
    observed: set[str] = field(default_factory=set)
    #: Their observations: named in a streaming query, objects in a batch one.
    observations: dict[str, Observation | str] = field(default_factory=dict)
    fingerprint: dict[str, Any] = field(default_factory=dict)
    #: Frames of source-fed ports in the shared layout, in tag order.
    port_frames: list[DataFrame] = field(default_factory=list)

    @property
    def clocks(self) -> dict[str, ClockSettings]:
        return {
            name: ClockSettings(source.lateness_us, source.idle_timeout_us)
            for name, source in self.sources.items()
        }

    def join_of(self, node: Join) -> CompiledJoin:
        return next(join for join in self.joins if join.node is node)

    def input_frame(self) -> DataFrame:
        """The one input of the query: all ports in one union, with a heartbeat when streaming."""
        beats = [ports.heartbeat(self.spark, self.lanes)] if self.streaming else []
        return ports.union([*self.port_frames, *beats])


def compile_flow(outputs: Sequence[Output], partitions: int) -> Compiled:
    """Check the flow and work out everything that stays the same for the life of a query."""
    return _Compiler(outputs, partitions).compile()


class _Compiler:
    def __init__(self, outputs: Sequence[Output], partitions: int):
        _check_outputs(outputs)
        self._partitions = partitions
        self._tags = iter(range(0, 2**15 - 1, 2))
        #: Rows of each port before projection, to be projected once all lanes are known.
        self._waiting: list[Callable[[], DataFrame]] = []
        self._feeding = _joins_that_feed_joins(outputs)
        sources = _sources(outputs)
        streaming = _all_streaming_or_none(sources)
        spark = sources[0].frame.sparkSession
        self.compiled = Compiled(spark, streaming, tuple(outputs), {s.name: s for s in sources})

    def compile(self) -> Compiled:
        compiled = self.compiled
        for output in compiled.outputs:
            self._visit(output.node)
        compiled.observed = self._observed()
        for output in compiled.outputs:
            self._tap(output.node)
        compiled.port_frames = [build() for build in self._waiting]
        compiled.fingerprint = self._fingerprint()
        return compiled

    # -- joins, in the order in which their inputs are complete --------------------------------------

    def _visit(self, node: Node) -> None:
        base, _ = ports.boxes_of(node)
        if isinstance(base, Join) and all(join.node is not base for join in self.compiled.joins):
            self._visit(base.left)
            self._visit(base.right)
            self.compiled.joins.append(self._join(base, f"join{len(self.compiled.joins) + 1}"))

    def _join(self, node: Join, name: str) -> CompiledJoin:
        left, right = self._frame(node.left), self._frame(node.right)
        _same_time_type(self._time_type(node.left), self._time_type(node.right))
        keys = match_keys(left, right, node.keys)
        columns = _output_columns(node, left, right, keys, timed=id(node) in self._feeding)
        sides = [self._input(node.left, left, keys, 0), self._input(node.right, right, keys, 1)]
        shown = [c for c in columns if c[0].left is not None or node.how not in ("left_semi", "left_anti")]
        schema = _schema(shown)
        layout = JoinLayout(
            operator=name,
            how=node.how,
            within=node.within,
            partitions=self._partitions,
            left=_side(sides[0].port),
            right=_side(sides[1].port),
            verify=_renamed(keys.verify, _time_name(node.left), _time_name(node.right)),
            output=tuple(column for column, _ in shown),
            schema=_arrow_schema(schema, name),
        )
        if node.where is None or node.how == "inner":
            return CompiledJoin(node, layout, (sides[0], sides[1]), schema)
        wide = _schema(columns, references=True)
        candidates = replace(
            layout,
            output=tuple(column for column, _ in columns),
            schema=_arrow_schema(wide, name),
            residual=True,
        )
        return CompiledJoin(node, layout, (sides[0], sides[1]), schema, candidates, wide)

    def _input(self, node: Node, frame: DataFrame, keys: Keys, side: int) -> JoinInput:
        base, boxes = ports.boxes_of(node)
        stored = _stored_columns(frame, _time_name(node), keys, side)
        lanes = self.compiled.lanes.assign([kind for _, _, kind in stored])
        stream = base.name if isinstance(base, Source) else None
        port = Port(next(self._tags), stream, tuple(name for name, _, _ in stored), lanes)
        values = [value for _, value, _ in stored]
        code, keyless = keys.code(side), keys.is_null(side)

        def project(rows: DataFrame) -> DataFrame:
            return ports.project(rows, port, self.compiled.lanes, values, code, keyless)

        if isinstance(base, Source):
            self._waiting.append(lambda: project(self._entering(base, boxes)))
        return JoinInput(node, port, project)

    # -- outputs that come straight from a source ----------------------------------------------------

    def _tap(self, node: Node) -> None:
        base, boxes = ports.boxes_of(node)
        if isinstance(base, Join) or id(node) in self.compiled.taps:
            return
        source = base.parent if isinstance(base, Refused) else base
        kind = base.kind if isinstance(base, Refused) else "rows"
        if kind != "rows":
            boxes = []  # Refused rows are picked out first; their boxes apply afterwards.
        frame = ports.apply_boxes(ports.timed(source), boxes, repr(source.name))
        visible = _visible(frame)
        lanes = self.compiled.lanes.assign([f.dataType for f in visible])
        port = Port(next(self._tags), source.name, tuple(f.name for f in visible), lanes)
        values = [F.col(quoted(f.name)) for f in visible]

        def build() -> DataFrame:
            rows = ports.timed(source) if kind != "rows" else self._entering(source, boxes)
            return ports.project(
                rows, port, self.compiled.lanes, values, F.lit(0).cast("long"), F.lit(False)
            )

        self._waiting.append(build)
        self.compiled.taps[id(node)] = Tap(node, port, source.name, kind)

    # -- frames and time -----------------------------------------------------------------------------

    def _frame(self, node: Node) -> DataFrame:
        """A frame with the node's columns: the stream itself, or no rows of what a join will return."""
        base, boxes = ports.boxes_of(node)
        if isinstance(base, Source):
            return ports.apply_boxes(ports.timed(base), boxes, repr(base.name))
        if not isinstance(base, Join):
            raise FlowError(explain("Refused rows cannot be joined"))
        join = self.compiled.join_of(base)
        empty = self.compiled.spark.createDataFrame([], join.schema).drop(REPORT)
        return ports.apply_boxes(empty, boxes, join.layout.operator)

    def _entering(self, source: Source, boxes: Sequence[Box]) -> DataFrame:
        """Rows of a source behind its boxes; counted on the way in where the join tasks cannot do it."""
        if source.name not in self.compiled.observed:
            return ports.apply_boxes(ports.timed(source), boxes, repr(source.name))
        # One observation per stream: a second one on another branch would count every row twice.
        if source.name in self.compiled.observations:
            frame = ports.timed(source)
        else:
            watch = source.name if self.compiled.streaming else Observation(source.name)
            self.compiled.observations[source.name] = watch
            frame = ports.watched(source, watch)
        frame = frame.filter(F.col(TIME) != F.lit(ports.BEGINNING_US))
        return ports.apply_boxes(frame, boxes, repr(source.name))

    def _observed(self) -> set[str]:
        """Streams that no join side sees in full."""
        seen_whole = set()
        dropped = set()
        for join in self.compiled.joins:
            for side in join.inputs:
                base, boxes = ports.boxes_of(side.node)
                if isinstance(base, Source):
                    (dropped if ports.may_drop(boxes) else seen_whole).add(base.name)
        return set(self.compiled.sources) - (seen_whole - dropped)

    def _time_type(self, node: Node) -> T.DataType:
        base, _ = ports.boxes_of(node)
        while isinstance(base, Join):
            base, _ = ports.boxes_of(base.left)
        return base.frame.schema[base.time].dataType if isinstance(base, Source) else T.NullType()

    def _fingerprint(self) -> dict[str, Any]:
        """What must not change between two runs on one checkpoint."""
        compiled = self.compiled
        return {
            "partitions": self._partitions,
            "streams": {
                name: {"time": source.time, "schema": source.frame.schema.simpleString()}
                for name, source in compiled.sources.items()
            },
            "operators": {join.layout.operator: _join_fingerprint(join) for join in compiled.joins},
        }


def _join_fingerprint(join: CompiledJoin) -> dict[str, Any]:
    layout = join.layout
    return {
        "how": layout.how,
        "within": layout.within.to_json(),
        "keys": [list(pair) for pair in join.node.keys],
        "where": None if join.node.where is None else str(join.node.where),
        "left": {"stream": layout.left.stream, "columns": list(layout.left.columns)},
        "right": {"stream": layout.right.stream, "columns": list(layout.right.columns)},
        "output": join.schema.simpleString(),
    }


def _check_outputs(outputs: Sequence[Output]) -> None:
    if not outputs:
        raise FlowError(explain("A query needs an output", do="Pass at least one stream.write_to(…)"))
    for output in outputs:
        if not isinstance(output, Output):
            raise FlowError(
                explain(
                    "tg.start takes outputs",
                    got=type(output).__name__,
                    do="Call .write_to(…) on the stream",
                )
            )
    names = [output.name for output in outputs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise FlowError(
            explain("Two outputs have the same name", got=", ".join(twice), do="Give each its own name=…")
        )


def _sources(outputs: Sequence[Output]) -> list[Source]:
    found: dict[int, Source] = {}

    def visit(node: Node) -> None:
        if isinstance(node, Source):
            found.setdefault(id(node), node)
        elif isinstance(node, Join):
            visit(node.left)
            visit(node.right)
        else:
            visit(node.parent)

    for output in outputs:
        visit(output.node)
    names = [source.name for source in found.values()]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise FlowError(
            explain("Two streams have the same name", got=", ".join(twice), do="Give each its own name=…")
        )
    return list(found.values())


def _joins_that_feed_joins(outputs: Sequence[Output]) -> set[int]:
    """Joins whose rows need their event time, because another join takes them."""
    feeding: set[int] = set()

    def visit(node: Node, below_a_join: bool) -> None:
        base, _ = ports.boxes_of(node)
        if isinstance(base, Join):
            if below_a_join:
                feeding.add(id(base))
            visit(base.left, True)
            visit(base.right, True)

    for output in outputs:
        visit(output.node, False)
    return feeding


def _all_streaming_or_none(sources: Sequence[Source]) -> bool:
    streaming = {source.name for source in sources if source.frame.isStreaming}
    if streaming and len(streaming) < len(sources):
        still = sorted({source.name for source in sources} - streaming)
        raise FlowError(
            explain(
                "Streaming and batch inputs cannot be joined here",
                got=f"streaming: {', '.join(sorted(streaming))}; batch: {', '.join(still)}",
                why="A table has no event time to move with the stream",
                do="Join a table with Spark's own join: stream.transform(lambda df: df.join(table, …))",
            )
        )
    return bool(streaming)


def _same_time_type(left: T.DataType, right: T.DataType) -> None:
    if left != right:
        raise FlowError(
            explain(
                "The two streams keep time differently",
                got=f"{left.simpleString()} and {right.simpleString()}",
                why="Local and absolute times are only comparable with a time zone in mind",
                do="Convert one of the columns before tg.stream",
            )
        )


def _stored_columns(
    frame: DataFrame, time_name: str | None, keys: Keys, side: int
) -> list[tuple[str, Column, T.DataType]]:
    """Columns of a side as they are stored: name, expression, type."""
    stored = [
        (f.name, F.col(quoted(f.name)), f.dataType)
        for f in frame.schema.fields
        if f.name != time_name and f.name != TIME
    ]
    hidden = list(keys.hidden(side))
    for key in keys.keys:
        if key.hidden and all(key.hidden != name for name, _ in hidden):
            hidden.append((key.hidden, key.canonical((key.left, key.right)[side])))
    for name, value in hidden:
        stored.append((name, value, frame.select(value.alias(name)).schema[name].dataType))
    return stored


def _side(port: Port) -> SideLayout:
    return SideLayout(port.tag, port.stream, port.columns, port.lanes)


def _renamed(
    verify: tuple[tuple[str, str], ...], left_time: str | None, right_time: str | None
) -> tuple[tuple[str, str], ...]:
    return tuple(
        (TIME if left == left_time else left, TIME if right == right_time else right)
        for left, right in verify
    )


def _output_columns(
    node: Join, left: DataFrame, right: DataFrame, keys: Keys, timed: bool
) -> list[tuple[OutputColumn, T.DataType]]:
    """Columns of the joined row with their types: keys once, then the left side, then the right."""
    coalesced = node.how in ("right", "full")
    columns: list[tuple[OutputColumn, T.DataType]] = []
    for key in keys.keys:
        left_type, right_type = left.schema[key.left].dataType, right.schema[key.right].dataType
        if coalesced and left_type != right_type:
            columns.append((OutputColumn(key.left, key.hidden, key.hidden), key.type))
        else:
            stored = OutputColumn(key.left, _stored(key.left, node.left), _stored(key.right, node.right))
            columns.append((stored, left_type))
    left_keys, right_keys = {k.left for k in keys.keys}, {k.right for k in keys.keys}
    for f in _visible(left):
        if f.name not in left_keys:
            columns.append((OutputColumn(f.name, _stored(f.name, node.left), None), f.dataType))
    taken = {column.name for column, _ in columns}
    for f in _visible(right):
        if f.name not in right_keys:
            shown = f"{f.name}_right" if f.name in taken else f.name
            if shown in taken:
                raise FlowError(
                    explain(
                        "Two columns of the joined row have the same name",
                        got=shown,
                        do="Rename one with select or with_column before the join",
                    )
                )
            taken.add(shown)
            columns.append((OutputColumn(shown, None, _stored(f.name, node.right)), f.dataType))
    if timed:
        columns.append((OutputColumn(TIME, TIME, TIME), T.LongType()))
    return columns


def _stored(column: str, node: Node) -> str:
    """The stored column that holds a visible one."""
    return TIME if column == _time_name(node) else column


def _time_name(node: Node) -> str | None:
    """The visible column that is the event time and so need not be stored a second time."""
    base, boxes = ports.boxes_of(node)
    if isinstance(base, Source) and all(box.kind == "filter" for box in boxes):
        return base.time
    return None


def _visible(frame: DataFrame) -> list[T.StructField]:
    return [f for f in frame.schema.fields if not f.name.startswith(HIDDEN)]


def _schema(columns: Sequence[tuple[OutputColumn, T.DataType]], references: bool = False) -> T.StructType:
    fields = [T.StructField(column.name, kind, True) for column, kind in columns]
    if references:
        fields += [T.StructField(n, T.LongType()) for n in (LEFT_RUN, LEFT_ROW, RIGHT_RUN, RIGHT_ROW)]
    return T.StructType([*fields, T.StructField(REPORT, T.StringType(), True)])


def _arrow_schema(schema: T.StructType, operator: str) -> bytes:
    fields = []
    for f in schema.fields:
        try:
            fields.append(pa.field(f.name, to_arrow_type(f.dataType, timezone="UTC"), True))
        except PySparkException as error:
            raise FlowError(
                explain(
                    f"Column {f.name!r} of {operator} cannot be stored",
                    got=f.dataType.simpleString(),
                    why="Rows are kept in Arrow, which has no such type",
                    do="Leave it out, or convert it before the join",
                )
            ) from error
    return pa.schema(fields).serialize().to_pybytes()
