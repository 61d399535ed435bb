"""The goal loop: after each batch, one decision on what joins, matches and windows shed in the next.

    reports of b ─┐                              ┌─▶ join_shedding     probe ratio of each join
    time of b     ├─▶ level_controller ─▶ levels ┼─▶ sifting           admit ratio of each match
    manifest b ───┘                              ├─▶ sampling          sample ratio of each approximate window
                                                 ├─▶ window_dropping   drop ratio; outputs that are shut off
                                                 └─▶ stale_rows        rows too old, if nothing else suffices

Levels follow the duration of batches, which the loop can change. Whether rows were overdue is judged by their
measured latency (`control/latency.py`), where it is known when they became available: a batch in time whose
rows had waited is warned of, too. Old files are overdue whatever is shed, so no level follows from it.

What a batch did and what the next one offers is in `goal_prospects.py`; how many rows that one takes, in
`backpressure.py`. Processor time is believed for joins alone: most of what windows and matches cost is
Spark's work in front of their tasks, so their time is what is left.

Guarantee: pure; what was learnt is in the manifest (`CONTROL`), what was decided in the levels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tidegate.control.actuators import join_shedding, sifting, stale_rows, window_dropping
from tidegate.control.actuators.policy import Work
from tidegate.control.actuators.state_limit import piece_bytes
from tidegate.control.goal.backpressure import Backpressure, Fits, TakenRows
from tidegate.control.goal.cost_model import Effort
from tidegate.control.goal.forecast import Arrivals, Expected
from tidegate.control.goal.goal_step import KeepSettings, Ran, Step
from tidegate.control.goal.goal_values import BatchSeen, Decided, GoalSettings, state_warnings, warnings
from tidegate.control.goal.level_controller import LevelController
from tidegate.control.goal.load_model import SOURCES, Took, uneven_seconds, wall_seconds
from tidegate.control.goal.work_forecast import WorkForecast, efforts_of
from tidegate.control.latency import overdue_warnings
from tidegate.model.graph import OperatorTraits
from tidegate.model.json_values import Snapshot
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.reports import TaskReport
from tidegate.window.drop.network import DropJoinNode

#: Key in the manifest's control state.
CONTROL = "goal"
#: And below it: units that sources may give to the next batch, by stream.
LIMITS = "limits"
#: Largest batch, relative to the largest one remembered: costs of small batches predict large ones poorly.
_RISE_MOST = 4.0
#: Longest batch, relative to the budget, where shorter ones would not keep up.
_LONGEST = 2.0
#: While rows wait, batches have room for this much more than arrives.
_CATCH_UP = 0.2


def learn(
    settings: KeepSettings,
    before: Manifest,
    plan: Plan,
    ran: Ran,
    after: Manifest,
    operators: Mapping[str, OperatorTraits],
) -> Snapshot:
    """What all controllers know after a batch: goes into its manifest."""
    step = Step(settings, before, plan, ran, after, operators)
    known = before.control.get(CONTROL, {})
    goal = LevelController.restore(known["one"], settings.goal) if known else LevelController(settings.goal)
    coming = _coming(step, known)
    forecasts = WorkForecast(step, coming.growth)
    efforts = {**efforts_of(settings, ran), SOURCES: Effort(coming.rows)}
    seen = _seen(step, efforts, coming)
    levels = {} if plan.shed.would is not None else known.get("levels", {})
    decided = goal.adapt(seen, forecasts.ahead(efforts, levels), forecasts.options())
    fits = what_fits(settings.goal, decided, coming, _RISE_MOST * goal.model.most_rows)
    limited = seen.teaches and coming.wanted and not settings.observes
    limits = coming.backpressure.limits(fits) if limited else {}
    if limits:
        goal.expect(decided, min(1.0, coming.backpressure.let_in(limits) / coming.wanted))
    metrics = {"waiting": coming.backpressure.waiting, "wanted": coming.wanted, "limits": limits}
    learnt: Snapshot = {
        CONTROL: {
            "one": goal.snapshot(),
            "arrivals": coming.arrivals.snapshot(),
            "intake": coming.backpressure.snapshot(),
            # Without new limits the last ones stay, also for the next run.
            LIMITS: limits or known.get(LIMITS, {}),
            "levels": dict(decided.levels),
            "told": {**_metrics(settings, decided, ran, after), **metrics},
        }
    }
    if settings.freshest:
        learnt[stale_rows.CONTROL] = stale_rows.learn(
            before, plan, ran.reports, after, operators, settings.freshest, decided.keep_share
        )
    return learnt | _mechanisms(step, decided.levels, forecasts.works, coming)


def limits(manifest: Manifest) -> dict[str, int]:
    """By stream: units that its source may give to the batch after this manifest."""
    return dict(manifest.control.get(CONTROL, {}).get(LIMITS, {}))


def is_at_rest(manifest: Manifest) -> bool:
    """Whether the last batch had no rows, so that another one without rows teaches nothing new."""
    known = manifest.control.get(CONTROL)
    return known is None or Arrivals.restore(known["arrivals"]).is_silent


def backlog_rows(after: Manifest, taken: Mapping[str, TakenRows]) -> dict[str, int]:
    """By stream whose source reports its backlog: rows that wait there after this batch."""
    streams = after.control.get(CONTROL, {}).get("intake", {}).get("streams", {})
    return {
        name: round(streams[name]["waiting"])
        for name, one in taken.items()
        if one.waiting is not None and name in streams
    }


@dataclass(frozen=True, eq=False)
class Coming:
    """Rows of the next batch: state of the sources, rows wanted, and their ratio to the last batch."""

    arrivals: Arrivals
    backpressure: Backpressure
    rows: int
    wanted: float
    growth: float
    expected: Expected
    #: `KeepSettings.paced` of the last batch.
    paced_seconds: float | None = None


def _coming(step: Step, known: Mapping[str, Any]) -> Coming:
    ran, settings = step.ran, step.settings
    arrivals = Arrivals.restore(known["arrivals"]) if known else Arrivals()
    backpressure = Backpressure.restore(known["intake"]) if known else Backpressure()
    # Rows offered, not rows admitted: a batch whose windows are all dropped is not steady load.
    rows = sum(sum(report.rows.offered) for report in ran.reports) + sum(ran.entered.values())
    taken = sum(one.rows for one in ran.taken.values()) or rows
    arrived = backpressure.observe(ran.taken) if ran.taken else rows
    paced = settings.paced(ran.busy_seconds, known["one"]["predicted"] if known else None)
    if rows and not ran.cold:
        backpressure.felt(paced / settings.goal.batch_seconds)
    expected = arrivals.observe(
        arrived, step.plan.now_us, paced, settings.trigger_seconds, backpressure.waiting
    )
    # A source that does not report a backlog reports what it gave, which is not what arrived.
    says = all(one.waiting is not None for one in ran.taken.values() if one.units is not None)
    if not says:
        expected = replace(expected, lasting_rate=0.0)
    wanted = expected.rows if settings.observes else backpressure.wanted(expected.rows)
    growth = wanted / taken if taken else 0.0
    return Coming(arrivals, backpressure, rows, wanted, growth, expected, paced)


def _seen(step: Step, efforts: Mapping[str, Effort], coming: Coming) -> BatchSeen:
    """What the batch did, and how long it took."""
    ran, cores = step.ran, step.settings.parallelism
    joins = _reports_of_joins(step.settings, ran.reports)
    return BatchSeen(
        ran.busy_seconds,
        efforts,
        {name: _took(some, cores) for name, some in joins.items()},
        sum(uneven_seconds([one.seconds.cpu for one in some], cores) for some in joins.values()),
        coming.expected.behind_seconds,
        teaches=bool(coming.rows) and not ran.cold,
        empty=not coming.rows and not ran.cold,
        # A batch that only observed did not run as it was predicted.
        foreseeable=not step.plan.shed.dropping and step.plan.shed.would is None,
        lasting=coming.expected.lasting,
        paced_seconds=coming.paced_seconds,
    )


def _mechanisms(
    step: Step, levels: Mapping[str, float], works: Mapping[str, Work], coming: Coming
) -> Snapshot:
    """What every mechanism makes of its level."""
    settings, before, plan, ran, after = step.settings, step.before, step.plan, step.ran, step.after
    learnt: Snapshot = {}
    busy, cold = ran.busy_seconds, ran.cold
    # Rows that limits of ours keep at their sources.
    waiting = coming.backpressure.held(ran.taken)
    if plan.shed.would is not None:
        # As long as it would have taken for the rows of a batch on time, which leaves none waiting.
        busy, waiting = busy * min(1.0, coming.growth), 0.0
    if settings.overload is not None:
        time = join_shedding.BatchTime(busy, cold)
        learnt |= join_shedding.learn(
            settings.overload,
            before,
            plan,
            ran.reports,
            after,
            step.operators,
            time,
            join_shedding.FromGoal(ran.worth, levels, works, waiting),
        )
    if settings.sifting is not None:
        offered = sifting.Offered(ran.entered, busy, cold, ran.at_sources, waiting)
        learnt[sifting.CONTROL] = sifting.learn(settings.sifting, before, plan, ran.matched, offered, levels)
    if settings.dropping is not None:
        learnt[window_dropping.CONTROL] = window_dropping.learn(
            settings.dropping, before, plan, after, levels
        )
    return learnt


def _reports_of_joins(settings: KeepSettings, reports: Sequence[TaskReport]) -> dict[str, list[TaskReport]]:
    """The reports of the instances of every join."""
    found: dict[str, list[TaskReport]] = {}
    for report in reports:
        if isinstance(settings.network.by_name.get(report.operator), DropJoinNode):
            found.setdefault(report.operator, []).append(report)
    return found


def _took(instances: Sequence[TaskReport], cores: int) -> Took:
    """The time of a join, and the part of it spent on pairs."""
    cpu_seconds = [one.seconds.cpu for one in instances]
    probing = sum(one.seconds.probing for one in instances) / max(sum(cpu_seconds), 1e-9)
    return Took.of(wall_seconds(cpu_seconds, cores), probing)


def what_fits(goal: GoalSettings, decided: Decided, coming: Coming, most: float) -> Fits:
    """Rows that a batch has time for, from the forecast for those that are wanted.

    `most`: the largest batch to try. The safety margin is used up before any row is kept waiting: a waiting
    row is overdue for sure, a row of a slightly long batch only perhaps.
    """
    backpressure, rows, fixed = coming.backpressure, coming.wanted, decided.fixed
    kept_free = decided.safety_margin / 2 if backpressure.waiting else 0.0
    room = (1 - kept_free) * goal.batch_seconds - fixed
    # Where overhead takes nearly all the time, batches are longer, because smaller ones have less throughput.
    room = max(room, fixed / 2, _keeps_up(goal, decided, coming) - fixed)
    full, planned, deepest = (
        backpressure.more * rows * room / max(seconds - fixed, 1e-6)
        for seconds in (decided.full, decided.expected, decided.deepest)
    )
    return Fits(min(most, full), min(most, planned), min(most, deepest), tried=planned > most)


def _keeps_up(goal: GoalSettings, decided: Decided, coming: Coming) -> float:
    """Seconds of the shortest batch that has time for all rows that arrive while it runs, and a few waiting
    ones.

    With shorter batches the backlog would grow. Rows that no batch of acceptable length keeps up with wait.
    """
    each = (decided.expected - decided.fixed) / max(coming.wanted, 1.0)
    rate = (1 + _CATCH_UP * bool(coming.backpressure.waiting)) * coming.expected.lasting_rate
    longest = _LONGEST * goal.batch_seconds
    return min(longest, decided.fixed / (1 - each * rate)) if each * rate < 1 else longest


def _metrics(settings: KeepSettings, decided: Decided, ran: Ran, after: Manifest) -> Snapshot:
    """For telemetry: what is expected, what is lost, and what cannot be kept."""
    said = warnings(settings.goal, decided, settings.observes)
    if not ran.cold:
        said += overdue_warnings(ran.latency, ran.busy_seconds)
    if settings.overload is not None and settings.overload.state_bytes is not None:
        stored = sum(map(piece_bytes, after.pieces))
        said += state_warnings(stored, settings.overload.state_bytes, settings.observes)
    return {**decided.metrics(), "warnings": said}
