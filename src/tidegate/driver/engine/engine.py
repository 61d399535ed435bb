"""The engine runs one micro-batch at a time. The steps of a batch are numbered here and in the code.

    1  if the last manifest has this batch of Spark, it is done: return; if it is idle (only the heartbeat has
       moved, and nothing is due), say so and return; else it gets the next commit number
    2  read the plan (a replay), or decide and write it before anything runs; for the first rows of a stream
       after an initial skew scan
    3  build data frames for all operators under the plan
    4  one action: kernels run, state files are written, output is materialised, reports are collected
    5  more passes if no batch may follow: rows that the watermark releases, repair
    6  sinks read the materialised output; files become drafts (the action of 4 itself may have written them)
    7  telemetry, the receipt, then the manifest, which commits the batch and names the drafts
    8  drafts are published: their files get their final names

A crash before 7 leaves manifest b-1: the batch runs again under the same plan and gives the same rows. A
crash after 7 leaves manifest b: the next start does step 8, Spark runs the batch again, and step 1 returns.

A run over what is available now ends with a commit without rows (`Engine.settle`): steps 2 to 8, once, after
Spark's query. If it was begun and not finished, the next start finishes it before anything else.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tidegate.control import planning
from tidegate.control.goal import goal_loop
from tidegate.control.identity.flow_change import FlowChange
from tidegate.control.latency import Availability, latency_of
from tidegate.control.outcome import changes_nothing, manifest_after, newest_seen
from tidegate.control.receipts.roll_up import combined
from tidegate.control.repair import repair
from tidegate.driver.compile.compiled import Compiled
from tidegate.driver.compile.lineage import emits_every_row, traits_of
from tidegate.driver.engine.batch import BatchDone, Timings, check_complete
from tidegate.driver.engine.controllers import Controllers, Moment, SeenKeys
from tidegate.driver.engine.job_names import JobNames
from tidegate.driver.engine.match_counts import Entered
from tidegate.driver.engine.recovery import recovered
from tidegate.driver.engine.settings import Settings
from tidegate.driver.engine.sink_step import SinkStep, emitted
from tidegate.driver.engine.skew_scan import SkewScan
from tidegate.driver.engine.work_orders import WorkOrders
from tidegate.driver.frames import observed
from tidegate.driver.frames.frame_cache import FrameCache
from tidegate.driver.frames.pass_frames import build_pass
from tidegate.driver.frames.passes import Pass, Reports
from tidegate.driver.frames.stream_rows import StreamRows
from tidegate.driver.io.availability import Availabilities
from tidegate.driver.io.publishing import Publisher
from tidegate.driver.io.source_limits import SourceLimits
from tidegate.driver.io.staging import Staging
from tidegate.driver.sql_text import condition
from tidegate.model.codec import to_plain
from tidegate.model.json_values import Metrics
from tidegate.model.manifest import Manifest, SparkBatch
from tidegate.model.plan import Plan
from tidegate.model.progress import LatencyProgress
from tidegate.model.reports import MatchReport, Observed, TaskReport
from tidegate.observe.telemetry import Telemetry, telemetry_of
from tidegate.state.checkpoint import Checkpoint
from tidegate.state.spark_log import commit_of, reads_nothing_new, refuse_other, unfinished_settling

BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"
#: Session settings of the engine's queries. They are set on the clone of the session that Spark makes for a
#: streaming query, so the user's session does not change.
CONF = {
    # Adaptive execution would rearrange the partitions that the routing table has assigned.
    "spark.sql.adaptive.enabled": "false",
    # Arrow batches are bounded by rows, not by bytes: with a bound on bytes Spark measures the batch after
    # every row, which takes longer than the rest of the transfer. The bound on rows is small enough for rows
    # of many kilobytes; tasks concatenate batches.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16384",
    BATCH_BYTES: str(2**31 - 1),
    # Output is read back at once and dropped, so compression would cost more than it saves.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    "spark.sql.inMemoryColumnarStorage.batchSize": "65536",
    # Behind a filter that no row can pass, this rule would take away the operators in front of it.
    EXCLUDED_RULES: "org.apache.spark.sql.catalyst.optimizer.PruneFilters",
    # The engine runs the plans of the streams itself, as ordinary batches (`frames/query_input.py`).
    "spark.sql.streaming.unsupportedOperationCheck": "false",
}
#: The first batches of a run are not representative: Java and Python still load and compile.
COLD_BATCHES = 3


class Engine:
    """Runs the batches of one query; see the module docstring."""

    def __init__(
        self,
        compiled: Compiled,
        checkpoint: Checkpoint,
        settings: Settings,
        on_batch: Callable[[Telemetry, Metrics], None],
        clock: Callable[[], float] = time.time,
    ):
        self.compiled: Compiled = compiled
        self.checkpoint: Checkpoint = checkpoint
        self.settings: Settings = settings
        #: Called at each step of a batch with its name and the batch; tests crash here on purpose.
        self.on_step: Callable[[str, int], None] = lambda step, batch: None
        #: Called when the settings have changed.
        self.on_settings: Callable[[Settings], None] = lambda settings: None
        #: Called after each batch with its telemetry and its receipt.
        self._on_batch, self._clock = on_batch, clock
        self._operators = traits_of(compiled, settings.watermark)
        self._streams = {operator.name: operator.streams for operator in compiled.operators}
        self.manifest: Manifest
        self._change: FlowChange
        self.manifest, self._change = recovered(
            compiled, checkpoint, settings, self._operators, self._now_us()
        )
        self.publisher: Publisher = Publisher.of(compiled.spark, compiled.outputs, checkpoint)
        self.publisher.recover(self.manifest.files)
        self.controllers: Controllers = Controllers(compiled, settings, self._operators)
        #: The Java streaming query; None in a batch run.
        self.query: Any = None
        #: Limits what sources give to a batch; None: nothing does.
        self.limits: SourceLimits | None = None
        #: The settings from the next batch on. Other threads may set them.
        self.wanted: Settings = settings
        self._times = Timings()
        self._awake_us = self._now_us()
        self._frame_cache = FrameCache()
        #: Where passes run: the clone of the user's session that Spark makes for a streaming query.
        self._session: SparkSession = compiled.spark
        self._staging = Staging.of(compiled, checkpoint.store)
        self._work_orders = WorkOrders(compiled, checkpoint.store.url, self._staging)
        #: The time that Spark needs around a batch, and the duration of the last batch without it.
        self._outside_seconds, self._last_duration = 0.0, 0.0
        self._batches_run = 0
        self._took_rows = True
        self._skew_scan = SkewScan(compiled, settings.balance)
        self._availabilities = Availabilities(compiled)
        self.jobs: JobNames = JobNames(compiled.spark.sparkContext, "tidegate")
        self._sinks = SinkStep(compiled, self._staging, self.publisher, checkpoint, self.jobs, self._step)
        #: When the rows became available that drafts of earlier batches hold.
        self._held_back: list[Availability] = []

    def run_batch(self, frame: DataFrame | None, spark_batch: int, flush: bool = False) -> None:
        """One batch of Spark, from plan to manifest. `frame`: as Spark passes it; None in a batch run."""
        self._took_rows = True
        self._adopt()
        # 1. Already done: Spark died between our manifest and its own commit.
        log, last = self.checkpoint.spark_log, self.manifest.spark_batch.number
        wanted = log.batch(spark_batch)
        before = log.batch(spark_batch - 1) if spark_batch > last + 1 else None
        if commit_of(wanted, self.manifest, before) is None:
            return
        started = self._clock()
        idle = None if flush else self._idle_plan(wanted)
        if idle is None:
            self._commit_next(frame, wanted, flush)
        else:
            self._report_idle(idle, started)

    def _adopt(self) -> None:
        """Go by the settings that are wanted now. All that was decided and learnt is in the manifest, so this
        is like a restart with another goal."""
        wanted = self.wanted
        if wanted is self.settings:
            return
        self.settings = wanted
        self.controllers.adopt(wanted)
        if self.limits is not None:
            self.limits.follow(wanted.goal, self.manifest)
        self.on_settings(wanted)

    def _idle_plan(self, taken: SparkBatch) -> Plan | None:
        """The plan of a batch that would change nothing; it is not written. None: the batch must run.

        Nothing depends on whether an idle batch ran, so a replay may decide otherwise, for example because a
        stream has become idle since. A batch with a plan runs under it.
        """
        before, batch = self.manifest, self.manifest.batch + 1
        # Frames that Spark runs itself may give rows when only the watermark moves.
        if before.batch < 0 or self.compiled.query_input.run_by_spark:
            return None
        if not (reads_nothing_new(taken, before.spark_batch) and goal_loop.is_at_rest(before)):
            return None
        # Debts may have to wait for spare time, which only batches that run can show.
        due = not self.controllers.is_settled(before) or self.controllers.matching.counts_more(before)
        due = due or self.publisher.is_overdue
        if due or self.checkpoint.plans.read(batch) is not None:
            return None
        moment = Moment(self._now_us(), self._awake_us, False, self._is_cold, taken, 0)
        plan = self.controllers.plan(batch, before, moment, Timings(), {})
        return plan if changes_nothing(before, plan, self.compiled.clocks, self._operators) else None

    def _report_idle(self, plan: Plan, started: float) -> None:
        """Say that nothing happens; the report has the number of the next commit, as it would be in Spark."""
        self._took_rows = False
        raw = dict.fromkeys(self.compiled.observed, Observed(0, 0, None))
        entered = self.controllers.matching.nothing_entered(raw, self.manifest)
        done = BatchDone(plan, None, self.manifest, self.manifest, [], [], [], raw, entered, {})
        self._times = Timings()
        telemetry = self._telemetry(done, started)
        done.latency = self.latency(done, self._clock())
        telemetry["latency"] = to_plain(done.latency)
        telemetry["idle"] = True
        receipt = self.controllers.report(done, telemetry)
        self._last_duration = self._clock() - started
        self._on_batch(telemetry, receipt)

    @property
    def at_rest(self) -> bool:
        """Whether the last batch of Spark found nothing at the sources, and nothing is due without rows."""
        return not self._took_rows and self.controllers.is_settled(self.manifest)

    def settle(self) -> None:
        """A commit without rows, because no batch may follow: all that the watermark releases, repair, and
        files that `commit_every` holds back."""
        self._adopt()
        if self.controllers.is_due(self.manifest) or self.publisher.files.drafts:
            self._commit_next(None, None)

    @property
    def settles_first(self) -> bool:
        """Whether an earlier run began a commit without rows and did not finish it."""
        return unfinished_settling(self.manifest, self.checkpoint.plans) is not None

    def finish_settling(self) -> None:
        """Finish that commit under its plan; no batch may run before it."""
        self._commit_next(None, None)
        # Its frames belong to the user's session, those of the batches to the clone of it.
        self._frame_cache = FrameCache()

    def _commit_next(self, frame: DataFrame | None, taken: SparkBatch | None, flush: bool = False) -> None:
        """The next commit: the rows of a batch of Spark, or without rows."""
        batch = self.manifest.batch + 1
        with self.jobs.within(batch):
            self._run_batch(frame, batch, taken, flush)

    def _run_batch(self, frame: DataFrame | None, batch: int, taken: SparkBatch | None, flush: bool) -> None:
        started = self._clock()
        self._times = Timings()
        passes: list[Pass] = []
        with self._times.timed("input"):
            rows = None if taken is None else StreamRows(self.compiled, frame, self.query)
        self._took_rows = rows is not None and rows.reads_anything
        try:
            # 2. The plan.
            with self._times.timed("plan"):
                plan = self._plan(rows, batch, taken, flush)
            self._step("planned", batch)
            # 3. and 4. Rows.
            done = self._run_rows(rows, plan, passes)
            # 5. More passes.
            self._settle(done, passes)
            self._repair_all(done, passes)
            # 6. Sinks.
            with self._times.timed("sinks"):
                self._sinks.run(passes, plan, self.controllers.dropping.passing(plan), done.all_reports)
                self.publisher.conclude(self._session, batch, ends=plan.settles or plan.flush)
            self._step("sunk", batch)
            # 7. and 8. Telemetry, receipt and manifest; files.
            with self._times.timed("commit"):
                telemetry, receipt = self._commit(done, started)
            self._step("published", batch)
        finally:
            for one in passes:
                one.release()
        telemetry["timings"] = dict(self._times.seconds)
        telemetry["duration_seconds"] = self._clock() - started
        self._measure_outside(telemetry["duration_seconds"])
        self._on_batch(telemetry, receipt)

    def close(self) -> None:
        """Release what was sent to workers; no batch may follow."""
        self._work_orders.close()

    def _plan(self, rows: StreamRows | None, batch: int, taken: SparkBatch | None, flush: bool) -> Plan:
        self.checkpoint.check()
        known = self.checkpoint.plans.read(batch)
        if known is not None:
            refuse_other(known.spark_batch, taken)
            plan = self._change.plan(
                known, self.manifest, partial(self._planned, rows, batch, taken, flush, {})
            )
            self.controllers.matching.publish(plan)
            return plan
        self.jobs.next("initial skew scan")
        with self._times.timed("look"):
            seen = {} if rows is None else self._skew_scan.at(rows, self.manifest)
        plan = self._planned(rows, batch, taken, flush, seen)
        self._step("planning", batch)
        self.checkpoint.plans.write(plan)
        self.controllers.matching.publish(plan)
        return plan

    def _planned(
        self, rows: StreamRows | None, batch: int, taken: SparkBatch | None, flush: bool, seen: SeenKeys
    ) -> Plan:
        size = 0 if rows is None else rows.size_bytes
        moment = Moment(self._now_us(), self._awake_us, flush, self._is_cold, taken, size)
        return self.controllers.plan(batch, self.manifest, moment, self._times, seen)

    def _run_rows(self, rows: StreamRows | None, plan: Plan, passes: list[Pass]) -> BatchDone:
        """The pass over the rows of the batch."""
        matching = self.controllers.matching
        if rows is not None:
            rows.begin(plan)
            self._session = rows.session
        reports, matched = self._run_pass(rows, plan, self.manifest, passes)
        # These may be the first to read a stream, so they come before the counts of Spark.
        united, tapped_late = passes[0].united(plan), passes[0].late(plan)
        if rows is None:
            raw = dict.fromkeys(self.compiled.observed, Observed(0, 0, None))
            entered = matching.nothing_entered(raw, self.manifest)
        else:
            raw = observed.read(self.compiled.observed, rows)
            entered = replace(matching.entered(raw, rows, self.manifest), united=united)
        seen = matching.judged(raw, plan, matched)
        late = tapped_late | matching.late(matched) | self._late_in_unions(entered)
        self._step("materialised", plan.batch)
        after = self._after(self.manifest, plan, reports, seen)
        done = BatchDone(
            plan, rows, self.manifest, after, reports, list(reports), matched, seen, entered, late
        )
        joins = self.settings.overload
        if joins is not None and joins.shed.utility is not None:
            with self._times.timed("utility"):
                done.worth = passes[0].worth(condition(joins.shed.utility))
        return done

    def _late_in_unions(self, entered: Entered) -> dict[str, int]:
        """Late rows of streams that only unions read."""
        reporting = [one for one in self.compiled.operators if one.reports]
        elsewhere = {stream for one in reporting for stream in one.streams}
        late: dict[str, int] = {}
        for reader, (_, rows) in entered.united.items():
            if reader.source not in elsewhere:
                late[reader.source] = max(rows, late.get(reader.source, 0))
        return late

    def _settle(self, done: BatchDone, passes: list[Pass]) -> None:
        """Emit rows released by the watermark behind other operators, if no later batch may do it."""
        for _ in self._operators if done.plan.settles else ():
            again = planning.settle_plan(done.plan, done.after, self._operators)
            if again is None:
                break
            self._run_more(again, done, passes)

    def _repair_all(self, done: BatchDone, passes: list[Pass]) -> None:
        """Repair all debts, if no later batch may do it."""
        if done.plan.repair.repair_all and done.after.debts:
            repairs = repair.everything(done.after.debts)
            with self._times.timed("repair"):
                self._run_more(planning.repair_plan(done.plan, done.after, repairs), done, passes)

    def _run_more(self, plan: Plan, done: BatchDone, passes: list[Pass]) -> None:
        """One more pass, without new rows."""
        more, matched = self._run_pass(None, plan, done.after, passes)
        done.settled += more
        done.matched += matched
        done.after = self._after(done.after, plan, more, {})

    def _commit(self, done: BatchDone, started: float) -> tuple[Telemetry, Metrics]:
        """Learn from the batch, write telemetry and receipt, and commit it."""
        telemetry = self._telemetry(done, started)
        seconds = self._clock() - started + self._outside_seconds
        repair_seconds = self._times.seconds.get("repair", 0.0)
        busy_seconds = self.controllers.ordinary_seconds(done, seconds, repair_seconds)
        with self._times.timed("intake"):
            if self.limits is not None and not done.plan.settles:
                done.taken = self.limits.taken(telemetry["offered"], done.after)
        with self._times.timed("latency"):
            if done.rows is not None:
                if self.query is not None:
                    done.rows.report(self.query, telemetry["offered"])
                done.available = self._availabilities.of(
                    telemetry["offered"], done.rows, self.query, int(started * 1e6)
                )
            self._hold_back(done)
        done.latency = self.latency(done, self._clock())
        # Many passes without rows tell nothing about the batches to come.
        self.controllers.learn(done, busy_seconds, self._is_cold or done.plan.settles, self._times)
        by_memory = None if self.limits is None else self.limits.by_memory
        if by_memory is not None:
            with self._times.timed("intake"):
                self.controllers.size(done, by_memory.taken(telemetry["offered"]))
        telemetry["latency"] = to_plain(done.latency)
        receipt = self.controllers.report(done, telemetry)
        # Another run may have written more receipts since.
        self.checkpoint.check()
        self.checkpoint.telemetry.write(done.batch, telemetry)
        receipt["load"] = _load(telemetry)
        receipts = self.checkpoint.receipts
        receipts.write(receipt)
        if receipts.begins_period(receipt):
            kept_from = receipts.kept_from(
                done.plan.now_us, self.settings.retention, done.before.receipts_from
            )
            done.after = replace(done.after, receipts_from=kept_from)
        self._step("reported", done.batch)
        done.after = replace(done.after, files=self.publisher.files)
        self.checkpoint.commit(done.after)
        self.manifest, self._change = done.after, FlowChange()
        self._step("committed", done.batch)
        self.publisher.publish(lambda: self._step("publishing", done.batch))
        telemetry["latency"] = to_plain(self.latency(done, self._clock()))
        if receipts.begins_period(receipt):
            with self._times.timed("roll_up"):
                receipts.roll_up(receipt, combined)
                receipts.purge(done.after.receipts_from)
        if self.limits is not None:
            with self._times.timed("intake"):
                self.limits.set(self.manifest)
        return telemetry, receipt

    def _hold_back(self, done: BatchDone) -> None:
        """The latency of rows counts in the batch whose commit publishes them in all outputs."""
        self._held_back += done.available
        done.available = self._held_back
        if self.publisher.holds_back:
            done.available = [Availability(one.basis, 0) for one in self._held_back]
        else:
            self._held_back = []

    def _telemetry(self, done: BatchDone, started: float) -> Telemetry:
        """What is known of a batch before anything is learnt from it."""
        telemetry = telemetry_of(
            done.batch, done.after, done.settled, done.matched, self._streams, done.seen, done.late
        )
        telemetry["started"] = started
        telemetry["cold"] = self._is_cold
        telemetry["budget_seconds"] = self.settings.budget_seconds
        telemetry["output_rows"] = self._output_rows(done.all_reports)
        telemetry["timings"] = dict(self._times.seconds)
        telemetry["duration_seconds"] = self._clock() - started
        return telemetry

    def latency(self, done: BatchDone, published: float) -> LatencyProgress:
        """The latency of the rows of a batch that was published at this time.

        The goal loop and receipts come before the manifest, so they get the latency until the sinks ended
        (`done.latency`). After the commit it is complete, and people see that.
        """
        return latency_of(done.available, int(published * 1e6), self.settings.latency_seconds)

    @property
    def _is_cold(self) -> bool:
        return self._batches_run < COLD_BATCHES

    def _measure_outside(self, duration: float) -> None:
        """Measure the time that Spark needs around a batch; it is known one batch later."""
        sheds = self.settings.goal is not None
        last = self.query.lastProgress() if self.query is not None and sheds else None
        if last is not None and last.batchId() == self.manifest.spark_batch.number - 1:
            whole = last.durationMs().get("triggerExecution") / 1000
            self._outside_seconds = max(0.0, whole - self._last_duration)
        self._last_duration = duration
        self._batches_run += 1

    def _run_pass(self, rows: StreamRows | None, plan: Plan, before: Manifest, passes: list[Pass]) -> Reports:
        with self._times.timed("build"):
            again = plan.repair.repair_all or plan.settles
            passing = self.controllers.dropping.passing(plan)
            direct = None if rows is None or again else self._staging.direct
            works = self._work_orders.of(plan, before, passing, self.controllers.watching, direct)
            if direct is not None and any(
                one.counts_rows(works[one.name]) for one in self.compiled.operators
            ):
                direct = None
                works = self._work_orders.of(plan, before, passing, self.controllers.watching)
            pipes = self._work_orders.pipes(plan, works, direct)
            one = build_pass(
                self.compiled,
                rows,
                self._session,
                works,
                again,
                self._frame_cache,
                pipes,
                plan.shuffles.one_task,
            )
            if rows is not None and not again and self.compiled.direct_tap is not None:
                direct = self.compiled.direct_tap.stream
            if direct is not None and direct not in one.at_rest:
                gaps = passing.before(direct, self.compiled.outputs[0])
                one.write = partial(self._sinks.write_directly, one, plan, gaps)
        passes.append(one)
        alone = "count rows" if one.write is None else f"output {self.compiled.outputs[0].name}"
        self.jobs.next(", ".join(one.results) or alone)
        with self._times.timed("run"):
            reports, matched = one.run()
        check_complete(reports, plan)
        return reports, matched

    def _after(
        self, before: Manifest, plan: Plan, reports: list[TaskReport], seen: dict[str, Observed]
    ) -> Manifest:
        """The manifest after a pass; the counts that Spark observed take precedence."""
        observed_us = {name: one.seen_us for name, one in seen.items()}
        newest = newest_seen(reports, self._operators) | observed_us
        return manifest_after(before, plan, reports, newest, self.compiled.clocks, self._operators)

    def _output_rows(self, reports: list[TaskReport | MatchReport]) -> dict[str, int]:
        """Rows per output, if no step behind the operator can change their number."""
        rows = {}
        for output in self.compiled.outputs:
            operator = self.compiled.shown_by(output)
            if operator is not None and operator.reports and emits_every_row(self.compiled, output.node):
                rows[output.name] = emitted(operator.name, reports)
        return rows

    def _step(self, name: str, batch: int) -> None:
        self.on_step(name, batch)

    def _now_us(self) -> int:
        return int(self._clock() * 1_000_000)


def _load(telemetry: Telemetry) -> Metrics:
    """What the receipt says of the work: it is added up by minute and hour, and telemetry is not."""
    return {name: telemetry[name] for name in ("duration_seconds", "state_rows", "state_bytes")}
