"""A program that runs one task over many rows; prints its results and the most anonymous memory it had.

python -m tests.unit.worker.runtime.large_task join|window ROWS
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from tests.oracle.plain_aggregates import PlainAggregate
from tests.oracle.plain_engine import PlainEngine
from tests.oracle.plain_join import PlainJoin
from tests.oracle.plain_window import PlainWindow
from tests.oracle.plain_window_engine import PlainWindows

from tidegate.control import planning
from tidegate.driver.operators.join import join_work
from tidegate.driver.operators.protocol import state_order
from tidegate.join.within import Within
from tidegate.model.manifest import SparkBatch
from tidegate.model.plan import Plan, PlanDecisions
from tidegate.model.reports import reports_in
from tidegate.window.spec import WindowSpec
from tidegate.worker.join import task as join_task
from tidegate.worker.runtime.layout import CHECK, CODE, REPORT, ROWS, SEEN, TAG, TIME
from tidegate.worker.window import task as window_task

ROOM, PER_BATCH = 2 << 20, 1 << 14
#: A row every 10 microseconds; a key comes again after KEYS rows.
STEP_US, KEYS = 10, 10_007
MIX = np.uint64(0x9E3779B97F4A7C15)


def main(kind: str, rows: int) -> None:
    engine: PlainEngine
    with tempfile.TemporaryDirectory() as folder:
        if kind == "join":
            within = Within(-KEYS * STEP_US, KEYS * STEP_US)
            join = PlainJoin("one", "a", "b", "inner", within, ("a_n", "a_v"), ("b_n", "b_v"))
            engine = PlainEngine([join], {"a": 10**6, "b": 10**6})
            plan = first_plan(engine)
            order = state_order("one", plan, engine.manifest, folder)
            work = replace(join_work(engine._layouts["one"], plan, engine.manifest, order), stage_root=folder)
            task: Any = join_task.JoinInstance(work, 0, "attempt")
            batches = (batch for first in range(0, rows, PER_BATCH) for batch in joined(first, rows))
        else:
            spec = WindowSpec(10**6, 10**6)
            window = PlainWindow("one", "a", spec, ("flag",), (PlainAggregate("count", ("small",)),))
            windows = PlainWindows([window], {"a": 0})
            plan = first_plan(windows)
            work_of_window = replace(
                windows._work(window, plan, windows.manifest),
                state=replace(
                    state_order("one", plan, windows.manifest, folder),
                    settle_us=rows * STEP_US + 10**6,
                    flush=False,
                ),
                stage_root=folder,
            )
            task = window_task.WindowInstance(work_of_window, 0, "attempt")
            names = window._columns()
            batches = (counted(first, rows, names) for first in range(0, rows, PER_BATCH))
        *_, last = task.run(batches)
        ((report,), _) = reports_in(last.column(REPORT).to_pylist())
    print(report.emitted, report.memory.peak_bytes, report.memory.received_bytes)


def first_plan(engine: PlainEngine) -> Plan:
    decided = PlanDecisions(spark_batch=SparkBatch(0))
    return planning.next_plan(0, engine.manifest, engine.operators, 0, decided)


def joined(first: int, rows: int) -> Iterator[pa.RecordBatch]:
    """The next rows of both sides."""
    n = np.arange(first, min(rows, first + PER_BATCH))
    for side in (0, 1):
        yield pa.record_batch(
            {
                TAG: pa.array(np.full(len(n), 2 * side), pa.int16()),
                TIME: n * STEP_US,
                CODE: ((n % KEYS).astype(np.uint64) * MIX).view(np.int64),
                "l_key": n % KEYS,
                "l_items": pa.nulls(len(n), pa.list_(pa.int64())),
                "l0": n,
                "l1": n,
            }
        )


def counted(first: int, rows: int, names: dict[str, pa.DataType]) -> pa.RecordBatch:
    """The next partials: each of its own group, all on time."""
    n = np.arange(first, min(rows, first + PER_BATCH))
    code = (n.astype(np.uint64) * MIX).view(np.int64)
    known = {CODE: code, CHECK: code, SEEN: n * STEP_US, ROWS: np.ones(len(n), np.int64)}
    columns = {
        name: pa.array(known[name])
        if name in known
        else pa.array(np.zeros(len(n), np.int64)).cast(kind)
        if not pa.types.is_boolean(kind)
        else pa.array(np.zeros(len(n), bool))
        for name, kind in names.items()
    }
    columns[TAG] = pa.array(np.zeros(len(n)), pa.int16())
    return pa.record_batch(columns)


if __name__ == "__main__":
    with (
        patch.object(join_task, "room_bytes", lambda: ROOM),
        patch.object(window_task, "room_bytes", lambda: ROOM),
        patch.object(window_task, "ROWS_AT_ONCE", 1 << 15),
    ):
        main(sys.argv[1], int(sys.argv[2]))
