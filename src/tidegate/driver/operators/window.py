"""The window operator: partial aggregation in Spark, one shuffle by instance, then the kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tidegate.api.nodes import Window
from tidegate.control.actuators.sampling import left_out
from tidegate.control.balance.balancing import Balanced
from tidegate.control.receipts.ledger import SAMPLING, WINDOW_DROP
from tidegate.driver.compile.join_columns import arrow_schema
from tidegate.driver.compile.keys import quoted
from tidegate.driver.compile.ports import steps_of
from tidegate.driver.compile.windows.early import EarlyAggregation, early_aggregation
from tidegate.driver.compile.windows.window_aggregates import PartialAggregates, taken_apart
from tidegate.driver.compile.windows.window_schema import (
    check_by,
    check_rows,
    columns_read,
    plain_keys,
    window_fingerprint,
    window_schema,
)
from tidegate.driver.frames.pass_input import PassInput
from tidegate.driver.frames.window_frames import (
    drop_counts,
    dropped_in_front,
    entering,
    group_code,
    only_markers,
    partials,
    routed_partials,
)
from tidegate.driver.operators.protocol import REPORTS, BatchOrder, Builder, Operator
from tidegate.driver.operators.tap import Tap, passed_on
from tidegate.model.graph import OperatorTraits, Reader
from tidegate.model.times import BEGINNING_US
from tidegate.window.drop import network
from tidegate.window.estimate.strata import NOTHING_LEFT_OUT
from tidegate.window.lifetime import Lifetime, RowsLifetime
from tidegate.worker.runtime.layout import TIME, WindowLayout
from tidegate.worker.runtime.pipe import Pipe
from tidegate.worker.window.count_task import CountWindowInstance
from tidegate.worker.window.early_partials import EarlyPartials
from tidegate.worker.window.task import WindowInstance
from tidegate.worker.window.work import WindowWork


class WindowOperator(Operator):
    """Windows of time, or of a number of rows, which wait for rows."""

    node: Window

    def __init__(
        self,
        node: Window,
        layout: WindowLayout,
        tap: Tap | None,
        taken: PartialAggregates,
        schema: T.StructType,
        plain: bool = False,
        early: EarlyAggregation | None = None,
        groups_pass: bool = False,
    ):
        super().__init__(layout.operator, node, schema)
        self.group_code: str = group_code([schema[name] for name in node.by]) if node.drops_groups else "0L"
        #: Whether the steps in front leave alone the columns by which groups are told apart.
        self.groups_pass = groups_pass
        #: The tap of its rows; None if another operator feeds it.
        self.layout: WindowLayout = layout
        self.tap: Tap | None = tap
        self.taken: PartialAggregates = taken
        #: Whether tasks can aggregate rows themselves: equal hashes mean equal keys, and every partial exists
        #: for a single row.
        self.plain = plain
        #: How the tasks of the operator in front can aggregate its rows; None: they cannot.
        self.early: EarlyAggregation | None = early

    # -- called by the compiler -----------------------------------------------------------------------

    @property
    def streams(self) -> tuple[str | None, ...]:
        return (self.layout.stream,)

    def fingerprint(self) -> dict[str, Any]:
        return window_fingerprint(self.layout, self.taken, self.schema)

    def traits(self, time_from: Sequence[str]) -> OperatorTraits:
        # The watermark releases stored windows, as it releases unmatched rows. There is no other side.
        (name,) = time_from
        return OperatorTraits(self.name, (name, name), self._lifetime(), (True, False), (True, False))

    def _lifetime(self) -> Lifetime | RowsLifetime:
        """The lifetime of partials."""
        return RowsLifetime() if self.layout.spec.counts_rows else Lifetime(self.layout.time_spec)

    def balanced(self) -> Balanced:
        # The panes of a group stay together: whole partitions move, and no key is split.
        return Balanced(keyed=True, scatters=False)

    def readers(self, sources: Sequence[tuple[str, bool]], drops: bool) -> Iterator[Reader]:
        ((source, whole),) = sources
        # Windows that may be missing are never approximate.
        reason = SAMPLING if self.layout.approximate else WINDOW_DROP
        yield Reader(self.name, 0, source, reason, whole)

    def needs(self, number: int, rows: DataFrame) -> DataFrame:
        read = columns_read(self.node, self.taken)
        return rows if read is None else rows.select(TIME, *[quoted(name) for name in sorted(read)])

    def drop_node(self, sources: Sequence[str]) -> network.Node:
        # Columns that a step makes are told apart behind it.
        groups = network.groups_text(
            self.node.by, sources[0] if self.groups_pass else f"steps to {self.name}"
        )
        given = self.name, sources[0], self.node.spec, self.node.by
        return network.DropWindowNode(*given, groups if self.node.drops_groups else None)

    # -- called by a batch ----------------------------------------------------------------------------

    def work(self, order: BatchOrder, feeding: Sequence[str]) -> WindowWork:
        plan, name = order.plan, self.name
        late_before_us, _ = order.late_before_us(name)
        sampling = plan.shed.estimating.get(name)
        return WindowWork(
            layout=self.layout,
            state=order.state(name),
            late_before_us=late_before_us,
            newest_us=order.newest_us(self.layout.stream, plan),
            by_row=name in plan.shuffles.by_row,
            gaps=order.passing.into(feeding[0], name, late_before_us),
            kept=order.passing.out_of(name),
            cohorts=order.passing.cohorts_of(name),
            shares=None if sampling is None else tuple(sampling["shares"]),
            seed=plan.seed,
            left_out=NOTHING_LEFT_OUT if sampling is None else left_out(sampling),
            begins_us=order.before.begins_us.get(name, BEGINNING_US),
            **order.staging(name),
        )

    def frame(self, rows: PassInput, work: WindowWork) -> DataFrame:
        """Partial aggregation in each partition, one shuffle by instance number, then the kernels."""
        early = rows.partials.get(self.name)
        taken = entering(self, work, rows) if early is None else None
        if taken is not None:
            rows.dropped[self.name, 0] = drop_counts(self, work)
        if early is not None:
            placed = routed_partials(early, self, work, rows, "early")
        elif taken is not None:
            placed = partials(taken, self, work, rows)
        else:
            placed = only_markers(self, work, rows)
        schema = self.schema if work.stage_root is None else REPORTS
        tasks = CountWindowInstance if self.layout.spec.counts_rows else WindowInstance
        return rows.run(self, placed, rows.tasks(tasks, work), schema)

    def onward(self, work: Any) -> EarlyPartials | None:
        """What the tasks in front make of their rows in this batch; None: the rows themselves are needed."""
        chosen = dropped_in_front(self, work) is not None or work.shares is not None
        return None if self.early is None or chosen else self.early.order

    def reads_onward(self, pipe: Pipe) -> bool:
        """Whether it reads what tasks make of their rows for it."""
        return self.early is not None and pipe.onward is self.early.order

    def is_due(self, work: WindowWork) -> bool:
        return work.state.changes_state

    def counts_rows(self, work: WindowWork) -> bool:
        in_readers = self.tap is not None and dropped_in_front(self, work) is not None
        return len(drop_counts(self, work)) > in_readers


def build_window(node: Window, name: str, builder: Builder) -> WindowOperator:
    """Check a window aggregate and decompose its aggregates into partials."""
    frame = builder.frame(node.parent)
    check_by(node, frame)
    taken = taken_apart(frame, node.aggregates, approximate=node.approximate)
    check_rows(node, taken)
    tap = builder.tap(node.parent, only=columns_read(node, taken))
    time_type = builder.time_type(node.parent)
    schema = window_schema(node, frame, taken, time_type, timed=builder.needs_time(name))
    layout = WindowLayout(
        name,
        tap.stream if tap is not None else None,
        node.spec,
        node.by,
        tuple(taken.parts),
        tuple(result for result, _ in taken.results),
        builder.partitions,
        arrow_schema(schema, name),
        taken.udafs,
        node.approximate,
        taken.carried,
    )
    # Rows of windows of rows are never aggregated before the shuffle.
    plain = not node.spec.counts_rows and plain_keys(node, frame) and taken.may_go_by_row
    early = early_aggregation(node, frame, layout, taken, plain) if tap is None else None
    return WindowOperator(
        node, layout, tap, taken, schema, plain, early, node.drops_groups and _passes(node, builder, tap)
    )


def _passes(node: Window, builder: Builder, tap: Tap | None) -> bool:
    """Whether the steps in front of a window leave its grouping columns alone."""
    if tap is not None:
        return tap.entry.passed_on.issuperset(node.by)
    base, steps = steps_of(node.parent)
    before = behind = builder.frame(base)
    for step in steps:
        behind = step.apply(behind)
    return passed_on([before], behind).issuperset(node.by)
