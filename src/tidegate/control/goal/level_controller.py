"""One controller for one goal: after each batch, the levels of everything that can be left out in the next.

Ours: every paper adapts its own mechanism, and takes all the time of the machine for its own.

    what b did, how long it took ─▶ load_model ─┐
    what b+1 would do in full ──────────────────┼─▶ prospect ─▶ levels of b+1: r, z and p
    what can be left out, at what loss ─────────┘

The order of the goal: rebalance and add instances first (they lose nothing: `uneven_seconds` and
`behind_seconds` say what that could gain, balancing acts), then skip what cannot matter and shed where the
weighted loss per second is least, all in one allocation; then shut outputs off that may be; and when even
that is not enough, keep the freshest rows (`keep_share`, `freshest.py`) and say so (`goal_values.warnings`).
Only a batch that would be too long with all that can be left out at its deepest, at the rows that usually
come, is a reason for that: not one that had much to catch up with, and not the first one either.

    seconds ▲ ──────────────────────────────── batch_seconds
            │ ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄ above: deeper, at once     ↑ headroom, learnt
            │ ──────────────────────────────── target
            │ ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄ below for a while: easier
            │

Guarantee: a state machine; telemetry in, decision out; `snapshot` → `restore` gives the same answers. While
the predicted time of the levels in force stays in the band, nothing moves. Going deeper gives no point
anything back and going easier takes from none, so one slow batch shifts nothing around; only when another mix
would lose clearly less for a while are levels set anew. Easing waits, and longer each time that it had to be
taken back: on steady input levels come to rest. Work that takes no more than `least_share` of the time is
always done, and more where overhead alone is too much: leaving out everything would be late just the same.
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

#: A point that does less than this part of what it could may always come up to it; and by as much as takes
#: this part of the time: should that be far off, little is at stake.
_RISE_ALWAYS, _RISE_SECONDS = 0.1, 0.1
#: Part of the headroom that a single batch may be foreseen to use before it does less than the others.
_ONCE = 0.65
#: A batch with less than this part of its time left is late anyway: nothing is gained by leaving out more.
_WORTH_A_HURRY = 0.4
#: Where overhead alone is late, work may take as long again as it is late by, up to this part of it. A goal
#: that is so many times below overhead is a wish for all the speed there is: then it may not, and no more
#: than `least_share` of the work is done, however short all of it is.
_LATE_ANYWAY, _FAR = 0.25, 3.0
#: Batches in a row that are too long whatever is left out, before rows are.
_PATIENT = 2
#: Another mix is worth a change when it gives this much more than is given now.
_REGRET = 0.03


class LevelController:
    """Levels of all points, by one model of the load."""

    def __init__(self, settings: GoalSettings) -> None:
        self.settings = settings
        self.model = LoadModel(settings.cost)
        self._margin = SafetyMargin(settings.safety_margin)
        self._levels: dict[str, float] = {}
        self._predicted: float | None = None
        self._hysteresis = Hysteresis(settings.hysteresis)
        #: Batches in a row that were too long whatever is left out; not enough of them yet, or rows go.
        self._too_long = 0

    def adapt(self, batch: BatchSeen, ahead: Mapping[str, Effort], options: Sequence[ShedOption]) -> Decided:
        """Learn from a batch; decide for the next, which would do `ahead` if nothing were left out."""
        predicted = self._predicted
        if batch.empty:
            self.model.observe_empty(batch.busy_seconds)
        if batch.teaches:
            self.model.observe(batch.efforts, batch.busy_seconds, batch.seconds)
            if predicted is not None and batch.foreseeable:
                self._margin.observe(predicted, batch.busy_seconds, self.settings.batch_seconds)
        forecast = PlanForecast(self.model, ahead, options, self.settings.weights, self.settings.loss_max)
        self._levels = {point: self._levels.get(point, level) for point, level in forecast.nothing.items()}
        if batch.teaches:
            # What may come once is no reason to leave out more for longer.
            lasting = forecast.times(batch.lasting)
            self._move(lasting, batch.busy_seconds)
            self._judge(lasting, batch.busy_seconds)
        decided = self._decided(forecast, batch, predicted)
        self._predicted = None if self.model.is_blank else decided.expected
        return decided

    def expect(self, decided: Decided, part: float) -> None:
        """The next batch has only this part of the rows that were expected: its source lets in no more."""
        if self._predicted is not None:
            self._predicted = decided.fixed + part * (decided.expected - decided.fixed)

    def _target(self, forecast: PlanForecast) -> float:
        """The time to be used: what there is, less headroom; never so little that nothing would be done."""
        time = self.settings.batch_seconds
        return max((1 - self._margin.part) * time, self._least(forecast, time))

    def _move(self, forecast: PlanForecast, busy_seconds: float) -> None:
        """Deeper at once, easier after a while, another mix after a while; or as it is."""
        target = self._target(forecast)
        usual = self._usual_part(target, busy_seconds)
        # What gathered during a long batch is no reason to go deeper for good.
        now = forecast.times(min(1.0, usual))
        if now.seconds(self._levels) > target + self._margin.part / 2 * self.settings.batch_seconds:
            self._hysteresis.deepened()
            self._levels = now.fit(target, deeper=self._levels).levels
            return
        if self._levels == forecast.nothing:
            return
        # And what did not gather during a short one, back to back, is no reason to go back.
        settled = forecast.times(usual)
        planned = settled.seconds(self._levels)
        if self._hysteresis.eases(planned / target, settled.seconds(forecast.nothing) / target):
            self._levels = self._not_too_fast(forecast, settled.fit(target, easier=self._levels).levels)
        else:
            self._mix(settled, planned)

    def _judge(self, forecast: PlanForecast, busy_seconds: float) -> None:
        """Is a batch of the rows that usually come too long with everything left out? Does it fit again?"""

        def fits(seconds: float, part_most: float) -> bool:
            usual = forecast.times(min(part_most, self._usual_part(seconds, busy_seconds)))
            return usual.seconds(usual.deepest) <= seconds

        time = self.settings.batch_seconds
        if not fits(time, 1.0):
            self._too_long += 1
        # What did not gather during a short batch, back to back, will gather during a longer one.
        elif self._too_long < _PATIENT or fits((1 - self._margin.part) * time, math.inf):
            self._too_long = 0

    def _usual_part(self, target: float, busy_seconds: float) -> float:
        """What a batch usually brings, of what the next one will: it begins when this one is over."""
        trigger = self.settings.trigger_seconds
        if trigger is None:
            return 1.0
        return trigger / max(trigger, busy_seconds) if trigger else target / max(busy_seconds, 1e-3)

    def _not_too_fast(self, forecast: PlanForecast, levels: Levels) -> dict[str, float]:
        """A model that errs must not undo in one batch what it took many to learn."""
        limited = {}
        for point, level in levels.items():
            option = forecast.options[point]
            most = self._rise_most(forecast, option)
            limited[point] = level if option.whole or option.done(level) <= most else option.level(most)
        return limited

    def _rise_most(self, forecast: PlanForecast, option: ShedOption) -> float:
        """The most that a point may do in the next batch, of all that it could."""
        done, others = option.done(self._levels[option.point]), self._levels
        all_of_it = forecast.seconds({**others, option.point: option.nothing})
        all_of_it -= forecast.seconds({**others, option.point: float(option.levels[-1])})
        little = _RISE_SECONDS * self.settings.batch_seconds / max(all_of_it, 1e-9)
        return max(self.settings.rise_max * done, done + little, _RISE_ALWAYS)

    def _mix(self, forecast: PlanForecast, target: float) -> None:
        """Set levels anew where that has been better for a while."""
        other = forecast.fit(target).levels
        here, there = forecast.loss(self._levels), forecast.loss(other)
        whole = sum(self.settings.weights.get(output, 1.0) for output in forecast.lost(other))
        better = here - there > _REGRET * (whole - here)
        if self._hysteresis.remixes(better):
            self._levels = self._not_too_fast(forecast, other)

    def _next_levels(self, forecast: PlanForecast, batch: BatchSeen) -> Levels:
        """The levels in force; deeper, this once, where the next batch has more rows or less time."""
        time, latency = self.settings.batch_seconds, self.settings.latency_seconds
        if latency is not None and latency - batch.busy_seconds >= _WORTH_A_HURRY * time:
            time = min(time, latency - batch.busy_seconds)
        least, part = self._least(forecast, time), self._margin.part
        if forecast.seconds(self._levels) <= max((1 - (1 - _ONCE) * part) * time, least):
            return self._levels
        return forecast.fit(max((1 - part) * time, least), deeper=self._levels).levels

    def _least(self, forecast: PlanForecast, time: float) -> float:
        """Never so little time that nothing would be done; where overhead is late anyway, some more."""
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
        """The part of the rows that fits, where they take so many seconds of those that are planned.

        1 where fewer rows would not help, because all the rest is too much.
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
