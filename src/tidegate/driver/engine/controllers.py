"""The controllers of a running query, called twice per batch: to plan it and to learn from it.

    manifest b-1 ─▶ plan ─▶ [ batch b runs ] ─▶ learn ─▶ manifest b, telemetry, receipt

Every decision is made in `control/` from the manifest alone. This module passes each controller its inputs
and combines the results into one plan, one manifest, one telemetry record and one receipt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tidegate.api.goal import IDLE
from tidegate.control import batch_size, observing, planning, small_batches
from tidegate.control.actuators import join_shedding, partial_aggregation, stale_rows, window_dropping
from tidegate.control.balance import balancing
from tidegate.control.balance.skew_scan import loads_ahead
from tidegate.control.goal import goal_loop
from tidegate.control.goal.goal_step import Ran
from tidegate.control.levels import CONTROL
from tidegate.control.receipts import completeness, warnings
from tidegate.control.receipts.receipts import BatchOutcome, receipt_of
from tidegate.control.receipts.warnings import BatchWarning, receipt_warnings
from tidegate.control.receipts.would_shed import WouldBe, add_would_shed
from tidegate.control.repair import repair
from tidegate.driver.compile.compiled import Compiled
from tidegate.driver.compile.lineage import lineage_of
from tidegate.driver.engine.batch import BatchDone, Timings
from tidegate.driver.engine.match_counts import Matching, counted
from tidegate.driver.engine.settings import Settings
from tidegate.driver.frames.drop_frames import Dropping, plain_name
from tidegate.driver.frames.sample_frames import Estimating
from tidegate.model.codec import to_plain
from tidegate.model.graph import OperatorTraits
from tidegate.model.json_values import Metrics
from tidegate.model.manifest import Manifest, SparkBatch
from tidegate.model.plan import Plan, PlanDecisions, RepairPlan, ShedPlan, Shuffles
from tidegate.model.progress import OperatorProgress
from tidegate.model.skip_plan import Skipping
from tidegate.observe.balance_metrics import balance_metrics
from tidegate.observe.operator_metrics import OperatorFacts, operator_metrics
from tidegate.observe.shed_metrics import debt_metrics, sift_metrics
from tidegate.observe.telemetry import Telemetry, shed_of
from tidegate.route.key_counts import SideSeen
from tidegate.route.load import Load

#: By join without state: the key counts of both sides of its next batch.
SeenKeys = Mapping[str, tuple[SideSeen, SideSeen]]


@dataclass(frozen=True)
class Moment:
    """When a batch is planned: by the clock, and relative to the start of the run."""

    now_us: int
    #: When this run began to read rows.
    awake_us: int
    #: No batch follows: all waiting rows are emitted.
    flush: bool
    #: The workers are cold, so durations are not representative.
    cold: bool
    #: The batch of Spark that brings the rows; None: no rows come, and no batch may follow.
    spark_batch: SparkBatch | None
    #: How much the sources give; None: they do not say.
    input_bytes: int | None = None


class Controllers:
    """The controllers of one query, for the life of a run."""

    def __init__(self, compiled: Compiled, settings: Settings, operators: Mapping[str, OperatorTraits]):
        self._operators = dict(operators)
        self.settings: Settings
        self.matching: Matching = Matching(compiled)
        self.dropping: Dropping
        self.estimating: Estimating
        self.adopt(settings)
        self._lineage = lineage_of(compiled, self._operators)
        #: Windows that may skip partial aggregation, and those whose partials are as large as rows.
        self._plain_windows = [window.name for window in compiled.windows if window.plain]
        self._row_windows = [w.name for w in compiled.windows if w.taken.keeps_rows]
        #: The number of instances of the next batch, and the loads of the last one.
        self.instances: int = settings.instances
        self._loads: dict[str, tuple[Load, ...]] | None = None
        #: Whether tasks report the load of keys.
        self.watching: bool = settings.balance.moves
        #: By join: the largest time difference of a pair.
        self._withins = {join.name: join.layout.within for join in compiled.joins}
        #: By operator: what kind it is, for people.
        self._kinds = {one.name: one.node.label for one in compiled.operators if one.reports}
        #: The query is about to stop: the next batch repairs all debts.
        self.closing = False

    def adopt(self, settings: Settings) -> None:
        """Go by these settings from the next plan on."""
        self.settings = settings
        self.matching.settings = settings.sifting
        self.dropping = Dropping(settings.dropping)
        self.estimating = Estimating(settings.estimating)

    def plan(
        self,
        batch: int,
        manifest: Manifest,
        moment: Moment,
        times: Timings,
        seen: SeenKeys,
    ) -> Plan:
        """The plan of the batch after this manifest; `seen`: its key counts, for joins without state."""
        balance = self.settings.balance
        ahead = {
            name: loads_ahead(sides, self._withins[name], balance.groups(name))
            for name, sides in seen.items()
        }
        manifest = balancing.begun(balance, manifest, ahead)
        loads = self._loads or balancing.measured(balance, (), manifest)
        with times.timed("reroute"):
            routing, cuts, wanted = balancing.reroute(balance, manifest, self.instances, loads)
        with times.timed("goal"):
            shed = self._shedding(manifest, moment)
        decided = PlanDecisions(
            awake_us=moment.awake_us,
            flush=moment.flush,
            seed=self.settings.seed,
            spark_batch=moment.spark_batch,
            routing=routing,
            cuts=cuts,
            balance=wanted,
            shuffles=Shuffles(
                partial_aggregation.by_row(manifest, self._plain_windows, self._row_windows),
                small_batches.in_one_task(manifest, routing, moment.input_bytes),
            ),
            shed=shed,
            # Under a goal that only observes, repair waits as it would if joins shed.
            repair=self._repairing(
                manifest, (shed.would or shed).skipping, moment.spark_batch is None, moment.cold
            ),
        )
        return planning.next_plan(batch, manifest, self._operators, moment.now_us, decided)

    def _shedding(self, manifest: Manifest, moment: Moment) -> ShedPlan:
        """What the goal leaves out of the next batch, or would leave out if it did not only observe."""
        keeping = self._observes
        wanted = ShedPlan(
            self._skipping(manifest, moment),
            self.matching.sifters(manifest),
            self.dropping.decide(observing.as_if_dropped(manifest) if keeping else manifest),
            self.estimating.decide(manifest, self._operators),
        )
        if not keeping:
            return wanted
        return ShedPlan(
            observing.skips_nothing(wanted.skipping, manifest),
            observing.opened(wanted.sifters),
            self.dropping.decide(manifest, keeping),
            self.estimating.decide(manifest, self._operators, keeping),
            wanted,
        )

    def _skipping(self, manifest: Manifest, moment: Moment) -> dict[str, Skipping]:
        """What joins skip; no row is stale while the workers are cold."""
        goal = self.settings.goal
        if goal is None or goal.overload is None:
            return {}
        skipping = join_shedding.decide(goal.overload, manifest, self._operators)
        fresh_us = {} if moment.cold else stale_rows.decide(manifest, moment.now_us)
        return stale_rows.applied(skipping, fresh_us, self._operators, goal.freshest)

    def _repairing(
        self, manifest: Manifest, skipping: Mapping[str, Skipping], last: bool, cold: bool
    ) -> RepairPlan:
        """The plan of repair; `last`: there may be no later batch to repair debts."""
        settings = self.settings.repair
        if settings is None:
            return RepairPlan()
        repair_all = last or self.closing
        repairs = {} if repair_all or cold else repair.choose(settings, manifest, skipping)
        return RepairPlan(settings.bytes_max, repairs, repair_all)

    def learn(self, done: BatchDone, busy_seconds: float, cold: bool, times: Timings) -> None:
        """Put what all controllers learn from a batch into its manifest; `busy_seconds` excludes repair."""
        ran = Ran(
            done.settled,
            done.matched,
            done.entered.rows,
            busy_seconds,
            cold,
            done.worth,
            done.taken,
            done.latency,
            done.entered.sources.regions,
        )
        done.after = replace(done.after, control=self._balanced(done, times))
        if self.settings.goal is not None:
            self._remember(done, self._kept(done, ran, times))
        plain = self._plain_windows
        ran_seconds = None if done.rows is None else times.seconds.get("run")
        small = small_batches.learn(done.before, ran_seconds)
        self._remember(done, {} if small is None else {small_batches.CONTROL: small})
        self._remember(
            done,
            {
                **self.matching.remembered(done.entered),
                **window_dropping.remembered(self.settings.dropping, done.plan),
                **observing.remembered(done.plan),
                **self.estimating.learn(done.before, done.plan, done.settled, done.after),
                partial_aggregation.CONTROL: partial_aggregation.learn(
                    done.before, done.plan, done.reports, plain
                ),
            },
        )

    def size(self, done: BatchDone, taken: float) -> None:
        """Decide how much the next batch takes; `taken`: the part of its limits that this one took."""
        tasks = [report.memory for report in done.reports]
        self._remember(done, {batch_size.CONTROL: batch_size.learn(done.before.control, taken, tasks)})

    def _kept(self, done: BatchDone, ran: Ran, times: Timings) -> Metrics:
        """What is learnt for the goal and for repair."""
        goal, repairs = self.settings.goal, self.settings.repair
        assert goal is not None
        with times.timed("goal"):
            learnt = goal_loop.learn(goal, done.before, done.plan, ran, done.after, self._operators)
            if repairs is not None:
                learnt[repair.CONTROL] = repair.learn(
                    repairs, done.before, done.plan, ran.reports, ran.busy_seconds, ran.cold
                )
        return learnt

    def _balanced(self, done: BatchDone, times: Timings) -> Metrics:
        """The balance from the next batch on."""
        settings = self.settings.balance
        self._loads = balancing.measured(settings, done.settled, done.after)
        count, asked = balancing.scaled(settings, self._loads, done.before.control.get(balancing.SCALE, {}))
        if count is not None:
            self.instances = count
        # Decisions need key loads, which tasks report only while watching; imbalance turns watching on.
        learnt: Any = done.plan.balance
        if self.watching:
            with times.timed("balance"):
                learnt = balancing.learn(settings, done.plan, self._loads, done.after)
        self.watching = balancing.watches_keys(settings, done.after, self._loads)
        return {balancing.CONTROL: learnt, balancing.SCALE: asked}

    def report(self, done: BatchDone, telemetry: Telemetry) -> Metrics:
        """Add the metrics of the controllers to the telemetry of a batch; the receipt of the batch."""
        plan, after = done.plan, done.after
        telemetry["shed"] = shed_of(plan, done.settled)
        telemetry["balance"] = balance_metrics(done.before, plan, done.reports)
        repairs = plan.repair.bytes_max is not None or after.written_off
        telemetry["debts"] = debt_metrics(plan, after, done.settled, self._operators) if repairs else {}
        telemetry["settled"] = self.is_settled(after)
        telemetry["expected"] = _expected(done.before)
        telemetry["goal"] = after.control.get(CONTROL, {}).get("told")
        telemetry["sift"] = sift_metrics(plan, done.matched, done.entered.rows, after)
        telemetry["windows"] = self.dropping.metrics(plan, done.before, after)
        telemetry["estimates"] = self.estimating.metrics(plan, done.settled, done.before, after)
        telemetry["backlog_rows"] = goal_loop.backlog_rows(after, done.taken)
        telemetry["operator_metrics"] = to_plain(self._operator_metrics(done, telemetry))
        receipt = self._receipt(done, telemetry)
        telemetry["warnings"] = self._warnings(done, receipt)
        return receipt

    def _operator_metrics(self, done: BatchDone, telemetry: Telemetry) -> dict[str, OperatorProgress]:
        drops = self.dropping.ratios(done.plan)
        facts = OperatorFacts(
            telemetry["shed"], telemetry["balance"], telemetry["sift"], telemetry["estimates"], drops
        )
        return operator_metrics(self._kinds, self._lineage, done.after, done.settled, done.matched, facts)

    def _warnings(self, done: BatchDone, receipt: Metrics) -> list[Metrics]:
        """All warnings after a batch; since when each holds goes into the manifest."""
        goal = (done.after.control.get(CONTROL, {}).get("told") or {}).get("warnings", ())
        found = [BatchWarning(one["code"], one["message"]) for one in goal]
        found += [*receipt_warnings(receipt)]
        known = done.before.control.get(warnings.CONTROL, {})
        said, since = warnings.with_since(known, found, done.batch)
        self._remember(done, {warnings.CONTROL: since})
        return [to_plain(one) for one in said]

    def _receipt(self, done: BatchDone, telemetry: Telemetry) -> Metrics:
        """The receipt of a batch; its state for the next one goes into the manifest. What a goal that only
        observes would have shed goes into both."""
        missing = self.dropping.missing(done.plan, done.before, done.after)
        estimated = self.estimating.estimated(done.plan, done.before, done.after)
        rows = counted(done.entered, done.late)
        outcome = BatchOutcome(
            done.plan,
            done.before,
            done.after,
            done.settled,
            done.matched,
            rows,
            missing,
            estimated,
            self.dropping.closed(done.plan, done.before, done.after),
            done.latency,
            tuple(self.dropping.warnings(done.after, self._observes)),
            self.dropping.missing_count(done.plan, done.before, done.after),
        )
        receipt, gaps_us = receipt_of(self._lineage, outcome)
        self._remember(done, {completeness.CONTROL: gaps_us})
        would = add_would_shed(receipt, self._lineage, outcome, self._would_be(done))
        telemetry["would_shed"] = None if would is None else to_plain(would)
        return receipt

    def _would_be(self, done: BatchDone) -> WouldBe:
        """What is known of the plan that would have run."""
        plan = observing.as_if(done.plan)
        expected = (done.before.control.get(goal_loop.CONTROL, {}).get("told") or {}).get("lost", {})
        return WouldBe(
            self.dropping.missing_count(plan, done.before, done.after),
            self.dropping.ratios(plan),
            {plain_name(name): lost for name, lost in expected.items()},
        )

    @property
    def _observes(self) -> bool:
        return self.settings.goal is not None and self.settings.goal.observes

    def ordinary_seconds(self, done: BatchDone, seconds: float, repair_seconds: float) -> float:
        """The duration of a batch without repair; `repair_seconds`: of repair in a pass of its own."""
        if self.settings.repair is None:
            return seconds
        if done.plan.repair.repair_all:
            return seconds - repair_seconds
        return seconds - repair.repair_seconds(done.settled, self.settings.repair.parallelism)

    def is_due(self, manifest: Manifest) -> bool:
        """Whether a commit without rows would emit waiting rows or repair debts."""
        repairs = self.settings.repair is not None and bool(manifest.debts)
        return repairs or planning.releases(manifest, self._operators)

    def is_settled(self, after: Manifest) -> bool:
        """False if a next batch without rows would still emit waiting rows or repair debts."""
        repairs = self.settings.repair is not None and self.settings.repair.when == IDLE
        return not (repairs and after.debts) and not planning.releases(after, self._operators)

    @staticmethod
    def _remember(done: BatchDone, learnt: Mapping[str, Any]) -> None:
        done.after = replace(done.after, control={**done.after.control, **learnt})


def _expected(before: Manifest) -> Metrics | None:
    """The seconds that the goal loop expected of the batch after this manifest: in full, and without rows."""
    known = before.control.get(goal_loop.CONTROL, {}).get("told")
    return known and {name: known[name] for name in ("full", "fixed")}
