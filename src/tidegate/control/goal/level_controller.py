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
the usual number of rows are too long at the deepest levels, several times in a row; a single batch with a
backlog is no reason.

    seconds ▲ ──────────────────────────────── batch_seconds
            │ ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄ above: deeper, at once     ↑ safety margin, learnt
            │ ──────────────────────────────── target
            │ ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄ below for a while: easier
            │

Guarantee: a state machine; telemetry in, decision out; `snapshot` → `restore` gives the same answers. Levels
do not move while their predicted time stays in the band. Deepening eases no option and easing deepens none,
so a slow batch does not shift work between options; levels are set anew only if another mix has been clearly
better for a while. Easing waits (`hysteresis.py`), so on steady input levels come to rest. Work that takes no
more than `least_share` of the time is always done, and more if overhead alone exceeds the budget: the batch
would be overdue even without any work.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tidegate.control.goal.cost_model import Effort
from tidegate.control.goal.goal_values import BatchSeen, Decided, GoalSettings
from tidegate.control.goal.hysteresis import Hysteresis
from tidegate.control.goal.load_model import LoadModel
from tidegate.control.goal.optimiser import Levels, PlanForecast
from tidegate.control.goal.safety_margin import SafetyMargin
from tidegate.control.goal.shed_options import ShedOption
from tidegate.model.json_values import Snapshot

#: An option may always rise to this part of its full work, and by as much as takes this part of the time: if
#: the prediction is wrong, little is at stake.
_RISE_ALWAYS, _RISE_SECONDS = 0.1, 0.1
#: Part of the safety margin that a single batch may be predicted to use before it sheds more than others.
_ONCE = 0.65
#: A batch with less than this part of its time left is overdue anyway: shedding more gains nothing.
_WORTH_A_HURRY = 0.4
#: If overhead alone exceeds the budget, work may take as long as the excess, up to `_LATE_ANYWAY` of the
#: overhead. A goal that is `_FAR` times below overhead asks for the highest speed possible: then at most
#: `least_share` of the work is done.
_LATE_ANYWAY, _FAR = 0.25, 3.0
#: Consecutive batches that are too long at the deepest levels before stale rows are dropped.
_PATIENT = 2
#: Another mix is taken if it keeps this much more than the present one.
_REGRET = 0.03


