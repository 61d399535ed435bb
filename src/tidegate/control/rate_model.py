"""Model-based rate adaptation: r is computed from learnt costs, not felt for.

Beyond the selective join paper (section 4.1, algorithm 1), whose rule multiplies r by what went wrong: it
mistakes a backlog for lasting overload, takes several periods to come back up by 20 % steps, and never rests.

Every batch teaches `cost_model.py` what rows, comparisons and outputs cost. When the next batch is planned,
the size of the windows is known and its rows can be expected, so the largest r that fits is the solution of

    fixed + row · rows + (comparison + output · matches per comparison at r) · r · comparisons_full = target

where the target is the time there is, less some headroom for what the model does not know. Where the time of
the join itself is measured, the model learns from that alone, and all else (Spark, the disk, the neighbours)
is overhead: a high quantile of the last batches. A start from cold, or a slow stretch, is then not mistaken
for dear comparisons.

Guarantee: 0 < r <= 1. While the predicted time of the r in force stays between `keep_above` of the target and
the target plus half the headroom, r does not move at all: steady input gives a steady r. Comparisons that
take no more than `least_share` of the time are always made: where overhead alone is more than there is time
for, leaving out everything would be late just the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tidegate.control.cost_model import CostModel, CostSettings
from tidegate.control.rate import FRACTION_MIN, Load
from tidegate.control.yield_curve import YieldCurve
from tidegate.errors import FlowError, explain

#: Halvings of the interval in which r is looked for: to a millionth.
_HALVINGS = 20
#: Overhead is what three of four of the last batches did not exceed.
_OVERHEADS_KEPT, _QUANTILE = 8, 0.75


@dataclass(frozen=True)
class RateModelSettings:
    """More headroom: fewer batches that take too long, less of the windows processed."""

    headroom: float = 0.1
    #: r is raised only when less than this part of the target would be used.
    keep_above: float = 0.9
    fraction_min: float = FRACTION_MIN
    least_share: float = 0.1
    #: r becomes at most so many times as large from one batch to the next.
    rise_max: float = 2.5
    cost: CostSettings = field(default_factory=CostSettings)

    def __post_init__(self) -> None:
        parts = (self.keep_above, self.fraction_min, self.least_share)
        if not (0 <= self.headroom < 1 and all(0 < part <= 1 for part in parts) and self.rise_max > 1):
            raise FlowError(
                explain(
                    "Headroom lies in [0, 1), the other parts in (0, 1], and rise_max above 1",
                    got=self,
                    do="The defaults are 0.1, 0.9, 0.001, 0.1 and 2.5",
                )
            )


class RateModel:
    """r from a model of the costs."""

    def __init__(self, settings: RateModelSettings | None = None) -> None:
        self.settings = settings or RateModelSettings()
        self.model = CostModel(self.settings.cost)
        self._fraction = 1.0
        self._yield = YieldCurve()
        #: Seconds of the last batches that were not the join's; empty where nobody measures the join.
        self._overheads: list[float] = []

    @property
    def fraction(self) -> float:
        return self._fraction

    def adapt(self, load: Load) -> float:
        self._observe(load)
        target = (1 - self.settings.headroom) * load.seconds
        highest = (1 - self.settings.headroom / 2) * load.seconds
        planned = self._seconds(load, self._fraction)
        rises = planned < self.settings.keep_above * target and self._fraction < 1
        if planned > highest or rises:
            fits = self._largest_that_fits(load, target)
            # A model that errs must not undo in one batch what it took many to learn.
            self._fraction = min(fits, self.settings.rise_max * self._fraction)
        return self._fraction

    def _observe(self, load: Load) -> None:
        seconds = load.busy_seconds
        if load.join_seconds is not None:
            seconds = min(load.join_seconds, load.busy_seconds)
            self._overheads = [*self._overheads, load.busy_seconds - seconds][-_OVERHEADS_KEPT:]
        self.model.observe(load.rows, load.comparisons, load.outputs, seconds)
        self._yield.observe(self._fraction, load.comparisons, load.outputs)

    @property
    def overhead(self) -> float:
        """Seconds of a batch that are not the join's."""
        return float(np.quantile(self._overheads, _QUANTILE)) if self._overheads else 0.0

    def _seconds(self, load: Load, fraction: float) -> float:
        comparisons = fraction * load.next_comparisons_full
        outputs = comparisons * self._yield.at(fraction)
        return self.overhead + self.model.predict(load.next_rows, comparisons, outputs)

    def _largest_that_fits(self, load: Load, target: float) -> float:
        least = self.settings.fraction_min
        without = self._seconds(load, least)
        always = without + self.settings.least_share * target
        if self._seconds(load, 1.0) <= max(target, always):
            return 1.0
        # More comparisons never take less time, so halving finds the place.
        low, high = least, 1.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            fits = self._seconds(load, middle) <= max(target, always)
            low, high = (middle, high) if fits else (low, middle)
        return low

    def snapshot(self) -> dict[str, Any]:
        return {
            "fraction": self._fraction,
            "yield": self._yield.snapshot(),
            "overheads": self._overheads,
            "model": self.model.snapshot(),
        }

    @classmethod
    def restore(cls, raw: Mapping[str, Any], settings: RateModelSettings | None = None) -> RateModel:
        restored = cls(settings)
        restored._fraction = raw["fraction"]
        restored._yield = YieldCurve.restore(raw["yield"])
        restored._overheads = list(raw["overheads"])
        restored.model = CostModel.restore(raw["model"], restored.settings.cost)
        return restored
