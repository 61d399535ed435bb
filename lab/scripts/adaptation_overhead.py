#!/usr/bin/env python
"""What adaptation costs a join that is not overloaded: counting by age in the tasks, and the controller.

    lab/scripts/adaptation_overhead.py

One task of an equality join (and one of an overlap join) gets the same batches with and without a plan that
counts (and skips nothing), in turns. Times are processor time; the controller's are added per batch.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import replace
from statistics import median

import numpy as np
import pyarrow as pa

from tidegate.api.goal import Shed
from tidegate.api.joins.conditions import overlap
from tidegate.control import planning
from tidegate.control.actuators.join_shedding import BatchTime, FromGoal, OverloadSettings, decide, learn
from tidegate.control.balance.rerouting import first_routing
from tidegate.control.outcome import manifest_after, newest_seen
from tidegate.control.watermarks import ClockSettings
from tidegate.driver.operators.join import join_work
from tidegate.driver.operators.protocol import state_order
from tidegate.join.selective.selection import mixed
from tidegate.join.within import Within
from tidegate.model.graph import OperatorTraits
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan, PlanDecisions, ShedPlan
from tidegate.model.reports import TaskReport, reports_in
from tidegate.route.assignment import Assignment
from tidegate.route.hash_routing import first_table
from tidegate.state.store.memory import MemoryStore
from tidegate.worker.join.task import JoinInstance
from tidegate.worker.runtime.layout import CODE, REPORT, TAG, TIME, JoinLayout, OutputColumn, SideLayout

SECOND = 1_000_000
BATCHES, TIMED = 28, 16
WITHIN = Within(-10 * SECOND, 10 * SECOND)


def layout(sets: bool) -> JoinLayout:
    """Rows (n, items) of two streams; the pairs of their numbers come out."""
    names = [pa.field(name, pa.int64()) for name in ("n", "n_right")]
    schema = pa.schema([*names, pa.field(REPORT, pa.string())]).serialize().to_pybytes()
    left, right = (SideLayout(tag, name, ("n", "items"), ("l0", "l1")) for tag, name in ((0, "a"), (2, "b")))
    output = (OutputColumn("n", "n", None), OutputColumn("n_right", None, "n"))
    condition = overlap("items", at_least=3, index="none") if sets else None
    return JoinLayout(
        "join1", "inner", WITHIN, 8, left, right, (), output, schema, condition=condition, spread=sets
    )


def rows_of(batch: int, rows: int, keys: int, random: np.random.Generator) -> pa.RecordBatch:
    items = pa.array(random.integers(0, 100, (rows, 5)).tolist(), pa.list_(pa.int64()))
    return pa.RecordBatch.from_pydict(
        {
            TAG: pa.array((2 * random.integers(0, 2, rows)).astype(np.int16)),
            TIME: pa.array(batch * SECOND + np.sort(random.integers(0, SECOND, rows))),
            CODE: pa.array(mixed(random.integers(0, keys, rows).astype(np.uint64), 0).view(np.int64)),
            "l0": pa.array(np.arange(rows)),
            "l1": items,
        }
    )


def measured(sets: bool, rows: int, keys: int) -> tuple[float, float, float]:
    """Median seconds of a batch: without counting, with counting, and of the controller."""
    random = np.random.default_rng(7)
    shape = layout(sets)
    operators = {"join1": OperatorTraits("join1", ("a", "b"), WITHIN, (False, False), (False, False))}
    store = MemoryStore(f"overhead-{uuid.uuid4().hex}")
    settings = OverloadSettings(Shed(), ("join1",), 1.0, 1.0)
    routing = first_routing([Assignment(1, first_table(8, 1))])
    manifest = planning.first_manifest({}, ["a", "b"], {"join1": routing}, 0)
    times: dict[bool, list[float]] = {False: [], True: []}
    controller: list[float] = []
    for batch in range(BATCHES):
        given = rows_of(batch, rows, keys, random)
        began = time.process_time()
        skipping = decide(settings, manifest, operators)
        deciding = time.process_time() - began
        plan = planning.next_plan(
            batch, manifest, operators, batch * SECOND, PlanDecisions(shed=ShedPlan(skipping=skipping))
        )
        reports: list[TaskReport] = []
        for counts in ((False, True), (True, False))[batch % 2]:
            work = join_work(shape, plan, manifest, state_order(shape.operator, plan, manifest, store.url))
            work = work if counts else replace(work, skipping=None)
            began = time.process_time()
            *_, last = JoinInstance(work, 0, uuid.uuid4().hex[:12]).run(iter([given]))
            if batch >= BATCHES - TIMED:
                times[counts].append(time.process_time() - began)
            if counts:
                reports = [report_in(last)]
        after = after_batch(manifest, plan, reports, operators)
        began = time.process_time()
        learnt = learn(settings, manifest, plan, reports, after, operators, BatchTime(0.3), FromGoal())
        if batch >= BATCHES - TIMED:
            controller.append(deciding + time.process_time() - began)
        manifest = replace(after, control=learnt)
    return median(times[False]), median(times[True]), median(controller)


def report_in(last: pa.RecordBatch) -> TaskReport:
    ((report,), _) = reports_in(last.column(REPORT).to_pylist())
    return report


def after_batch(
    before: Manifest, plan: Plan, reports: list[TaskReport], operators: dict[str, OperatorTraits]
) -> Manifest:
    clocks = {name: ClockSettings(0, None) for name in ("a", "b")}
    return manifest_after(before, plan, reports, newest_seen(reports, operators), clocks, operators)


def main() -> None:
    cases = ("equality, 100,000 rows", False, 100_000, 1_000_000), ("overlap, 2,000 rows", True, 2_000, 1)
    for name, sets, rows, keys in cases:
        plain, counting, controller = measured(sets, rows, keys)
        share = (counting - plain + controller) / plain
        print(f"{name}: a task takes {plain * 1e3:.1f} ms, with counting {counting * 1e3:.1f} ms")
        print(f"  controller {controller * 1e3:.2f} ms a batch; together {share:+.1%} of the task's time")


if __name__ == "__main__":
    main()
