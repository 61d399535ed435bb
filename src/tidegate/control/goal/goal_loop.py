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
from sys import float_info

from tidegate.control.actuators import join_shedding, sifting, stale_rows, window_dropping
from tidegate.control.actuators.policy import Work
from tidegate.control.actuators.state_limit import piece_bytes
from tidegate.control.goal.backpressure import Backpressure, Fits, TakenRows
from tidegate.control.goal.control_state import ControlState
from tidegate.control.goal.cost_model import Effort
from tidegate.control.goal.forecast import Expected
from tidegate.control.goal.goal_step import KeepSettings, Ran, Step
from tidegate.control.goal.goal_values import BatchSeen, Decided, GoalSettings, state_warnings, warnings
from tidegate.control.goal.level_controller import LevelController
from tidegate.control.goal.load_model import SOURCES, Took, uneven_seconds, wall_seconds
from tidegate.control.goal.work_forecast import WorkForecast, efforts_of
from tidegate.control.latency import overdue_warnings
from tidegate.control.levels import CONTROL as CONTROL
from tidegate.model.graph import OperatorTraits
from tidegate.model.json_values import Snapshot
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.reports import TaskReport
from tidegate.window.drop.network import DropJoinNode


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
    state = ControlState.of(before)
    goal = LevelController(settings.goal, state)
    coming = _coming(step, state)
    forecasts = WorkForecast(step, coming.growth)
    efforts = {**efforts_of(settings, ran), SOURCES: Effort(coming.rows)}
    seen = _seen(step, efforts, coming)
    levels = {} if plan.shed.would is not None else state.levels
    decided = goal.adapt(seen, forecasts.ahead(efforts, levels), forecasts.options())
    sources, most = state.sources, 0.0 if settings.observes else _largest(step, state, coming)
    # Without new limits the last ones stay, also for the next run.
    limits = sources.limits(what_fits(settings.goal, decided, coming, sources, most)) if most else {}
    if limits:
        state.limits = limits
        goal.expect(decided, min(1.0, sources.let_in(limits) / coming.wanted))
    metrics = {"waiting": sources.waiting, "wanted": coming.wanted, "limits": limits}
    metrics |= _metrics(settings, decided, ran, after)
    # The loop itself does not read these.
    learnt: Snapshot = {CONTROL: {**state.to_plain(), "told": metrics}}
    if settings.freshest:
        learnt[stale_rows.CONTROL] = stale_rows.learn(
            before, plan, ran.reports, after, operators, settings.freshest, decided.keep_share
        )
    return learnt | _mechanisms(step, decided.levels, forecasts.works, coming)


def limits(manifest: Manifest) -> dict[str, int]:
    """By stream: units that its source may give to the batch after this manifest."""
    return ControlState.of(manifest).limits


def is_at_rest(manifest: Manifest) -> bool:
    """Whether the last batch had no rows, so that another one without rows teaches nothing new."""
    return CONTROL not in manifest.control or ControlState.of(manifest).arrivals.is_silent


def backlog_rows(after: Manifest, taken: Mapping[str, TakenRows]) -> dict[str, int]:
    """By stream whose source reports its backlog: rows that wait there after this batch."""
    streams = ControlState.of(after).sources.streams
    return {
        name: round(streams[name].waiting)
        for name, one in taken.items()
        if one.waiting is not None and name in streams
    }


@dataclass(frozen=True, eq=False)
class Coming:
    """Rows of the last batch, those wanted of the next one, and their ratio."""

    rows: int
    wanted: float
    growth: float
    expected: Expected
    #: Rows that limits of ours keep at their sources.
    held: float = 0.0
    #: `KeepSettings.paced` of the last batch.
    paced_seconds: float | None = None


def _coming(step: Step, state: ControlState) -> Coming:
    ran, settings, tuning = step.ran, step.settings, step.settings.goal.tuning
    # Rows offered, not rows admitted: a batch whose windows are all dropped is not steady load.
    rows = sum(sum(report.rows.offered) for report in ran.reports) + sum(ran.entered.values())
    taken = sum(one.rows for one in ran.taken.values()) or rows
    arrived = state.sources.observe(ran.taken, tuning) if ran.taken else rows
    paced = settings.paced(ran.busy_seconds, state.predicted)
    expected = state.arrivals.observe(
        arrived, step.plan.now_us, paced, settings.trigger_seconds, state.sources.waiting, tuning
    )
    # A source that does not report a backlog reports what it gave, which is not what arrived.
    if not all(one.waiting is not None for one in ran.taken.values() if one.units is not None):
        expected = replace(expected, lasting_rate=0.0)
    wanted = expected.rows if settings.observes else state.sources.wanted(expected.rows, tuning)
    growth, held = wanted / taken if taken else 0.0, state.sources.held(ran.taken)
    return Coming(rows, wanted, growth, expected, held, paced)


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
        cold=bool(coming.rows) and ran.cold,
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
    waiting = coming.held
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
    probing = sum(one.seconds.probing for one in instances) / max(sum(cpu_seconds), float_info.epsilon)
    return Took.of(wall_seconds(cpu_seconds, cores), probing)


def _largest(step: Step, state: ControlState, coming: Coming) -> float:
    """The largest batch to try; 0: limits stay as they are."""
    if not coming.rows or not coming.wanted:
        return 0.0
    rise = step.settings.goal.tuning.forecast.rise
    if not step.ran.cold:
        return rise * state.sources.largest
    # While costs are unknown, a batch takes as much more as would fit if all of its time were for rows.
    fits = step.settings.goal.batch_seconds / max(step.ran.busy_seconds, float_info.epsilon)
    return min(rise, max(1.0, fits)) * state.sources.rows


def what_fits(
    goal: GoalSettings, decided: Decided, coming: Coming, sources: Backpressure, most: float
) -> Fits:
    """Rows that a batch has time for, from the forecast for those that are wanted.

    `most`: the largest batch to try. The safety margin is used up before any row is kept waiting: a waiting
    row is overdue for sure, a row of a slightly long batch only perhaps.
    """
    rows, fixed = coming.wanted, decided.fixed
    kept_free = decided.safety_margin / 2 if sources.waiting else 0.0
    room = (1 - kept_free) * goal.batch_seconds - fixed
    # Where overhead takes nearly all the time, batches are longer, because smaller ones have less throughput.
    room = max(room, fixed / 2, _keeps_up(goal, decided, coming, sources) - fixed)
    full, planned, deepest = (
        min(most, rows * room / max(seconds - fixed, float_info.epsilon))
        for seconds in (decided.full, decided.expected, decided.deepest)
    )
    return Fits(full, planned, deepest)


def _keeps_up(goal: GoalSettings, decided: Decided, coming: Coming, sources: Backpressure) -> float:
    """Seconds of the shortest batch that has time for all rows that arrive while it runs, and a few waiting
    ones.

    With shorter batches the backlog would grow. Rows that no batch of acceptable length keeps up with wait.
    """
    each = (decided.expected - decided.fixed) / max(coming.wanted, 1.0)
    rate = (1 + bool(sources.waiting) / goal.tuning.forecast.drain) * coming.expected.lasting_rate
    longest = 2 * goal.batch_seconds
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