class LevelController:
    """Moves the levels of all shed options, by one load model."""

    def __init__(self, settings: GoalSettings) -> None:
        self.settings = settings
        self.model: LoadModel = LoadModel(settings.cost)
        self._margin = SafetyMargin(settings.safety_margin)
        self._levels: dict[str, float] = {}
        self._predicted: float | None = None
        self._hysteresis = Hysteresis(settings.hysteresis)
        #: Consecutive batches that were too long at the deepest levels.
        self._too_long = 0

    def adapt(self, batch: BatchSeen, ahead: Mapping[str, Effort], options: Sequence[ShedOption]) -> Decided:
        """Learn from a batch; decide for the next, which would do `ahead` without shedding."""
        predicted = self._predicted
        if batch.empty:
            self.model.observe_empty(batch.busy_seconds)
        if batch.teaches:
            self.model.observe(batch.efforts, batch.busy_seconds, batch.seconds)
            if predicted is not None and batch.foreseeable:
                self._margin.observe(predicted, batch.busy_seconds, self.settings.batch_seconds)
        forecast = PlanForecast(self.model, ahead, options, self.settings.weights, self.settings.max_loss)
        self._levels = {point: self._levels.get(point, level) for point, level in forecast.nothing.items()}
        if batch.teaches:
            # Rows that may come only once are no reason to shed more for longer.
            lasting = forecast.times(batch.lasting)
            self._move(lasting, batch.pace)
            self._judge(lasting, batch.pace)
        decided = self._decided(forecast, batch, predicted)
        self._predicted = None if self.model.is_blank else decided.expected
        return decided

    def expect(self, decided: Decided, part: float) -> None:
        """The next batch has only this part of the expected rows, because backpressure limits it."""
        if self._predicted is not None:
            self._predicted = decided.fixed + part * (decided.expected - decided.fixed)

    def _target(self, forecast: PlanForecast) -> float:
        """The time to use: the budget less the safety margin, but never too little to do any work."""
        time = self.settings.batch_seconds
        return max((1 - self._margin.part) * time, self._least(forecast, time))

    def _move(self, forecast: PlanForecast, busy_seconds: float) -> None:
        """Deepen at once, ease or remix after a while, or keep the levels."""
        target = self._target(forecast)
        usual = self._usual_part(target, busy_seconds)
        # Rows that arrived during a long batch are no reason to deepen for good.
        now = forecast.times(min(1.0, usual))
        if now.seconds(self._levels) > target + self._margin.part / 2 * self.settings.batch_seconds:
            self._hysteresis.deepened()
            self._levels = now.fit(target, deeper=self._levels).levels
            return
        if self._levels == forecast.nothing:
            return
        # Back to back, a short batch is followed by few rows; that is no reason to ease.
        settled = forecast.times(usual)
        planned = settled.seconds(self._levels)
        if self._hysteresis.eases(planned / target, settled.seconds(forecast.nothing) / target):
            self._levels = self._not_too_fast(forecast, settled.fit(target, easier=self._levels).levels)
        else:
            self._mix(settled, planned)

    def _judge(self, forecast: PlanForecast, busy_seconds: float) -> None:
        """Update whether a batch with the usual rows is too long at the deepest levels, or fits again."""

        def fits(seconds: float, part_most: float) -> bool:
            usual = forecast.times(min(part_most, self._usual_part(seconds, busy_seconds)))
            return usual.seconds(usual.deepest) <= seconds

        time = self.settings.batch_seconds
        if not fits(time, 1.0):
            self._too_long += 1
        # Back to back, a longer batch is followed by more rows than this one.
        elif self._too_long < _PATIENT or fits((1 - self._margin.part) * time, math.inf):
            self._too_long = 0

    def _usual_part(self, target: float, busy_seconds: float) -> float:
        """Rows of a usual batch relative to the next one, which begins when this one ends."""
        trigger = self.settings.trigger_seconds
        if trigger is None:
            return 1.0
        return trigger / max(trigger, busy_seconds) if trigger else target / max(busy_seconds, 1e-3)

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
        done, others = option.done(self._levels[option.point]), self._levels
        all_of_it = forecast.seconds({**others, option.point: option.nothing})
        all_of_it -= forecast.seconds({**others, option.point: float(option.levels[-1])})
        little = _RISE_SECONDS * self.settings.batch_seconds / max(all_of_it, 1e-9)
        return max(self.settings.rise_max * done, done + little, _RISE_ALWAYS)

    def _mix(self, forecast: PlanForecast, target: float) -> None:
        """Set levels anew if that has been better for a while."""
        other = forecast.fit(target).levels
        here, there = forecast.loss(self._levels), forecast.loss(other)
        whole = sum(self.settings.weights.get(output, 1.0) for output in forecast.lost(other))
        better = here - there > _REGRET * (whole - here)
        if self._hysteresis.remixes(better):
            self._levels = self._not_too_fast(forecast, other)

    def _next_levels(self, forecast: PlanForecast, batch: BatchSeen) -> Levels:
        """The levels in force; deeper for one batch if the next one has more rows or less time."""
        time, latency = self.settings.batch_seconds, self.settings.latency_seconds
        if latency is not None and latency - batch.pace >= _WORTH_A_HURRY * time:
            time = min(time, latency - batch.pace)
        least, part = self._least(forecast, time), self._margin.part
        if forecast.seconds(self._levels) <= max((1 - (1 - _ONCE) * part) * time, least):
            return self._levels
        return forecast.fit(max((1 - part) * time, least), deeper=self._levels).levels

    def _least(self, forecast: PlanForecast, time: float) -> float:
        """Least time for work; more if overhead alone exceeds the budget."""
        overhead = forecast.seconds(forecast.deepest)
        late = min(overhead - (1 - self._margin.part) * time, _LATE_ANYWAY * overhead)
        within_reach = min(1.0, max(0.0, _FAR - overhead / time))
        share = self.settings.least_share
        little = min(share * time, share * (forecast.seconds(forecast.nothing) - overhead))
        return overhead + max(little, within_reach * share * time, within_reach * late)

    def _decided(self, forecast: PlanForecast, batch: BatchSeen, predicted: float | None) -> Decided:
        levels = self._next_levels(forecast, batch) if batch.teaches else self._levels
        planned, part = forecast.seconds(levels), self._margin.part
        short = max(0.0, planned - (1 - part / 2) * self.settings.batch_seconds)
        freshest = forecast.spent(levels, self._may_go(forecast))
        too_long = batch.teaches and self._too_long >= _PATIENT
        keep_share = self._keep_share(planned, freshest) if too_long else 1.0
        return Decided(
            levels=dict(levels),
            planned=planned,
            full=forecast.seconds(forecast.nothing),
            fixed=forecast.fixed,
            deepest=forecast.seconds(forecast.deepest),
            lost=forecast.lost(levels),
            short=short,
            keep_share=keep_share,
            expected=planned - (1 - keep_share) * freshest,
            safety_margin=part,
            uneven_seconds=batch.uneven_seconds,
            behind_seconds=batch.behind_seconds,
            predicted=predicted,
            took=batch.busy_seconds,
        )

    def _may_go(self, forecast: PlanForecast) -> Collection[str]:
        """Operators that may be given fewer rows."""
        return forecast.operators if self.settings.freshest is None else self.settings.freshest

    def _keep_share(self, planned: float, freshest: float) -> float:
        """The part of the rows that fits, given the seconds of the plan that these rows take.

        1 if fewer rows would not help, because the rest alone is too long.
        """
        target = (1 - self._margin.part) * self.settings.batch_seconds
        room = target - (planned - freshest)
        if room < self.settings.least_share * target:
            return 1.0
        return min(1.0, room / max(freshest, 1e-9))

    def snapshot(self) -> Snapshot:
        return {
            "model": self.model.snapshot(),
            "headroom": self._margin.snapshot(),
            "levels": self._levels,
            "predicted": self._predicted,
            "patience": self._hysteresis.snapshot(),
            "too_long": self._too_long,
        }

    @classmethod
    def restore(cls, raw: Mapping[str, Any], settings: GoalSettings) -> LevelController:
        restored = cls(settings)
        restored.model = LoadModel.restore(raw["model"], settings.cost)
        restored._margin = SafetyMargin.restore(raw["headroom"], settings.safety_margin)
        restored._levels, restored._predicted = dict(raw["levels"]), raw["predicted"]
        restored._hysteresis = Hysteresis.restore(raw["patience"], settings.hysteresis)
        restored._too_long = raw.get("too_long", 0)
        return restored
