"""The engine: one micro-batch, one pass, one barrier. The steps of a batch are numbered here and in the code.

    1  the batch is done already (its manifest stands): return
    2  the plan: read it (a replay) or decide and write it, before anything runs
    3  data frames for all operators, under the plan
    4  one action: kernels run, state files are written, output is materialised, reports come back
    5  more passes, where the plan asks for them: rows that the moved watermark sets free, work that is owed
    6  sinks read the materialised output
    7  telemetry, the receipt, then the manifest: from here on the batch is done

A crash before 7 leaves manifest b-1: the batch runs again under the same plan and gives the same rows. A
crash after 7 leaves manifest b: Spark asks once more, and step 1 says no.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

from pyspark.sql import DataFrame

from tidegate.control import adding_up, balancing, completeness, goal_keeping, overload, planning, repair
from tidegate.control.balance_told import balance_told
from tidegate.control.balancing import BalanceSettings
from tidegate.control.debts_told import debts_told
from tidegate.control.goal_keeping import KeepSettings, Ran
from tidegate.control.outcome import manifest_after, newest_seen
from tidegate.control.overload import OverloadSettings
from tidegate.control.receipts import Told, receipt_of
from tidegate.control.repair import RepairSettings
from tidegate.control.sift_told import sift_told
from tidegate.control.sifting import SiftSettings
from tidegate.control.window_dropping import DropSettings
from tidegate.errors import BatchFailed, explain
from tidegate.flow import Join, Match, Node, Source
from tidegate.goals import WHEN_IDLE
from tidegate.route.load import Load
from tidegate.sifting import MatchReport
from tidegate.spark import linked, observed, sinks
from tidegate.spark.building import build_pass
from tidegate.spark.compiled import Compiled, CompiledJoin, CompiledWindow
from tidegate.spark.dropping import Dropping
from tidegate.spark.matching import Matching
from tidegate.spark.observed import Observed
from tidegate.spark.passes import Pass, Reports
from tidegate.spark.ports import boxes_of
from tidegate.spark.progress import Progress, progress_of, shed_of
from tidegate.spark.residual import condition
from tidegate.spark.staging import can_stage
from tidegate.spark.tasks import Tasks
from tidegate.spark.ways import counted, emits_every_row, ways_of
from tidegate.spark.window_network import feeding
from tidegate.state.checkpoint import Checkpoint, check_flow
from tidegate.state.local import LocalStore
from tidegate.state.next_batch import is_done
from tidegate.values import Manifest, Plan, Skipping, TaskReport
from tidegate.window.lifetime import Lifetime, RowsLifetime
from tidegate.window.spec import RowsSpec
from tidegate.windowed import Window

BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
#: Session settings of the engine's own queries. They are set on the clone of the session that Spark makes
#: for a streaming query, so the user's session keeps its own.
CONF = {
    # Adaptive execution would rearrange the partitions that the routing table has assigned.
    "spark.sql.adaptive.enabled": "false",
    # Arrow batches are bounded by rows. Bounded by bytes as well, Spark would measure a batch anew with every
    # row that it adds, which takes longer than all the rest of the crossing; this number says "do not". So
    # that rows of many kilobytes still fit, there are not too many in a batch; tasks put batches together.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16384",
    BATCH_BYTES: str(2**31 - 1),
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
    #: The goal, and what may be left out to keep it; None: nothing, ever.
    goal: KeepSettings | None = None
    #: How what joins left out is made up for; None: it is not.
    repair: RepairSettings | None = None

    @property
    def overload(self) -> OverloadSettings | None:
        """What joins may leave out."""
        return None if self.goal is None else self.goal.overload

    @property
    def sifting(self) -> SiftSettings | None:
        """Which matches may drop rows."""
        return None if self.goal is None else self.goal.sifting

    @property
    def dropping(self) -> DropSettings | None:
        """Which windows may be dropped."""
        return None if self.goal is None else self.goal.dropping


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
        stateful: list[CompiledJoin | CompiledWindow] = [*compiled.joins, *compiled.windows]
        self._layouts = {operator.layout.operator: operator.layout for operator in stateful}
        self._operators = {
            **{join.layout.operator: _operator(compiled, join) for join in compiled.joins},
            **{window.layout.operator: _window(compiled, window) for window in compiled.windows},
        }
        self._ways = ways_of(compiled, self._operators, settings.dropping)
        self.manifest = self._recover()
        #: The Java streaming query; None in a batch run.
        self.query: Any = None
        self._timings: dict[str, float] = {}
        self._awake_us = self._now_us()
        stage_root = _stage_root(compiled, checkpoint)
        codec = linked.codec_of(compiled.spark) if stage_root is not None else None
        carries_more = any(join.layout.cells for join in compiled.joins)
        self._linked = linked.linked_outputs(compiled) if codec and not carries_more else {}
        kept_as = codec if self._linked else None
        self._matching = Matching(compiled, settings.sifting)
        self._dropping = Dropping(settings.dropping)
        #: Windows that may take rows as they are.
        self._plain_windows = [window.layout.operator for window in compiled.windows if window.plain]
        #: Windows whose partials are as large as rows.
        self._row_windows = [w.layout.operator for w in compiled.windows if w.taken.keeps_rows]
        self._tasks = Tasks(compiled, checkpoint.store.url, stage_root, kept_as)
        #: Time that Spark needs around a batch, and how long the last batch took within.
        self._outside_seconds, self._last_duration = 0.0, 0.0
        self._batches_run = 0
        #: How many instances the next batch is to have, and what the last one did.
        self.instances = settings.instances
        #: The query is about to stop: the next batch pays all that is owed.
        self.closing = False
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
            reports, matched = self._run_pass(frame, plan, self.manifest, passes)
            raw = observed.read(self.compiled.observations, self.query)
            entered = self._matching.entered(raw, self.query, self.manifest)
            seen = self._matching.judged(raw, plan, matched)
            late = passes[0].late(plan.watermarks_us) | self._matching.late(matched)
            self._step("materialised", batch)
            worth = self._worth(passes[0])
            after = self._after(self.manifest, plan, reports, seen)
            # 5. What the moved watermark sets free.
            settled = list(reports)
            for _ in self._operators if plan.settle_after else ():
                again = planning.settle_plan(plan, after, self._operators)
                if again is None:
                    break
                more, matched_later = self._run_pass(None, again, after, passes)
                settled += more
                matched += matched_later
                after = self._after(after, again, more, {})
            #    And what is owed, where no other batch may come to pay it.
            if plan.pay_all and after.debts:
                paying = planning.paying_plan(plan, after, repair.everything(after.debts))
                with self._timed("repair"):
                    more, matched_later = self._run_pass(None, paying, after, passes)
                settled += more
                matched += matched_later
                after = self._after(after, paying, more, {})
            # 6. Sinks.
            with self._timed("sinks"):
                self._write_outputs(passes, plan, [*settled, *matched], batch)
            self._step("sunk", batch)
            # 7. Telemetry, receipt and manifest.
            with self._timed("commit"):
                progress = progress_of(batch, after, settled, matched, self._layouts, seen, late)
                progress["shed"] = shed_of(plan, settled)
                progress["balance"] = balance_told(self.manifest, plan, reports)
                repairs = plan.repair_bytes is not None or after.forgiven
                progress["debts"] = debts_told(plan, after, settled, self._operators) if repairs else {}
                progress["started"] = started
                progress["settled"] = self._is_settled(plan, after)
                progress["output_rows"] = self._output_rows([*settled, *matched])
                progress["timings"] = dict(self._timings)
                progress["duration_seconds"] = self._clock() - started
                busy_seconds = self._ordinary_seconds(started, plan, settled)
                ran = Ran(settled, matched, entered.rows, busy_seconds, self._is_cold, worth)
                after = self._learnt(plan, ran, after)
                windows = self._plain_windows
                learnt = self._matching.remembered(entered)
                learnt[adding_up.CONTROL] = adding_up.learn(self.manifest, plan, reports, windows)
                after = replace(after, control={**after.control, **learnt})
                progress["goal"] = after.control.get(goal_keeping.CONTROL, {}).get("told")
                progress["sift"] = sift_told(plan, matched, entered.rows, after)
                progress["windows"] = self._dropping.told(plan, self.manifest, after)
                missing = self._dropping.missing(plan, self.manifest, after)
                told = Told(
                    plan, self.manifest, after, settled, matched, counted(raw, entered, late), missing
                )
                receipt, gaps_us = receipt_of(self._ways, told)
                after = replace(after, control={**after.control, completeness.CONTROL: gaps_us})
                self.checkpoint.telemetry.write(batch, progress)
                self.checkpoint.receipts.write(receipt)
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

    def close(self) -> None:
        """Give back what workers were sent for the life of the query; no batch may follow."""
        self._tasks.close()

    def _worth(self, one: Pass) -> overload.Worth:
        """What the pairs of a pass are worth, where the user says so."""
        settings = self.settings.overload
        if settings is None or settings.shed.utility is None:
            return {}
        with self._timed("utility"):
            return one.worth(condition(settings.shed.utility))

    def _learnt(self, plan: Plan, ran: Ran, after: Manifest) -> Manifest:
        """The manifest with what the controllers made of the batch."""
        after = replace(after, control=self._balanced(plan, ran.reports, after))
        if self.settings.goal is None:
            return after
        with self._timed("goal"):
            learnt = goal_keeping.learn(self.settings.goal, self.manifest, plan, ran, after, self._operators)
        if self.settings.repair is not None:
            learnt[repair.CONTROL] = repair.learn(
                self.settings.repair, self.manifest, plan, ran.reports, ran.busy_seconds, ran.cold
            )
        return replace(after, control={**after.control, **learnt})

    def _ordinary_seconds(self, started: float, plan: Plan, reports: list[TaskReport]) -> float:
        """How long the batch has taken, less what it made up for."""
        seconds = self._clock() - started + self._outside_seconds
        if self.settings.repair is None:
            return seconds
        if plan.pay_all:
            return seconds - self._timings.get("repair", 0.0)
        return seconds - repair.paid_seconds(reports, self.settings.repair.parallelism)

    @property
    def _is_cold(self) -> bool:
        return self._batches_run < COLD_BATCHES

    def _is_settled(self, plan: Plan, after: Manifest) -> bool:
        """False: the next batch, even one without rows, will set waiting rows free, or pay what is owed."""
        repairs = self.settings.repair is not None and self.settings.repair.when == WHEN_IDLE
        if repairs and after.debts:
            return False
        return planning.settle_plan(plan, after, self._operators) is None

    def _balanced(self, plan: Plan, reports: Sequence[TaskReport], after: Manifest) -> dict[str, Any]:
        """Where rows should lie from the next batch on."""
        settings = self.settings.balance
        self._loads = balancing.measured(settings, reports, after)
        count, asked = balancing.scaled(settings, self._loads, self.manifest.control.get(balancing.SCALE, {}))
        if count is not None:
            self.instances = count
        # What was not watched says too little to decide by; what is uneven is watched from now on.
        with self._timed("balance"):
            learnt = balancing.learn(settings, plan, self._loads, after) if self._watching else plan.balance
        self._watching = balancing.watches_keys(settings, after, self._loads)
        return {balancing.CONTROL: learnt, balancing.SCALE: asked}

    def _measure_outside(self, duration: float) -> None:
        """Time that Spark needs around a batch: it is known one batch late, and changes little."""
        sheds = self.settings.goal is not None
        last = self.query.lastProgress() if self.query is not None and sheds else None
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
        with self._timed("reroute"):
            routing, cuts, wanted = balancing.reroute(balance, self.manifest, self.instances, loads)
        skipping = {} if settings is None else overload.decide(settings, self.manifest, self._operators)
        settle_after = self.settings.settle_after and not flush
        plan = planning.next_plan(
            batch,
            self.manifest,
            self._operators,
            self._now_us(),
            skipping=skipping,
            awake_us=self._awake_us,
            flush=flush,
            settle_after=settle_after,
            seed=self.settings.seed,
            sifters=self._matching.sifters(self.manifest),
            by_row=adding_up.by_row(self.manifest, self._plain_windows, self._row_windows),
            dropping=self._dropping.decide(self.manifest),
            routing=routing,
            cuts=cuts,
            balance=wanted,
            **self._repairing(skipping, settle_after),
        )
        self._step("planning", batch)
        self.checkpoint.plans.write(plan)
        self._matching.publish(plan)
        return plan

    def _repairing(self, skipping: Mapping[str, Skipping], last: bool) -> dict[str, Any]:
        """What the plan says about owed work; `last`: there may be no other batch to do it."""
        settings = self.settings.repair
        if settings is None:
            return {}
        pay_all = last or self.closing
        waits = pay_all or self._is_cold
        payments = {} if waits else repair.choose(settings, self.manifest, skipping)
        return {"repair_bytes": settings.bytes_max, "payments": payments, "pay_all": pay_all}

    def _run_pass(self, frame: DataFrame | None, plan: Plan, before: Manifest, passes: list[Pass]) -> Reports:
        with self._timed("build"):
            lonely = any(any(operator.lonely) for operator in self._operators.values())
            again = plan.pay_all or (plan.settle_after and lonely)
            works = self._tasks.works(plan, before, self._dropping.passing(plan), self._watching)
            one = build_pass(self.compiled, frame, works, again)
        passes.append(one)
        with self._timed("run"):
            reports, matched = one.run()
        _check_complete(reports, plan)
        return reports, matched

    def _after(
        self, before: Manifest, plan: Plan, reports: list[TaskReport], seen: dict[str, Observed]
    ) -> Manifest:
        """The manifest that a pass leaves behind; what Spark observed has the last word."""
        observed_us = {name: one.seen_us for name, one in seen.items()}
        newest = newest_seen(reports, self._operators) | observed_us
        return manifest_after(before, plan, reports, newest, self.compiled.clocks, self._operators)

    def _write_outputs(
        self, passes: list[Pass], plan: Plan, reports: list[TaskReport | MatchReport], batch: int
    ) -> None:
        staged = [file for one in passes for file in one.staged]
        passing = self._dropping.passing(plan)
        for output in self.compiled.outputs:
            if sinks.may_skip(output, batch) and self._is_empty(output.node, reports):
                continue
            self._step(f"sink {output.name}", batch)
            gaps = passing.before(feeding(self.compiled, output.node), output)
            folder = self._linked.get(output.name) if gaps is None else None
            if staged and folder is not None and linked.publish(staged, folder, batch):
                continue
            frames = [
                f for one in passes if (f := one.rows(output.node, plan.watermarks_us, gaps)) is not None
            ]
            rows = frames[0]
            for more in frames[1:]:
                rows = rows.unionAll(more)
            sinks.write(output, rows, batch)

    def _output_rows(self, reports: list[TaskReport | MatchReport]) -> dict[str, int]:
        """Rows per output, where nothing behind the operator can have changed their number."""
        rows = {}
        for output in self.compiled.outputs:
            base, _ = boxes_of(output.node)
            if isinstance(base, (Join, Match, Window)) and emits_every_row(output.node):
                name = self.compiled.operator_of(base).layout.operator
                rows[output.name] = sum(r.emitted for r in reports if r.operator == name)
        return rows

    def _is_empty(self, node: Node, reports: list[TaskReport | MatchReport]) -> bool:
        base, _ = boxes_of(node)
        if not isinstance(base, (Join, Match, Window)):
            return False
        name = self.compiled.operator_of(base).layout.operator
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
    if not compiled.streaming or len(compiled.operators) != 1 or not isinstance(checkpoint.store, LocalStore):
        return None
    only = compiled.operators[0]
    judged = isinstance(only, CompiledJoin) and only.candidates is not None
    return checkpoint.store.root if not judged and can_stage(only.schema) else None


def _operator(compiled: Compiled, join: CompiledJoin) -> planning.Operator:
    names = [_feeding(compiled, side.node) for side in join.inputs]
    layout = join.layout
    return planning.Operator(
        layout.operator, (names[0], names[1]), layout.within, layout.tracked, layout.preserved
    )


def _window(compiled: Compiled, window: CompiledWindow) -> planning.Operator:
    # Windows wait in the state, and time sets them free, as it does lonely rows. There is no other side.
    name = _feeding(compiled, window.node.parent)
    spec = window.layout.spec
    lifetime = RowsLifetime() if isinstance(spec, RowsSpec) else Lifetime(spec)
    return planning.Operator(window.layout.operator, (name, name), lifetime, (True, False), (True, False))


def _feeding(compiled: Compiled, node: Node) -> str:
    """The stream or operator that gives a node its time; a match passes rows on in the batch they came in."""
    base, _ = boxes_of(node)
    while isinstance(base, Match):
        base, _ = boxes_of(base.parent)
    if isinstance(base, Source):
        return base.name
    return compiled.operator_of(cast(Join | Window, base)).layout.operator


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
