"""Session windows as a stranger would add them: a node, an operator and a task, no other file edited.

Rows of a key belong to one session as long as the next one comes within `gap_us`. Rows of open sessions are
the state; every batch writes them anew, which is good enough for a test. A session closes when the watermark
has passed its last row by the gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidegate.api.nodes import Node, OperatorNode
from tidegate.control.balance.balancing import Balanced
from tidegate.driver.compile.join_columns import arrow_schema
from tidegate.driver.frames.pass_input import PassInput
from tidegate.driver.frames.routing_frames import instance_of
from tidegate.driver.operators.protocol import BatchOrder, Builder, Operator
from tidegate.driver.operators.registry import register
from tidegate.driver.operators.tap import Tap
from tidegate.model.graph import OperatorTraits, Reader
from tidegate.model.reports import SideRows, StateChange, TaskReport, WorkCounts, report_text
from tidegate.model.times import BEGINNING_US, LEFT
from tidegate.route.places import stored_in
from tidegate.state.segments import SegmentWriter
from tidegate.state.store.paths import segment_path
from tidegate.state.store.store import open_store
from tidegate.worker.runtime.layout import CODE, MARKER, REPORT, TAG, TIME
from tidegate.worker.runtime.owned_state import OwnedState
from tidegate.worker.runtime.runs import NewRun, write_run
from tidegate.worker.runtime.stage_file import Kept
from tidegate.worker.runtime.state_order import StateOrder
from tidegate.worker.runtime.task_runner import by_instance
from tidegate.worker.runtime.worker_cache import worker_cache

SCHEMA = T.StructType(
    [
        T.StructField("k", T.LongType()),
        T.StructField("session_start", T.TimestampType()),
        T.StructField("session_end", T.TimestampType()),
        T.StructField("n", T.LongType()),
        T.StructField(REPORT, T.StringType()),
    ]
)


@dataclass(frozen=True, eq=False)
class Sessions(OperatorNode):
    """What a user writes: sessions of the column `k`."""

    label: ClassVar[str] = "session"

    parent: Node
    gap_us: int

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.parent,)


@dataclass(frozen=True)
class SessionLifetime:
    """Rows wait for other rows: nothing expires by time alone."""

    waits_for_rows: ClassVar[bool] = True

    def dead_before(self, side: int, watermark_us: int) -> int:
        return BEGINNING_US

    def late_before(self, watermark_us: int) -> int:
        return watermark_us

    def slot_us(self, side: int) -> int:
        return 0


@dataclass(frozen=True)
class SessionLayout:
    operator: str
    partitions: int
    schema: bytes
    gap_us: int
    how: str = "session"


@dataclass(frozen=True)
class SessionWork:
    """What travels to the workers."""

    layout: SessionLayout
    state: StateOrder
    late_before_us: int
    newest_us: int
    stage_root: str | None = None
    kept_as: Kept | None = None


class SessionOperator(Operator):
    """What runs in the driver."""

    node: Sessions

    def __init__(self, node: Sessions, layout: SessionLayout, tap: Tap):
        super().__init__(layout.operator, node, SCHEMA)
        self.layout, self.tap = layout, tap

    @property
    def streams(self) -> tuple[str | None, ...]:
        return (self.tap.stream,)

    @property
    def stages(self) -> bool:
        return False

    def fingerprint(self) -> dict[str, Any]:
        return {"gap_us": self.layout.gap_us, "stream": self.tap.stream}

    def traits(self, time_from: Sequence[str]) -> OperatorTraits:
        (name,) = time_from
        lifetime: Any = SessionLifetime()
        return OperatorTraits(self.name, (name, name), lifetime, (True, False), (True, False))

    def balanced(self) -> Balanced:
        return Balanced(keyed=True, scatters=False)

    def readers(self, sources: Sequence[tuple[str, bool]], drops: bool) -> Iterator[Reader]:
        ((source, whole),) = sources
        yield Reader(self.name, 0, source, "sessions shed nothing", whole)

    def work(self, order: BatchOrder, feeding: Sequence[str]) -> SessionWork:
        late, newest = order.late_before_us(self.name)[0], order.newest_us(self.tap.stream, order.plan)
        return SessionWork(self.layout, order.state(self.name), late, newest)

    def frame(self, rows: PassInput, work: SessionWork) -> DataFrame:
        routing = work.state.routing
        numbers = rows.spark.range(0, routing.instances, 1, 1)
        columns = {TAG: F.lit(MARKER).cast("short"), CODE: F.col("id")}
        columns |= {TIME: F.lit(0).cast("long"), "k": F.lit(None).cast("long")}
        placed = numbers.select(*[column.alias(name) for name, column in columns.items()])
        given = rows.entering(self.tap, usable_only=False)
        if given is not None:
            code = F.xxhash64("k").alias(CODE)
            placed = given.select(F.lit(0).cast("short").alias(TAG), code, TIME, "k").unionByName(placed)
        shuffled = placed.repartitionById(routing.instances, instance_of(routing, self.layout.partitions))
        return shuffled.mapInArrow(by_instance(SessionTask, work, TaskContext.get), SCHEMA)


class SessionTask:
    """What runs in a worker."""

    def __init__(self, work: SessionWork, instance: int, attempt: str):
        self.work, self.layout, self.instance = work, work.layout, instance
        state, name = work.state, work.layout.operator
        cache = worker_cache(name, state)
        self.writer = SegmentWriter(
            open_store(state.store_url), segment_path(name, state.batch, instance, attempt)
        )
        self.stored = [run for run in OwnedState(work, instance, cache).stored if run.own]
        self.schema = pa.ipc.read_schema(pa.py_buffer(work.layout.schema))

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows, (code, at, key) = self._received(list(batches))
        for run in self.stored:
            for start, stop in run.own:
                key_column = run.rows.column("k").to_numpy()[start:stop]
                parts = (run.codes[start:stop], run.times[start:stop], key_column)
                code, at, key = (np.concatenate(both) for both in zip((code, at, key), parts, strict=True))
        order = np.lexsort((at, key))
        code, at, key = code[order], at[order], key[order]
        new_session = np.append(True, (key[1:] != key[:-1]) | (np.diff(at) >= self.layout.gap_us))[: len(at)]
        first = np.flatnonzero(new_session)
        last = np.append(first[1:], len(at))[: len(first)] - 1
        state = self.work.state
        closed = np.full(len(first), state.flush) | (at[last] + self.layout.gap_us <= state.settle_us)
        session = np.cumsum(new_session) - 1
        open_rows = ~closed[session] if len(at) else np.zeros(0, bool)
        if closed.any():
            ends = at[last[closed]] + self.layout.gap_us
            columns = [key[first[closed]], at[first[closed]], ends, (last - first + 1)[closed]]
            arrays = [pa.array(c).cast(f.type) for c, f in zip(columns, self.schema, strict=False)]
            yield pa.RecordBatch.from_arrays(
                [*arrays, pa.nulls(int(closed.sum()), pa.string())], schema=self.schema
            )
        yield self._report(rows, int(closed.sum()), (code[open_rows], at[open_rows], key[open_rows]))

    def _received(self, batches: list[pa.RecordBatch]) -> tuple[SideRows, tuple[Any, Any, Any]]:
        # A marker tells every instance who it is, so there is always a batch.
        table = pa.Table.from_batches(batches)
        table = table.filter(pa.array(table.column(TAG).to_numpy() != MARKER))
        at = table.column(TIME).to_numpy().astype(np.int64)
        usable = (at != BEGINNING_US) & (at <= self.work.newest_us)
        late = usable & (at < self.work.late_before_us)
        taken = usable & ~late
        seen = int(at[usable].max()) if usable.any() else None
        rows = SideRows((len(at), 0), (int(late.sum()), 0), (int((~usable).sum()), 0), seen_us=(seen, None))
        code = table.column(CODE).to_numpy().astype(np.int64).view(np.uint64)
        return rows, (code[taken], at[taken], table.column("k").to_numpy().astype(np.int64)[taken])

    def _report(self, rows: SideRows, emitted: int, kept: tuple[Any, Any, Any]) -> pa.RecordBatch:
        order = np.lexsort((kept[1], kept[0]))
        code, at, key = (column[order] for column in kept)
        added = []
        if len(code):
            run = NewRun(LEFT, False, 0, int(at.min()), int(at.max()), [(0, len(code))])
            run.codes, run.times = code, at
            run.rows = pa.RecordBatch.from_arrays([pa.array(key)], names=["k"])
            placement = self.work.state.routing.sides[LEFT]
            labelled = stored_in(code, placement, self.layout.partitions, self.instance)
            batches = np.full(len(code), self.work.state.batch, np.int32)
            added = [write_run(run, self.writer, self.layout.operator, batches, 0, labelled)]
        change = StateChange(0, self.writer.close(), tuple(added), tuple(r.piece.name for r in self.stored))
        stored = WorkCounts(stored=rows.offered[0])
        report = TaskReport(self.layout.operator, self.instance, rows, stored, state=change, emitted=emitted)
        nulls = [pa.nulls(1, field.type) for field in self.schema if field.name != REPORT]
        return pa.RecordBatch.from_arrays([*nulls, pa.array([report_text(report)])], schema=self.schema)


def build_sessions(node: Sessions, name: str, builder: Builder) -> SessionOperator:
    tap = builder.tap(node.parent, only={"k"})
    assert tap is not None, "sessions of a source alone"
    layout = SessionLayout(name, builder.partitions, arrow_schema(SCHEMA, name), node.gap_us)
    return SessionOperator(node, layout, tap)


register(Sessions, build_sessions)
