"""The level controller: after each batch, the levels of all shed options for the next.

A level is the probe ratio of a join, the admit ratio of a match or the drop ratio of windows. (With
`rate="paper"` joins follow `control/actuators/paper_rate.py` instead.)

Ours: each paper adapts its own mechanism, as if it had the machine to itself.

    what b did, how long it took ─▶ load_model ─┐
    what b+1 would do in full ──────────────────┼─▶ PlanForecast ─▶ levels of b+1
    shed options, with their losses ────────────┘

Order of measures: rebalance and add instances (lossless; `uneven_seconds` and `behind_seconds` report what
that could gain, balancing acts); shed where the weighted loss per second is least, in one allocation; shut
off outputs that allow it; and if that does not suffice, keep only the freshest rows (`keep_share`,
`control/actuators/stale_rows.py`) and warn (`goal_values.warnings`). The last step requires that batches with
the usual number of rows are too long at the deepest levels, several times in a row.

    seconds ▲ ──────────────────────────────── batch_seconds
            │ ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄ above: deeper, at once     ↑ safety margin, learnt
            │ ──────────────────────────────── target
            │ ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄ below for a while: easier
            │

A process that warms up is slow for reasons that pass. Its batches teach nothing that lasts: decisions follow
what an earlier run learnt, and in a new flow a model that is dropped later, of which the fixed cost is left
out. So work is shed only if it alone would take too long.

Guarantee: a state machine. Levels do not move while their predicted time stays in the band. Deepening eases
no option and easing deepens none. Shedding that saves no measurable part of the time is taken back: the
target is never so low that only it could be reached by that (`_least`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from sys import float_info

from tidegate.control.goal.control_state import ControlState
from tidegate.control.goal.cost_model import Effort
from tidegate.control.goal.goal_values import BatchSeen, Decided, GoalSettings
from tidegate.control.goal.load_model import LoadModel
from tidegate.control.goal.optimiser import PlanForecast
from tidegate.control.goal.shed_options import Levels, ShedOption


class LevelController:
    """Moves the levels of all shed options, by one load model; `state` is what it remembers."""

    def __init__(self, settings: GoalSettings, state: ControlState | None = None) -> None:
        self.settings, self.tuning = settings, settings.tuning
        self.state: ControlState = state or ControlState()

    def adapt(self, batch: BatchSeen, ahead: Mapping[str, Effort], options: Sequence[ShedOption]) -> Decided:
        """Learn from a batch; decide for the next, which would do `ahead` without shedding."""
        state = self.state
        predicted = state.predicted if batch.teaches else None
        goal, model = self.settings, self._learn(batch)
        forecast = PlanForecast(model, ahead, options, goal.weights, goal.max_loss, self.tuning.level)
        if state.cold is not None:
            forecast.fixed = 0.0
        state.lasting = {point: state.lasting.get(point, level) for point, level in forecast.nothing.items()}
        if batch.teaches or batch.cold:
            # Rows that may come only once are no reason to shed more for longer.
            self._move(forecast.times(batch.lasting), batch)
        if batch.teaches:
            self._judge(forecast.times(batch.lasting), batch.pace)
        decided = self._decided(forecast, batch, predicted)
        state.levels = dict(decided.levels)
        state.predicted = None if state.model.is_blank or batch.cold else decided.expected
        return decided

    def expect(self, decided: Decided, part: float) -> None:
        """The next batch has only this part of the expected rows, because backpressure limits it."""
        if self.state.predicted is not None:
            self.state.predicted = decided.fixed + part * (decided.expected - decided.fixed)

    def _learn(self, batch: BatchSeen) -> LoadModel:
        """Learn from a batch; the model to decide by."""
        state, tuning = self.state, self.tuning
        if batch.empty:
            state.model.observe_empty(batch.busy_seconds, tuning)
        if batch.cold and state.model.is_blank:
            state.cold = state.cold or LoadModel()
            state.cold.observe(batch.efforts, batch.busy_seconds, batch.seconds, tuning, first_work=0.0)
        if batch.teaches:
            state.cold = None
            state.model.observe(batch.efforts, batch.busy_seconds, batch.seconds, tuning)
            if state.predicted is not None and batch.foreseeable:
                time = self.settings.batch_seconds
                state.margin.observe(state.predicted, batch.busy_seconds, time, tuning)
        return state.cold or state.model

    @property
    def _margin(self) -> float:
        """The safety margin as a part of the time budget."""
        return self.state.margin.part(self.tuning)

    def _target(self, forecast: PlanForecast) -> float:
        """The time to use: the budget less the safety margin, but never too little to do any work."""
        time = self.settings.batch_seconds
        return max((1 - self._margin) * time, self._least(forecast, time))

    def _move(self, forecast: PlanForecast, batch: BatchSeen) -> None:
        """Deepen at once, ease or remix after a while, or keep the levels."""
        state, target = self.state, self._target(forecast)
        usual = self._usual_part(target, batch.pace)
        # Rows that arrived during a long batch are no reason to deepen for good.
        now = forecast.times(min(1.0, usual))
        if now.seconds(state.lasting) > target + self._margin / 2 * self.settings.batch_seconds:
            state.hysteresis.deepened(self.tuning.ease)
            state.lasting = now.fit(target, deeper=state.lasting).levels
            return
        if state.lasting == forecast.nothing:
            return
        if target > (1 - self._margin) * self.settings.batch_seconds and now.seconds(now.nothing) <= target:
            # The goal is out of reach, and shedding does not shorten batches measurably.
            state.lasting = forecast.nothing
            return
        # Back to back, a short batch is followed by few rows; that is no reason to ease.
        settled = forecast.times(usual)
        planned = settled.seconds(state.lasting)
        # A forecast of little work may be wrong: easing fills what the one before had left, too.
        most, state.usual = max(planned, state.usual), planned
        used = self._settled_seconds(planned, forecast.fixed, target) / target
        if state.hysteresis.eases(used, self.tuning.ease):
            easier = settled.fit(planned / most * target, easier=state.lasting).levels
            state.lasting = self._not_too_fast(forecast, easier)
        else:
            self._mix(settled, planned)

    def _judge(self, forecast: PlanForecast, pace: float) -> None:
        """Update whether a batch with the usual rows is too long at the deepest levels, or fits again."""

        def fits(seconds: float, part_most: float) -> bool:
            usual = forecast.times(min(part_most, self._usual_part(seconds, pace)))
            return usual.seconds(usual.deepest) <= seconds

        state, time = self.state, self.settings.batch_seconds
        if not fits(time, 1.0):
            state.too_long += 1
        # Back to back, a longer batch is followed by more rows than this one.
        elif state.too_long < 2 or fits((1 - self._margin) * time, math.inf):
            state.too_long = 0

    def _usual_part(self, target: float, pace: float) -> float:
        """Rows of a usual batch relative to the next one, which begins when this one ends.

        A batch that is longer than the time between triggers has the rows of its own length. It must fit with
        those of its whole target, or each batch would be longer than the one before.
        """
        trigger = self.settings.trigger_seconds
        if trigger is None:
            return 1.0
        return max(trigger, target) / max(trigger, pace, float_info.epsilon)

    def _settled_seconds(self, planned: float, fixed: float, target: float) -> float:
        """How long batches become at levels with which one that has the rows of the target takes `planned`.

        Each has the rows that arrive during the one before, and at least those of one trigger.
        """
        trigger = self.settings.trigger_seconds
        if trigger is None or trigger >= target:
            return planned
        each = (planned - fixed) / target
        return max(fixed + each * trigger, fixed / max(1 - each, float_info.epsilon))

    def _not_too_fast(self, forecast: PlanForecast, levels: Levels) -> dict[str, float]:
        """Limit the rise of work, so that a wrong model cannot undo in one batch what took many to learn."""
        limited = {}
        for point, level in levels.items():
            option = forecast.options[point]
            most = self._rise_most(forecast, option)
            limited[point] = level if option.whole or option.done(level) <= most else option.level(most)
        return limited

    def _rise_most(self, forecast: PlanForecast, option: ShedOption) -> float:
        """The largest part of its full work that an option may do in the next batch."""
        others, little = self.state.lasting, self.tuning.level.measurable
        done = option.done(others[option.point])
        all_of_it = forecast.seconds({**others, option.point: option.nothing})
        all_of_it -= forecast.seconds({**others, option.point: float(option.levels[-1])})
        more = little * self.settings.batch_seconds / max(all_of_it, float_info.epsilon)
        return max(self.tuning.level.rise * done, done + more, little)

    def _mix(self, forecast: PlanForecast, target: float) -> None:
        """Set levels anew if that has been better for a while."""
        state = self.state
        other = forecast.fit(target).levels
        here, there = forecast.loss(state.lasting), forecast.loss(other)
        whole = sum(self.settings.weights.get(output, 1.0) for output in forecast.lost(other))
        if state.hysteresis.remixes((here - there) / max(whole - here, float_info.epsilon), self.tuning.ease):
            state.lasting = self._not_too_fast(forecast, other)

    def _next_levels(self, forecast: PlanForecast, batch: BatchSeen) -> Levels:
        """The lasting levels; deeper for one batch if the next one has more rows or less time."""
        time, lasting, margin = self.settings.batch_seconds, self.state.lasting, self._margin
        if self.settings.latency_seconds is not None:
            # The oldest row of the next batch came when this one, or the time of its trigger, began.
            waited = max(batch.pace, self.settings.trigger_seconds or 0.0)
            left = self.settings.latency_seconds - waited
            # With less than half of its time left, a batch is overdue anyway; of more than its time it may
            # use half, or short and long batches would take turns.
            time = min(left, (left + time) / 2) if left >= time / 2 else time
        least = self._least(forecast, time)
        if forecast.seconds(lasting) <= max((1 - margin / 2) * time, least):
            return lasting
        return forecast.fit(max((1 - margin) * time, least), deeper=lasting).levels

    def _least(self, forecast: PlanForecast, time: float) -> float:
        """Least time for a batch: shedding that would not shorten it measurably is not worth its loss.

        If the goal is far out of reach, as little as possible is done.
        """
        overhead = forecast.seconds(forecast.deepest)
        measurable = self.tuning.level.measurable
        little = measurable * min(time, forecast.seconds(forecast.nothing) - overhead)
        within_reach = min(1.0, max(0.0, self.tuning.level.reach - overhead / time))
        return overhead + max(little, within_reach * measurable * max(time, overhead))

    def _decided(self, forecast: PlanForecast, batch: BatchSeen, predicted: float | None) -> Decided:
        state, time = self.state, self.settings.batch_seconds
        judges = batch.teaches or batch.cold
        levels = self._next_levels(forecast, batch) if judges else state.lasting
        planned, margin = forecast.seconds(levels), self._margin
        may_go = forecast.operators if self.settings.freshest is None else self.settings.freshest
        freshest = forecast.spent(levels, may_go)
        too_long = batch.teaches and state.too_long >= 2
        keep_share = self._keep_share(planned, freshest) if too_long else 1.0
        return Decided(
            levels=dict(levels),
            planned=planned,
            full=forecast.seconds(forecast.nothing),
            fixed=forecast.fixed,
            deepest=forecast.seconds(forecast.deepest),
            lost=forecast.lost(levels),
            short=max(0.0, planned - (1 - margin / 2) * time),
            keep_share=keep_share,
            expected=planned - (1 - keep_share) * freshest,
            safety_margin=margin,
            uneven_seconds=batch.uneven_seconds,
            behind_seconds=batch.behind_seconds,
            predicted=predicted,
            took=batch.busy_seconds,
        )

    def _keep_share(self, planned: float, freshest: float) -> float:
        """The part of the rows that fits, given the seconds of the plan that these rows take.

        1 if fewer rows would not help, because the rest alone is too long.
        """
        target = (1 - self._margin) * self.settings.batch_seconds
        room = target - (planned - freshest)
        if room < self.tuning.level.measurable * target:
            return 1.0
        return min(1.0, room / max(freshest, float_info.epsilon))
