"""The engine: one micro-batch, one pass, one barrier. The steps of a batch are numbered here and in the code.

    1  the batch is done already (its manifest stands): return
    2  the plan: read it (a replay) or decide and write it, before anything runs
    3  data frames for all operators, under the plan
    4  one action: kernels run, state files are written, output is materialised, reports come back
    5  settle passes, where the plan asks for them: rows that the moved watermark sets free
    6  sinks read the materialised output
    7  telemetry, then the manifest: from here on the batch is done

A crash before 7 leaves manifest b-1: the batch runs again under the same plan and gives the same rows. A
crash after 7 leaves manifest b: Spark asks once more, and step 1 says no.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

from pyspark.sql import DataFrame

from tidegate.control import balancing, overload, planning
from tidegate.control.balance_told import balance_told
from tidegate.control.balancing import BalanceSettings
from tidegate.control.outcome import manifest_after, newest_seen
from tidegate.control.overload import OverloadSettings
from tidegate.errors import BatchFailed, explain
from tidegate.flow import Join, Node
from tidegate.route.load import Load
from tidegate.spark import linked, observed, sinks
from tidegate.spark.compiled import Compiled, CompiledJoin
from tidegate.spark.join_batch import JoinBatch, join_batch
from tidegate.spark.observed import Observed
from tidegate.spark.passes import Pass, build_pass
from tidegate.spark.ports import boxes_of
from tidegate.spark.progress import Progress, progress_of, shed_of
from tidegate.spark.residual import condition
from tidegate.spark.staging import can_stage
from tidegate.state.checkpoint import Checkpoint, check_flow
from tidegate.state.local import LocalStore
from tidegate.state.next_batch import is_done
from tidegate.values import END_US, Manifest, Plan, TaskReport

#: Session settings of the engine's own queries. They are set on the clone of the session that Spark makes
#: for a streaming query, so the user's session keeps its own.
CONF = {
    # Adaptive execution would rearrange the partitions that the routing table has assigned.
    "spark.sql.adaptive.enabled": "false",
    # Few large Arrow batches: each costs a crossing, and kernels work on whole arrays.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "262144",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(256 << 20),
    # Output is read back at once and dropped: compressing it would cost more than it saves.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    "spark.sql.inMemoryColumnarStorage.batchSize": "65536",
}


#: Batches of a run that say nothing about its speed: Java and Python still load and compile.
COLD_BATCHES = 3


@dataclass(frozen=True)
class Settings:
    """What a query was started with."""

    partitions: int
    instances: int
    #: Settle once more after the rows of a batch: where no next batch may come to do it.
    settle_after: bool
    seed: int
    balance: BalanceSettings
    #: What may be left out when batches take too long; None: nothing, ever.
    overload: OverloadSettings | None = None


class Engine:
    """Runs the batches of one query; see the module docstring."""

    def __init__(
        self,
        compiled: Compiled,
        checkpoint: Checkpoint,
        settings: Settings,
        on_progress: Callable[[Progress], None],
        clock: Callable[[], float] = time.time,
    ):
        self.compiled, self.checkpoint, self.settings = compiled, checkpoint, settings
        #: Called at each step of a batch with its name and the batch: where tests crash on purpose.
        self.on_step: Callable[[str, int], None] = lambda step, batch: None
        self._on_progress, self._clock = on_progress, clock
        self._layouts = {join.layout.operator: join.layout for join in compiled.joins}
        self._operators = {join.layout.operator: _operator(compiled, join) for join in compiled.joins}
        self.manifest = self._recover()
        #: The Java streaming query; None in a batch run.
        self.query: Any = None
        self._timings: dict[str, float] = {}
        self._awake_us = self._now_us()
        self._stage_root = _stage_root(compiled, checkpoint)
        self._codec = linked.codec_of(compiled.spark) if self._stage_root is not None else None
        carries_more = any(join.layout.cells for join in compiled.joins)
        self._linked = linked.linked_outputs(compiled) if self._codec and not carries_more else {}
        #: Tells this run from an earlier one on the same checkpoint, for workers that outlive both.
        self._run = uuid.uuid4().hex[:12]
        #: Time that Spark needs around a batch, and how long the last batch took within.
        self._outside_seconds, self._last_duration = 0.0, 0.0
        self._batches_run = 0
        #: How many instances the next batch is to have, and what the last one did.
        self.instances = settings.instances
        self._loads: dict[str, tuple[Load, ...]] | None = None
        #: Do tasks tell which keys make their work?
        self._watching = settings.balance.moves

    def _recover(self) -> Manifest:
        found = self.checkpoint.recover()
        if found is not None:
            check_flow(found.flow, self.compiled.fingerprint)
            return found
        # A plan without a manifest: the first batch was begun, so what lies in the outputs may be its own.
        begun = self.checkpoint.plans.read(0)
        if begun is None:
            sinks.refuse_foreign_files(
                self.compiled.spark, self.compiled.outputs, () if self.compiled.streaming else ("batch=0",)
            )
        else:
            # It will run under its plan, whose routing tables hold for this number of partitions only.
            check_flow(
                {"partitions": balancing.partitions_of(begun)},
                {"partitions": dict.fromkeys(self._operators, self.settings.partitions)},
            )
        return planning.first_manifest(
            self.compiled.fingerprint,
            list(self.compiled.sources),
            balancing.first(self.settings.balance, self.settings.instances),
            self._now_us(),
        )

    def run_batch(self, frame: DataFrame, batch: int, flush: bool = False) -> None:
        """One batch, from plan to manifest."""
        # 1. Done already: Spark died between our manifest and its own commit.
        if is_done(batch, self.manifest.batch):
            return
        started = self._clock()
        self._timings = {}
        passes: list[Pass] = []
        try:
            # 2. The plan.
            with self._timed("plan"):
                plan = self._plan(batch, flush)
            self._step("planned", batch)
            # 3. and 4. Rows.
            reports = self._run_pass(frame, plan, self.manifest, passes)
            seen = self._observed()
            late = passes[0].late(plan.watermarks_us)
            self._step("materialised", batch)
            worth = self._worth(passes[0])
            after = self._after(self.manifest, plan, reports, seen)
            # 5. What the moved watermark sets free.
            settled = list(reports)
            for _ in self._operators if plan.settle_after else ():
                again = planning.settle_plan(plan, after, self._operators)
                if again is None:
                    break
                more = self._run_pass(None, again, after, passes)
                settled += more
                after = self._after(after, again, more, {})
            # 6. Sinks.
            with self._timed("sinks"):
                self._write_outputs(passes, plan, settled, batch)
            self._step("sunk", batch)
            # 7. Telemetry and manifest.
            with self._timed("commit"):
                progress = progress_of(batch, after, settled, self._layouts, seen, late)
                progress["shed"] = shed_of(plan, settled)
                progress["balance"] = balance_told(self.manifest, plan, reports)
                progress["started"] = started
                # False: the next batch, even one without rows, will set waiting rows free.
                progress["settled"] = planning.settle_plan(plan, after, self._operators) is None
                progress["output_rows"] = self._output_rows(settled)
                progress["timings"] = dict(self._timings)
                progress["duration_seconds"] = self._clock() - started
                after = self._learnt(plan, settled, after, started, worth)
                self.checkpoint.telemetry.write(batch, progress)
                self._step("reported", batch)
                self.checkpoint.commit(after)
            self.manifest = after
            self._step("committed", batch)
        finally:
            for one in passes:
                one.release()
        progress["timings"] = dict(self._timings)
        progress["duration_seconds"] = self._clock() - started
        self._measure_outside(progress["duration_seconds"])
        self._on_progress(progress)

    def _worth(self, one: Pass) -> overload.Worth:
        """What the pairs of a pass are worth, where the user says so."""
        settings = self.settings.overload
        if settings is None or settings.shed.utility is None:
            return {}
        with self._timed("utility"):
            return one.worth(condition(settings.shed.utility))

    def _learnt(
        self,
        plan: Plan,
        reports: list[TaskReport],
        after: Manifest,
        started: float,
        worth: overload.Worth,
    ) -> Manifest:
        """The manifest with what the controllers made of the batch."""
        after = replace(after, control=self._balanced(plan, reports, after))
        settings = self.settings.overload
        if settings is None:
            return after
        busy = overload.BatchTime(
            self._clock() - started + self._outside_seconds,
            measures_joins=True,
            cold=self._batches_run < COLD_BATCHES,
        )
        learnt = overload.learn(settings, self.manifest, plan, reports, after, self._operators, busy, worth)
        return replace(after, control={**after.control, **learnt})

    def _balanced(self, plan: Plan, reports: list[TaskReport], after: Manifest) -> dict[str, Any]:
        """Where rows should lie from the next batch on."""
        settings = self.settings.balance
        self._loads = balancing.measured(settings, reports, after)
        count, asked = balancing.scaled(settings, self._loads, self.manifest.control.get(balancing.SCALE, {}))
        if count is not None:
            self.instances = count
        # What was not watched says too little to decide by; what is uneven is watched from now on.
        learnt = balancing.learn(settings, plan, self._loads, after) if self._watching else plan.balance
        self._watching = balancing.watches_keys(settings, after, self._loads)
        return {balancing.CONTROL: learnt, balancing.SCALE: asked}

    def _measure_outside(self, duration: float) -> None:
        """Time that Spark needs around a batch: it is known one batch late, and changes little."""
        last = self.query.lastProgress() if self.query is not None and self.settings.overload else None
        if last is not None and last.batchId() == self.manifest.batch - 1:
            whole = last.durationMs().get("triggerExecution") / 1000
            self._outside_seconds = max(0.0, whole - self._last_duration)
        self._last_duration = duration
        self._batches_run += 1

    def _plan(self, batch: int, flush: bool) -> Plan:
        known = self.checkpoint.plans.read(batch)
        if known is not None:
            return known
        settings = self.settings.overload
        balance = self.settings.balance
        loads = self._loads or balancing.measured(balance, (), self.manifest)
        routing, cuts, wanted = balancing.reroute(balance, self.manifest, self.instances, loads)
        plan = planning.next_plan(
            batch,
            self.manifest,
            self._operators,
            self._now_us(),
            skipping=None if settings is None else overload.decide(settings, self.manifest, self._operators),
            awake_us=self._awake_us,
            flush=flush,
            settle_after=self.settings.settle_after and not flush,
            seed=self.settings.seed,
            routing=routing,
            cuts=cuts,
            balance=wanted,
        )
        self._step("planning", batch)
        self.checkpoint.plans.write(plan)
        return plan

    def _run_pass(
        self, frame: DataFrame | None, plan: Plan, before: Manifest, passes: list[Pass]
    ) -> list[TaskReport]:
        works = {name: self._work(name, plan, before) for name in self._operators}
        with self._timed("build"):
            again = plan.settle_after and any(any(o.lonely) for o in self._operators.values())
            one = build_pass(self.compiled, frame, works, again)
        passes.append(one)
        with self._timed("run"):
            reports = one.run()
        _check_complete(reports, plan)
        return reports

    def _work(self, name: str, plan: Plan, before: Manifest) -> JoinBatch:
        layout = self._layouts[name]
        newest = [
            END_US if stream is None else self.compiled.newest_us(stream, plan.now_us)
            for stream in (layout.left.stream, layout.right.stream)
        ]
        return replace(
            join_batch(layout, plan, before, self.checkpoint.store.url),
            newest_us=(newest[0], newest[1]),
            run=self._run,
            stage_root=self._stage_root,
            kept_as=self._codec if self._linked else None,
            watch_keys=self._watching,
        )

    def _observed(self) -> dict[str, Observed]:
        return observed.read(self.compiled.observations, self.query)

    def _after(
        self, before: Manifest, plan: Plan, reports: list[TaskReport], seen: dict[str, Observed]
    ) -> Manifest:
        """The manifest that a pass leaves behind; what Spark observed has the last word."""
        observed_us = {name: one.seen_us for name, one in seen.items()}
        newest = newest_seen(reports, self._operators) | observed_us
        return manifest_after(before, plan, reports, newest, self.compiled.clocks, self._operators)

    def _write_outputs(self, passes: list[Pass], plan: Plan, reports: list[TaskReport], batch: int) -> None:
        staged = [file for one in passes for file in one.staged]
        for output in self.compiled.outputs:
            if sinks.may_skip(output, batch) and self._is_empty(output.node, reports):
                continue
            self._step(f"sink {output.name}", batch)
            folder = self._linked.get(output.name)
            if staged and folder is not None and linked.publish(staged, folder, batch):
                continue
            frames = [f for one in passes if (f := one.rows(output.node, plan.watermarks_us)) is not None]
            rows = frames[0]
            for more in frames[1:]:
                rows = rows.unionAll(more)
            sinks.write(output, rows, batch)

    def _output_rows(self, reports: list[TaskReport]) -> dict[str, int]:
        """Rows per output, where nothing behind the operator can have changed their number."""
        rows = {}
        for output in self.compiled.outputs:
            node = output.node
            if isinstance(node, Join) and (node.where is None or node.how != "inner"):
                name = self.compiled.join_of(node).layout.operator
                rows[output.name] = sum(r.emitted for r in reports if r.operator == name)
        return rows

    def _is_empty(self, node: Node, reports: list[TaskReport]) -> bool:
        base, _ = boxes_of(node)
        if not isinstance(base, Join):
            return False
        name = self.compiled.join_of(base).layout.operator
        return not any(report.emitted for report in reports if report.operator == name)

    def _step(self, name: str, batch: int) -> None:
        self.on_step(name, batch)

    def _now_us(self) -> int:
        return int(self._clock() * 1_000_000)

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self._timings[name] = self._timings.get(name, 0.0) + time.perf_counter() - started


def _stage_root(compiled: Compiled, checkpoint: Checkpoint) -> str | None:
    """Where tasks stage results; None where results must go back through Spark (see staging.py)."""
    if not compiled.streaming or len(compiled.joins) != 1 or not isinstance(checkpoint.store, LocalStore):
        return None
    only = compiled.joins[0]
    return checkpoint.store.root if only.candidates is None and can_stage(only.schema) else None


def _operator(compiled: Compiled, join: CompiledJoin) -> planning.Operator:
    names = []
    for side in join.inputs:
        base, _ = boxes_of(side.node)
        names.append(side.port.stream or compiled.join_of(cast(Join, base)).layout.operator)
    layout = join.layout
    return planning.Operator(
        layout.operator, (names[0], names[1]), layout.within, layout.tracked, layout.preserved
    )


def _check_complete(reports: list[TaskReport], plan: Plan) -> None:
    """Exactly one report per operator and instance, or the batch has not happened."""
    got = sorted((report.operator, report.instance) for report in reports)
    wanted = sorted((name, i) for name, routing in plan.routing.items() for i in range(routing.instances))
    if got != wanted:
        raise BatchFailed(
            explain(
                f"Batch {plan.batch} did not report from every instance",
                got=f"{len(got)} reports, {len(wanted)} expected",
                why="A task that says nothing may have lost rows",
                do="Run the batch again; nothing of it was committed",
            )
        )
