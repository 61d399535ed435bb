"""`PlainEngine` for window aggregates: the same planner, state and steps, other tasks."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from tests.oracle.plain_aggregates import Row
from tests.oracle.plain_engine import Joined, PlainEngine
from tests.oracle.plain_routing import place_of
from tests.oracle.plain_window import PlainWindow

from tidegate.driver.operators.protocol import state_order
from tidegate.model.graph import LateRule
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.reports import TaskReport, reports_in
from tidegate.model.routing import Routing
from tidegate.route.assignment import Assignment
from tidegate.worker.runtime.layout import CODE, MARKER, REPORT, TAG, TIME
from tidegate.worker.runtime.state_order import for_instance
from tidegate.worker.window.work import WindowWork


class PlainWindows(PlainEngine):
    """Runs window aggregates batch by batch. Emitted rows are as `PlainWindow.shown` has them."""

    def __init__(
        self,
        windows: Sequence[PlainWindow],
        lateness: Mapping[str, int],
        *,
        partitions: int = 4,
        first: Assignment | None = None,
        rule: LateRule = "own",
    ):
        wanted = Assignment(1, (0,) * partitions) if first is None else first
        operators = {window.name: window.operator() for window in windows}
        super().__init__((), lateness, partitions=partitions, first=[wanted], others=operators, rule=rule)
        self.windows = list(windows)
        self._window_layouts = {window.name: window.layout(partitions, lateness) for window in windows}

    def _pass(
        self,
        plan: Plan,
        before: Manifest,
        rows: Mapping[str, Sequence[Any]],
        emitted: dict[str, Counter[Joined]],
    ) -> list[TaskReport]:
        reports: list[TaskReport] = []
        results: dict[str, list[Row]] = {}
        for window in self.windows:
            work = self._work(window, plan, before)
            given = results.get(window.source, rows.get(window.source, ()))
            closed = results[window.name] = []
            for instance, mine in self._shares(window.partials(given, work), work.state.routing):
                order = for_instance(work, instance)
                for batch in window.task(order, instance, uuid.uuid4().hex[:12]).run(iter(mine)):
                    if batch.column(REPORT).null_count < len(batch):
                        reports += reports_in(batch.column(REPORT).to_pylist())[0]
                        continue
                    closed += [{**row, "time": row[TIME]} for row in plain(batch)]
            emitted[window.name].update(map(window.shown, closed))
        return reports

    def _work(self, window: PlainWindow, plan: Plan, before: Manifest) -> WindowWork:
        name = window.name
        return WindowWork(
            layout=self._window_layouts[name],
            state=self._sent(name, state_order(name, plan, before, self.store.url)),
            late_before_us=plan.late.inputs[name][0],
        )

    def _shares(self, table: pa.Table, routing: Routing) -> Iterator[tuple[int, list[pa.RecordBatch]]]:
        """What each instance gets, as `instance_of` in driver/frames/routing_frames.py says it."""
        codes = table.column(CODE).to_numpy()
        places = [place_of(code, routing.left, self.partitions) for code in codes.view(np.uint64).tolist()]
        owners = np.array([routing.left.table[place.stores[0]] for place in places], np.int64)
        targets = np.where(table.column(TAG).to_numpy() == MARKER, codes, owners)
        for instance in range(routing.instances):
            # Small batches: a task must not depend on how its rows were cut on the way.
            yield instance, table.filter(pa.array(targets == instance)).to_batches(max_chunksize=3)


def plain(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows in which moments are whole numbers, lists are tuples, and NaN is text: equal to itself."""
    columns = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        values = column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
        shown = [tuple(value) if isinstance(value, list) else value for value in values.to_pylist()]
        columns[name] = ["NaN" if value != value else value for value in shown]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
