"""Compiles a described flow: which rows enter where, which joins run in which order, what goes out.

The result is static: nothing in it changes from batch to batch. Operators are numbered in the order in
which outputs need them, so the same flow always compiles to the same names, which is what a checkpoint
relies on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, cast

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidegate.api.nodes import Box, Join, Match, Node, Output, Refused, Source, Window
from tidegate.driver.compile import ports
from tidegate.driver.compile.compiled import (
    Compiled,
    CompiledJoin,
    CompiledMatch,
    CompiledWindow,
    JoinInput,
    Tap,
)
from tidegate.driver.compile.condition_checks import check_condition, check_where, is_null, spreading_code
from tidegate.driver.compile.counted_streams import judged_by_spark, observed_streams
from tidegate.driver.compile.graph_checks import (
    alike,
    all_streaming_or_none,
    check_estimates,
    check_outputs,
    joins_that_may_repair,
    operators_whose_time_counts,
    outputs_behind,
    same_time_type,
    selected,
    sources_of,
)
from tidegate.driver.compile.join_columns import (
    arrow_schema,
    compared,
    only_wanted,
    output_columns,
    spark_schema,
    stored_columns,
    time_name,
    visible,
    with_repaired_batch,
)
from tidegate.driver.compile.keys import Keys, match_keys, quoted
from tidegate.driver.compile.match_columns import check_mark, kinds_of, match_schema
from tidegate.driver.compile.ports import Port
from tidegate.driver.compile.window_aggregates import taken_apart
from tidegate.driver.compile.window_schema import (
    check_by,
    check_rows,
    columns_read,
    plain_keys,
    window_fingerprint,
    window_schema,
)
from tidegate.driver.io.sinks import refuse_unknown_formats
from tidegate.errors import FlowError
from tidegate.model.times import BEGINNING_US
from tidegate.sift.queries.query_set import QuerySet
from tidegate.window.spec import WindowSpec
from tidegate.worker.runtime.layout import (
    CELL,
    REPORT,
    TIME,
    JoinLayout,
    MatchLayout,
    SideLayout,
    WindowLayout,
)


def compile_flow(
    outputs: Sequence[Output],
    partitions: int,
    cells: bool = False,
    sifts: bool = False,
    repairs: bool = False,
) -> Compiled:
    """Check the flow and work out everything that stays the same for the life of a query.

    `cells`: rows of inner joins say where they were found, for whoever values them. `sifts`: rows may be
    dropped in front of matches, so that Spark must count them. `repairs`: rows may come later than they
    should, and say so.
    """
    return _Compiler(outputs, partitions, cells, sifts, repairs).compile()


class _Compiler:
    def __init__(self, outputs: Sequence[Output], partitions: int, cells: bool, sifts: bool, repairs: bool):
        check_outputs(outputs)
        check_estimates(outputs)
        self._repaired = joins_that_may_repair(outputs) if repairs else set()
        self._partitions, self._cells, self._sifts = partitions, cells, sifts
        self._tags = iter(range(0, 2**15 - 1, 2))
        #: Rows of each port before projection, to be projected once all lanes are known.
        self._waiting: list[tuple[str, Callable[[], DataFrame]]] = []
        self._feeding = operators_whose_time_counts(outputs)
        sources = sources_of(outputs)
        streaming = all_streaming_or_none(sources)
        spark = sources[0].frame.sparkSession
        refuse_unknown_formats(spark, outputs)
        self.compiled = Compiled(spark, streaming, tuple(outputs), {s.name: s for s in sources})

    def compile(self) -> Compiled:
        compiled = self.compiled
        for output in compiled.outputs:
            self._visit(output.node)
        compiled.observed = observed_streams(compiled, self._sifts)
        compiled.judged_by_spark = judged_by_spark(compiled)
        for output in compiled.outputs:
            self._tap(output.node)
        compiled.port_streams = [stream for stream, _ in self._waiting]
        compiled.port_frames = [build() for _, build in self._waiting]
        compiled.fingerprint = self._fingerprint()
        return compiled

    # -- operators, in the order in which their inputs are complete ----------------------------------

    def _visit(self, node: Node) -> None:
        base, _ = ports.boxes_of(node)
        compiled = self.compiled
        if any(operator.node is base for operator in compiled.operators):
            return
        if isinstance(base, Join):
            self._visit(base.left)
            self._visit(base.right)
            compiled.operators.append(self._join(base, f"join{len(compiled.joins) + 1}"))
        elif isinstance(base, Match):
            self._visit(base.parent)
            compiled.operators.append(self._match(base, f"match{len(compiled.matches) + 1}"))
        elif isinstance(base, Window):
            self._visit(base.parent)
            compiled.operators.append(self._window(base, f"window{len(compiled.windows) + 1}"))

    def _join(self, node: Join, name: str) -> CompiledJoin:
        left, right = self._frame(node.left), self._frame(node.right)
        same_time_type(self._time_type(node.left), self._time_type(node.right))
        keys = match_keys(left, right, node.keys)
        if node.condition is not None:
            check_condition(node.condition, left, right)
        columns = output_columns(node, left, right, keys, timed=id(node) in self._feeding)
        sides = [self._input(node, left, keys, 0), self._input(node, right, keys, 1)]
        shown = [c for c in columns if c[0].left is not None or node.how not in ("left_semi", "left_anti")]
        whole = spark_schema(shown)
        if node.where is not None:
            check_where(node.where, self.compiled.spark.createDataFrame([], spark_schema(columns)), name)
        if not self._cells:
            # What pairs are worth may be said of any column.
            shown = only_wanted(shown, selected(self.compiled.outputs, node))
        if id(node) in self._repaired:
            shown = with_repaired_batch(shown)
        cells = self._cells and node.how == "inner"
        schema = spark_schema(shown, cells=cells)
        layout = JoinLayout(
            operator=name,
            how=node.how,
            within=node.within,
            partitions=self._partitions,
            left=_side(sides[0].port),
            right=_side(sides[1].port),
            verify=compared(keys.verify, time_name(node.left), time_name(node.right)),
            output=tuple(column for column, _ in shown),
            schema=arrow_schema(schema, name),
            condition=node.condition,
            spread=not node.keys and node.how == "inner",
            cells=cells,
        )
        if node.where is None or node.how == "inner":
            return CompiledJoin(node, layout, (sides[0], sides[1]), schema, whole)
        wide = spark_schema(columns, references=True)
        candidates = replace(
            layout,
            output=tuple(column for column, _ in columns),
            schema=arrow_schema(wide, name),
            residual=True,
        )
        return CompiledJoin(node, layout, (sides[0], sides[1]), schema, whole, candidates, wide)

    def _input(self, join: Join, frame: DataFrame, keys: Keys, side: int) -> JoinInput:
        node = (join.left, join.right)[side]
        base, boxes = ports.boxes_of(node)
        stored = stored_columns(frame, time_name(node), keys, side)
        lanes = self.compiled.lanes.assign([kind for _, _, kind in stored])
        stream = base.name if isinstance(base, Source) else None
        port = Port(next(self._tags), stream, tuple(name for name, _, _ in stored), lanes)
        values = [value for _, value, _ in stored]
        code = keys.code(side) if join.keys else spreading_code(join, frame)
        keyless = keys.is_null(side) | is_null(join.condition, side)

        def project(rows: DataFrame) -> DataFrame:
            return ports.project(rows, port, self.compiled.lanes, values, code, keyless)

        if isinstance(base, Source):
            self._waiting.append((base.name, lambda: project(self._entering(base, boxes))))
        return JoinInput(node, port, project)

    def _match(self, node: Match, name: str) -> CompiledMatch:
        frame = self._frame(node.parent)
        base, _ = ports.boxes_of(node.parent)
        time = time_name(node.parent)
        tap = None
        if isinstance(base, Source):
            tap = self._source_tap(node.parent, observed_as=name, without=time)
        queries = QuerySet.of(node.queries, kinds_of(T.StructType(visible(frame))))
        check_mark(node, frame)
        schema = match_schema(frame, timed=id(node) in self._feeding)
        stream = tap.stream if tap is not None else None
        layout = MatchLayout(name, stream, queries.boxes.axes, arrow_schema(schema, name), time)
        return CompiledMatch(node, layout, tap, queries, schema)

    def _window(self, node: Window, name: str) -> CompiledWindow:
        frame = self._frame(node.parent)
        base, _ = ports.boxes_of(node.parent)
        check_by(node, frame)
        taken = taken_apart(frame, node.aggregates, approximate=node.approximate)
        check_rows(node, taken)
        only = columns_read(node, taken)
        tap = self._source_tap(node.parent, only=only) if isinstance(base, Source) else None
        kind = self._time_type(node.parent)
        schema = window_schema(node, frame, taken, kind, timed=id(node) in self._feeding)
        layout = WindowLayout(
            name,
            tap.stream if tap is not None else None,
            node.spec,
            node.by,
            tuple(taken.parts),
            tuple(result for result, _ in taken.results),
            self._partitions,
            arrow_schema(schema, name),
            taken.udafs,
            node.approximate,
            taken.carried,
        )
        # Rows of windows of rows are never added up, so there is nothing to choose.
        plain = isinstance(node.spec, WindowSpec) and plain_keys(node, frame) and taken.may_go_by_row
        return CompiledWindow(node, layout, tap, taken, schema, plain)

    # -- outputs that come straight from a source ----------------------------------------------------

    def _tap(self, node: Node) -> None:
        base, _ = ports.boxes_of(node)
        if not isinstance(base, (Join, Match, Window)) and id(node) not in self.compiled.taps:
            self.compiled.taps[id(node)] = self._source_tap(node)

    def _source_tap(
        self,
        node: Node,
        observed_as: str | None = None,
        without: str | None = None,
        only: Collection[str] | None = None,
    ) -> Tap:
        """Rows of a source on their way past all joins; counted behind their boxes where somebody asks.

        `without`: a column that nobody behind needs. `only`: those that somebody does; None: all.
        """
        base, boxes = ports.boxes_of(node)
        source = base.parent if isinstance(base, Refused) else cast(Source, base)
        kind = base.kind if isinstance(base, Refused) else "rows"
        if kind != "rows":
            boxes = []  # Refused rows are picked out first; their boxes apply afterwards.
        frame = ports.apply_boxes(self._timed(source), boxes, repr(source.name))
        fields = [f for f in visible(frame) if f.name != without and (only is None or f.name in only)]
        lanes = self.compiled.lanes.assign([f.dataType for f in fields])
        port = Port(next(self._tags), source.name, tuple(f.name for f in fields), lanes)
        values = [F.col(quoted(f.name)) for f in fields]

        def build() -> DataFrame:
            rows = self._timed(source) if kind != "rows" else self._entering(source, boxes)
            if observed_as is not None and ports.may_drop(boxes):
                rows = ports.counted(rows, self._observation(self.compiled.counted, observed_as))
            return ports.project(rows, port, self.compiled.lanes, values, F.lit(0).cast("long"), F.lit(False))

        self._waiting.append((source.name, build))
        return Tap(node, port, source.name, kind)

    # -- frames and time -----------------------------------------------------------------------------

    def _frame(self, node: Node) -> DataFrame:
        """A frame with the node's columns: the stream itself, or no rows of what a join will return."""
        base, boxes = ports.boxes_of(node)
        if isinstance(base, Source):
            return ports.apply_boxes(self._timed(base), boxes, repr(base.name))
        if not isinstance(base, (Join, Match, Window)):
            raise FlowError("Refused rows enter no operator")
        operator = self.compiled.operator_of(base)
        empty = self.compiled.spark.createDataFrame([], operator.schema).drop(REPORT, CELL)
        # Rows that nobody joins carry no time: nobody behind asks for it.
        needed = id(base) in self._feeding
        return ports.apply_boxes(empty, boxes, operator.layout.operator, timed=needed)

    def _entering(self, source: Source, boxes: Sequence[Box]) -> DataFrame:
        """Rows of a source behind its boxes; counted on the way in where the join tasks cannot do it."""
        if source.name not in self.compiled.observed:
            return ports.apply_boxes(self._timed(source), boxes, repr(source.name))
        # One observation per stream: a second one on another branch would count every row twice.
        if source.name in self.compiled.observations:
            frame = self._timed(source)
        else:
            watch = self._observation(self.compiled.observations, source.name)
            frame = ports.watched(source, watch, by_spark=source.name in self.compiled.judged_by_spark)
        frame = frame.filter(F.col(TIME) != F.lit(BEGINNING_US))
        return ports.apply_boxes(frame, boxes, repr(source.name))

    def _observation(self, known: dict[str, Observation | str], name: str) -> Observation | str:
        """Named in a streaming query, an object in a batch one."""
        return known.setdefault(name, name if self.compiled.streaming else Observation(name))

    def _timed(self, source: Source) -> DataFrame:
        return ports.timed(source, by_spark=source.name in self.compiled.judged_by_spark)

    def _time_type(self, node: Node) -> T.DataType:
        base, _ = ports.boxes_of(node)
        while isinstance(base, (Join, Match, Window)):
            base, _ = ports.boxes_of(base.left if isinstance(base, Join) else base.parent)
        return base.frame.schema[base.time].dataType if isinstance(base, Source) else T.NullType()

    def _fingerprint(self) -> dict[str, Any]:
        """What must not change between two runs on one checkpoint."""
        compiled = self.compiled
        operators = {
            **{join.layout.operator: _join_fingerprint(join) for join in compiled.joins},
            **{window.layout.operator: window_fingerprint(window) for window in compiled.windows},
        }
        # What tells such operators apart is in their boxes, which nobody can compare. In another order of
        # outputs they would take over each other's rows.
        for name in alike(operators):
            node = next(one.node for one in compiled.operators if one.layout.operator == name)
            operators[name]["outputs"] = outputs_behind(compiled.outputs, node)
        return {
            "partitions": self._partitions,
            "streams": {
                name: {"time": source.time, "schema": source.frame.schema.simpleString()}
                for name, source in compiled.sources.items()
            },
            "operators": operators,
        }


def _join_fingerprint(join: CompiledJoin) -> dict[str, Any]:
    layout = join.layout
    return {
        "how": layout.how,
        "within": layout.within.to_json(),
        "keys": [list(pair) for pair in join.node.keys],
        "where": None if join.node.where is None else str(join.node.where),
        **({} if join.node.condition is None else {"condition": join.node.condition.describe()}),
        "left": {"stream": layout.left.stream, "columns": list(layout.left.columns)},
        "right": {"stream": layout.right.stream, "columns": list(layout.right.columns)},
        # What is added or left out for this run alone may differ in the next.
        "output": join.whole.simpleString(),
    }


def _side(port: Port) -> SideLayout:
    return SideLayout(port.tag, port.stream, port.columns, port.lanes)
