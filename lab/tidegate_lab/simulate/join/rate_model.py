"""Model-based rate adaptation: computes r from learnt costs instead of by trial.

Beyond the selective join paper (section 4.1, algorithm 1), whose rule multiplies r by the last error: it
mistakes a backlog for lasting overload, takes several periods to recover in 20 % steps, and never settles.

This is `control/goal/level_controller.py` for a query of one join, with a single shed option. Every period
updates the costs of rows, comparisons and outputs; the rows and comparisons of the next period are known or
forecast, and the change of matches with r is learnt (`yield_curve.py`).

Guarantee: 0 < r <= 1; the guarantees of `level_controller.py` for levels hold for r.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tidegate.control.actuators.paper_rate import RateLoad
from tidegate.control.goal.control_state import ControlState
from tidegate.control.goal.control_tuning import TUNING
from tidegate.control.goal.cost_model import Effort
from tidegate.control.goal.goal_values import BatchSeen, GoalSettings
from tidegate.control.goal.level_controller import LevelController
from tidegate.control.goal.load_model import LoadModel
from tidegate.control.goal.shed_options import rate_option
from tidegate.model.codec import from_plain
from tidegate_lab.simulate.join.yield_curve import YieldCurve

#: The one operator, point and output there is.
_JOIN = "join"


@dataclass(frozen=True)
class PeriodLoad(RateLoad):
    """What one period (or batch) was offered and did, both streams together, and what the next one brings."""

    #: Time there was, and time the work took (less than that when not overloaded).
    seconds: float
    busy_seconds: float
    comparisons: int
    outputs: int
    #: Rows that the next period will have, and the comparisons that they would cost with r = 1.
    next_rows: float
    next_comparisons_full: float
    #: Rows that were processed; `fetched` of a batch counts only those that fitted into its time.
    rows: float


@dataclass(frozen=True)
class RateModelSettings:
    """More headroom: fewer batches that take too long, less of the windows processed."""

    headroom: float = 0.1

    def goal(self, seconds: float) -> GoalSettings:
        # So many deviations that the margin is always at its largest.
        margin = replace(TUNING.margin, deviations=1e9, most=self.headroom)
        return GoalSettings(seconds, tuning=replace(TUNING, margin=margin))


class RateModel:
    """r from a model of the costs."""

    def __init__(self, settings: RateModelSettings | None = None) -> None:
        self.settings = settings or RateModelSettings()
        self._goal = LevelController(self.settings.goal(1.0))
        self._fraction = 1.0
        self._yield = YieldCurve()

    @property
    def fraction(self) -> float:
        return self._fraction

    @property
    def model(self) -> LoadModel:
        return self._goal.state.model

    def adapt(self, load: RateLoad) -> float:
        assert isinstance(load, PeriodLoad), "the model learns from what a period did, not from rows alone"
        self._yield.observe(self._fraction, load.comparisons, load.outputs)
        full = load.next_comparisons_full
        ahead = Effort(load.next_rows, full, full * self._yield.at(1.0))
        batch = BatchSeen(load.busy_seconds, {_JOIN: Effort(load.rows, load.comparisons, load.outputs)}, {})
        self._goal.settings = replace(self._goal.settings, batch_seconds=load.seconds)
        offer = rate_option(_JOIN, {_JOIN: 1.0}, self._yield.bend)
        self._fraction = self._goal.adapt(batch, {_JOIN: ahead}, [offer]).levels[_JOIN]
        return self._fraction

    def snapshot(self) -> dict[str, Any]:
        return {
            "fraction": self._fraction,
            "yield": self._yield.snapshot(),
            "goal": self._goal.state.to_plain(),
        }

    @classmethod
    def restore(cls, raw: Mapping[str, Any], settings: RateModelSettings | None = None) -> RateModel:
        restored = cls(settings)
        restored._fraction = raw["fraction"]
        restored._yield = YieldCurve.restore(raw["yield"])
        restored._goal = LevelController(restored.settings.goal(1.0), from_plain(ControlState, raw["goal"]))
        return restored
