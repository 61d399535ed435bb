"""The join operator: compiled from `on`, `within` and `where`, with one shuffle by instance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any
from zlib import crc32

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidegate.api.nodes import Join, name_of
from tidegate.control.balance.balancing import Balanced
from tidegate.control.receipts.ledger import RANDOM_DROP, WINDOW_DROP
from tidegate.control.repair.debts import Needs
from tidegate.driver.compile import ports
from tidegate.driver.compile.column_pruning import (
    SidePruning,
    condition_reads,
    pruning_of,
    read_columns,
    read_of,
)
from tidegate.driver.compile.condition_checks import check_condition, check_where, is_null, spreading_code
from tidegate.driver.compile.graph_checks import same_time_type, selected
from tidegate.driver.compile.join_columns import (
    JoinColumn,
    arrow_schema,
    check_times,
    compared,
    output_columns,
    pruned,
    residual_condition,
    spark_schema,
    stored_columns,
    time_name,
    with_repaired_batch,
)
from tidegate.driver.compile.keys import Keys, match_keys
from tidegate.driver.compile.plain_conditions import comparisons_of
from tidegate.driver.compile.ports import Lanes, Port
from tidegate.driver.frames import residual_frames
from tidegate.driver.frames.pass_input import PassInput
from tidegate.driver.frames.routing_frames import routed
from tidegate.driver.frames.stream_rows import Draw, FrontDrop
from tidegate.driver.operators.protocol import REPORTS, BatchOrder, Builder, Operator
from tidegate.driver.operators.tap import Entry, PortInput
from tidegate.driver.sql_text import condition, data
from tidegate.join.within import TimeCondition, Within
from tidegate.model.graph import OperatorTraits, Reader
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.times import BEGINNING_US, LEFT, RIGHT
from tidegate.window.drop import network
from tidegate.window.spec import SIZE_MAX_US
from tidegate.worker.join.task import JoinInstance
from tidegate.worker.join.work import JoinWork
from tidegate.worker.runtime.layout import (
    CELL,
    MARKER,
    REPAIRED,
    REPORT,
    TAG,
    TIME,
    Comparison,
    JoinLayout,
    SideLayout,
)
from tidegate.worker.runtime.state_order import StateOrder


class JoinOperator(Operator):
    """A join of two streams."""

    node: Join
    needs_judged = True
    prunes = True

    def __init__(
        self,
        node: Join,
        layout: JoinLayout,
        inputs: tuple[PortInput, PortInput],
        schema: T.StructType,
        whole: T.StructType,
        where: Any,
        candidates: tuple[JoinLayout, T.StructType] | None = None,
    ):
        super().__init__(layout.operator, node, schema)
        self.layout: JoinLayout = layout
        self.inputs: tuple[PortInput, PortInput] = inputs
        #: The residual condition over the joined row, as SQL text or column; None: there is none.
        self.where = where
        #: The schema before column pruning.
        self.whole = whole
        every = [*whole.fields, *schema.fields]
        self.columns = {f.name: f.dataType for f in every if f.name not in (REPORT, CELL)}
        #: With a residual condition between two steps: what the first step returns.
        self.candidates = candidates
        #: One reader for both inputs, if they come from one stream.
        self.both: Entry | None = None

    # -- called by the compiler -----------------------------------------------------------------------

    @property
    def streams(self) -> tuple[str | None, ...]:
        return tuple(side.port.stream for side in self.inputs)

    def fingerprint(self) -> dict[str, Any]:
        node, layout = self.node, self.layout
        return {
            "how": layout.how,
            "within": layout.within.to_json(),
            "keys": [key.describe() for key in node.keys],
            "where": None if self.where is None else str(self.where),
            **({} if node.condition is None else {"condition": node.condition.describe()}),
            "left": {"stream": layout.left.stream, "columns": sorted(layout.left.columns)},
            "right": {"stream": layout.right.stream, "columns": sorted(layout.right.columns)},
            # Columns that the engine added for this run may differ in the next.
            "output": {field.name: field.dataType.simpleString() for field in self.whole.fields},
        }

    def traits(self, time_from: Sequence[str]) -> OperatorTraits:
        left, right = time_from
        layout = self.layout
        return OperatorTraits(self.name, (left, right), layout.within, layout.tracked, layout.preserved)

    def balanced(self) -> Balanced:
        return Balanced(keyed=bool(self.node.keys), scatters=self.candidates is None)

    def readers(self, sources: Sequence[tuple[str, bool]], drops: bool) -> Iterator[Reader]:
        for side, (source, whole) in enumerate(sources):
            # A join in front of windows that may be dropped never skips pairs itself.
            reason = WINDOW_DROP if drops else RANDOM_DROP
            yield Reader(self.name, side, source, reason, whole, self.layout.preserved[side], joins=True)

    @property
    def entries(self) -> tuple[Entry, ...]:
        apart = (side.entry for side in self.inputs if side.entry is not None)
        return tuple(apart) if self.both is None else (self.both,)

    def needs(self, number: int, rows: DataFrame) -> DataFrame:
        return self.inputs[number].project(rows)

    def drop_node(self, sources: Sequence[str]) -> network.Node:
        left, right = sources
        lower, upper = (min(max(-SIZE_MAX_US, us), SIZE_MAX_US) for us in self.node.within.bounds_us)
        return network.DropJoinNode(self.name, left, right, lower, upper, inner=self.node.how == "inner")

    # -- called by a batch ----------------------------------------------------------------------------

    def work(self, order: BatchOrder, feeding: Sequence[str]) -> JoinWork:
        left, right = (order.newest_us(side.stream, order.plan) for side in self.layout.sides)
        first, second = (order.passing.along(parent, self.name) for parent in feeding)
        return replace(
            join_work(
                self.layout,
                order.plan,
                order.before,
                order.state(self.name, read_everywhere(self.layout, order.plan)),
            ),
            newest_us=(left, right),
            **order.staging(self.name),
            watch_keys=order.watch_keys,
            needed=(first, second),
        )

    def frame(self, rows: PassInput, work: JoinWork) -> DataFrame:
        """One shuffle by instance number, or none if one task runs all instances, then the kernels."""
        entering = self._entering(rows, work)
        if self.candidates is not None:
            return residual_frames.judged(routed(entering, work), self, work)
        placed = routed(entering, work, rows.one_task)
        schema = self.schema if work.stage_root is None else REPORTS
        return rows.run(self, placed, rows.tasks(JoinInstance, work), schema)

    def is_due(self, work: JoinWork) -> bool:
        return work.state.changes_state or bool(work.repairs)

    def counts_rows(self, work: JoinWork) -> bool:
        return any(self.inputs[s].entry is None and random_drop(work, s) is not None for s in (LEFT, RIGHT))

    def shown(self, results: DataFrame) -> DataFrame:
        if self.is_plain:
            return results
        return results.where(condition(self.where))

    def _entering(self, rows: PassInput, work: JoinWork) -> DataFrame:
        """All rows that enter the join in this pass, in the shared layout, but those that it drops at random.

        In a union of several operators or passes the number of Spark's task is not the instance, so markers
        carry it.
        """
        instances = work.state.routing.instances
        frames = [*self._from_both(rows, work)] if self.both is not None else []
        for side in (LEFT, RIGHT) if self.both is None else ():
            front = random_drop(work, side)
            entered = self._from_side(rows, side, front)
            if entered is None:
                continue
            frames.append(entered)
            if front is not None:
                rows.dropped[self.name, side] = [front.counted_as]
        known = rows.one_task and self.candidates is None and any(map(rows.reads, self.entries))
        if not (frames and (known or (rows.one_reader and not rows.again))):
            key, lanes = ("markers", self.name, instances), self.inputs[LEFT].lanes
            frames.append(rows.cache.get(key, lambda: _markers(rows.spark, lanes, instances)))
        return ports.union(frames)

    def _from_side(self, rows: PassInput, side: int, front: FrontDrop | None) -> DataFrame | None:
        """The rows of one input; None if it has none. `front`: what is dropped, as early as possible."""
        given = self.inputs[side]
        if given.entry is not None:
            return rows.port(given.entry, () if front is None else (front,))
        upstream = rows.upstream(given.node, timed=True)
        if upstream is None:
            return None
        projected = given.project(upstream)
        return projected if front is None else front.of(projected)

    def _from_both(self, rows: PassInput, work: JoinWork) -> Iterator[DataFrame]:
        """The rows of both inputs, read in one scan; its steps are cheap, so rows are dropped behind them."""
        assert self.both is not None
        drops = {side: random_drop(work, side, tagged=True) for side in (LEFT, RIGHT)}
        fronts = {side: front for side, front in drops.items() if front is not None}
        entered = rows.port(self.both, tuple(fronts.values()))
        if entered is not None:
            rows.dropped.update({(self.name, side): [one.counted_as] for side, one in fronts.items()})
            yield entered

    # -- called by sinks ------------------------------------------------------------------------------

    @property
    def stages(self) -> bool:
        return self.candidates is None

    @property
    def pipes(self) -> bool:
        # The value of pairs is added up from kept results.
        return self.stages and not self.layout.cells

    @property
    def hides_columns(self) -> bool:
        return self.layout.cells or any(column.name == REPAIRED for column in self.layout.output)

    @property
    def is_plain(self) -> bool:
        # A residual condition is decided before the tasks emit the rows.
        return self.where is None or bool(self.layout.shown) or self.candidates is not None


def build_join(node: Join, name: str, builder: Builder) -> JoinOperator:
    """Check a join and compute its columns, keys and layout."""
    left, right = builder.frame(node.left), builder.frame(node.right)
    same_time_type(builder.time_type(node.left), builder.time_type(node.right))
    streams = name_of(node.left), name_of(node.right)
    keys = match_keys(left, right, node.keys, streams)
    if node.condition is not None:
        check_condition(node.condition, left, right, streams)
    check_times(node, left, right)
    columns = output_columns(node, left, right, keys, timed=builder.needs_time(name))
    where = residual_condition(node, left, right, keys)
    if where is not None:
        check_where(where, builder.spark.createDataFrame([], spark_schema(columns)), name)
    whole = spark_schema(_shown(node, columns))
    compared_by_tasks = _compared_by_tasks(node, columns, where, builder)
    wanted = builder.wanted(name)
    if wanted is not None and where is not None:
        wanted |= condition_reads(builder.spark, columns, where)
    every, columns = columns, read_columns(columns, wanted)
    shown = _shown(node, columns)
    if not builder.needs.cells:
        # A utility may read any column.
        shown = pruned(shown, selected(builder.outputs, node))
    lanes = Lanes()
    left_kept, right_kept = (
        pruning_of(name, read_of(node, columns, keys, side), every, side, builder.stored(name, side))
        for side in (LEFT, RIGHT)
    )
    sides = (
        _input(node, left, keys, builder, lanes, LEFT, left_kept),
        _input(node, right, keys, builder, lanes, RIGHT, right_kept),
    )
    if builder.repairs(name):
        shown = with_repaired_batch(shown)
    cells = builder.needs.cells and node.how == "inner"
    schema = spark_schema(shown, cells=cells)
    layout = JoinLayout(
        operator=name,
        how=node.how,
        within=_in_basic_windows(node, builder.basic_us(name)),
        partitions=builder.partitions,
        left=_side(sides[0].port),
        right=_side(sides[1].port),
        verify=compared(keys.verify, time_name(node.left), time_name(node.right)),
        output=tuple(column for column, _ in shown),
        schema=arrow_schema(schema, name),
        condition=node.condition,
        spread=not node.keys and node.how == "inner",
        cells=cells,
        shown=compared_by_tasks,
    )
    if where is None or node.how == "inner":
        return JoinOperator(node, layout, sides, schema, whole, where)
    wide = spark_schema(columns, references=True)
    candidates = replace(
        layout, output=tuple(column for column, _ in columns), schema=arrow_schema(wide, name), residual=True
    )
    return JoinOperator(node, layout, sides, schema, whole, where, (candidates, wide))


def _in_basic_windows(node: Join, basic_us: int | None) -> TimeCondition:
    """The time condition, with the basic windows that the user set where it has any."""
    within = node.within
    return within.in_basic_windows(basic_us) if basic_us and isinstance(within, Within) else within


def _compared_by_tasks(
    node: Join, columns: Sequence[JoinColumn], where: Any, builder: Builder
) -> tuple[Comparison, ...]:
    """The residual condition, if tasks can evaluate it."""
    if where is None or node.how != "inner":
        return ()
    return comparisons_of(builder.spark, columns, where) or ()


def _shown(node: Join, columns: Sequence[JoinColumn]) -> list[JoinColumn]:
    """The columns of the rows that leave the join."""
    left_only = node.how in ("left_semi", "left_anti")
    return [one for one in columns if one[0].left is not None or not left_only]


def _input(
    join: Join, frame: DataFrame, keys: Keys, builder: Builder, lanes: Lanes, side: int, pruning: SidePruning
) -> PortInput:
    node = join.inputs[side]
    stored = pruning.of(stored_columns(frame, time_name(node), keys, side))
    code = keys.code(side) if join.keys else spreading_code(join, frame)
    return builder.port(node, stored, code, keys.is_null(side) | is_null(join.condition, side), lanes)


def _side(port: Port) -> SideLayout:
    return SideLayout(port.tag, port.stream, port.columns, port.lanes)


def random_drop(work: JoinWork, side: int, tagged: bool = False) -> FrontDrop | None:
    """The rows of a side that a random drop does not let in; None: it lets all in.

    `tagged`: rows of both sides come together, in the layout of the join. Late, stale and unusable rows are
    let in, because tasks count them as such.
    """
    skipping, layout = work.skipping, work.layout
    if skipping is None or skipping.keep_share >= 1:
        return None
    usable = f"{TIME} != {BEGINNING_US}L AND {TIME} <= {data(work.newest_us[side], 'bigint')}"
    if tagged:
        tag = layout.sides[side].tag
        usable += f" AND {TAG} IN ({tag}, {tag + 1})"
    since_us = max(work.late_before_us[side], skipping.fresh_us[side])
    dropped = f"({usable} AND {TIME} >= {data(since_us, 'bigint')})"
    # The two inputs draw apart, also where they read one stream; so do two joins.
    seed = crc32(f"{work.seed} {layout.operator} {side}".encode())
    draw = Draw(skipping.keep_share, seed, work.state.batch)
    return FrontDrop(f"random drop of {layout.operator} {side}", dropped, f"({usable})", draw, tagged)


def _markers(session: SparkSession, lanes: Lanes, instances: int) -> DataFrame:
    """One row per instance that gives its task the instance number, also without other rows."""
    numbers = session.range(0, instances, 1, 1).withColumn(TIME, F.lit(BEGINNING_US))
    nothing = Port(MARKER, None, (), ())
    return numbers.select(*ports.projection(nothing, lanes, (), F.col("id"), F.lit(False)))


def read_everywhere(layout: JoinLayout, plan: Plan) -> tuple[int, ...]:
    """Sides of which every instance may read all rows: see `worker/join/repair.py`."""
    name = layout.operator
    apart = layout.spread or plan.routing[name].apart is not None
    return (RIGHT,) if apart and plan.repair.repairs.get(name) else ()


def join_work(layout: JoinLayout, plan: Plan, before: Manifest, state: StateOrder) -> JoinWork:
    """The work order of a join, from the plan of a batch and the manifest before it."""
    name = layout.operator
    needs = Needs(before.debts)
    debts = {debt.batch: debt for debt in before.debts if debt.operator == name}
    return JoinWork(
        layout=layout,
        state=state,
        late_before_us=plan.late.inputs[name],
        skipping=plan.shed.skipping.get(name),
        seed=plan.seed,
        repairs=tuple((debts[payment.batch], payment) for payment in plan.repair.repairs.get(name, ())),
        debts_since_us=(needs.since_us(name, LEFT), needs.since_us(name, RIGHT)),
    )
