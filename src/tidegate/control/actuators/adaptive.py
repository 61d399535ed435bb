"""The selective join paper's load shedding: rate, time correlation and direction, each on or off by itself.

Paper: selective join, partial and selective processing, algorithms 1 to 4.

    telemetry ─▶ rate (r) ─▶ time correlation (order of basic windows) ─▶ direction (r₁, r₂) ─▶ decision

Only the rate: partial processing, newest first. Time correlation and direction learn from rows that are
processed fully, chosen with probability r · sampling.

Guarantee: a function of the telemetry so far; `snapshot` → `restore` gives the same answers. With r = 1
nothing is skipped, whatever was learnt. Counts add up over a period of the correlation, however many batches
it has.

Where we differ: with direction on, the paper replaces r by r₁ and r₂ also where it normalises the sample. A
window with a fraction of 0 would then never be probed again; we keep sampling both with r · sampling. Where
nothing is skipped, all rows are processed fully, and all of them teach. The constraint of algorithm 4 takes
the expected work of each window where it is known, else its length. Like the paper, we do not charge the
sample to the budget (the join costs up to `sampling` more than r, until rate adaptation corrects it). The
`selective` policy does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.control.actuators.paper_rate import Period, RateRule
from tidegate.control.actuators.policy import Decision, ProbeOrder, Shape, Telemetry
from tidegate.errors import FlowError
from tidegate.join.selective.direction import directed_fractions
from tidegate.join.selective.time_correlation import TimeCorrelation
from tidegate.model.json_values import Snapshot


@dataclass(frozen=True)
class AdaptiveSettings:
    """More sampling learns faster and costs more."""

    time_correlation: bool = True
    direction: bool = True
    sampling: float = 0.1
    #: Seconds between two changes of order and direction, the paper's T_c; 0: with all telemetry.
    period_seconds: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.sampling <= 1:
            raise FlowError(
                "The exploration ratio must be above 0 and at most 1",
                code="SHED_SETTING_INVALID",
                got=f"sampling {self.sampling}",
                why="Without exploration the productive parts of the windows are never found",
                do="Give for example explore_ratio=0.1, the paper's value",
            )


class AdaptiveShedding:
    """Algorithms 1 to 4, as far as they are enabled."""

    def __init__(self, windows: Shape, rate: RateRule, settings: AdaptiveSettings | None = None) -> None:
        self.windows: Shape = windows
        self.rate: RateRule = rate
        self.settings: AdaptiveSettings = settings or AdaptiveSettings()
        left, right = windows.ages
        self._learnt = TimeCorrelation(left), TimeCorrelation(right)
        self._period = Period(self.settings.period_seconds)
        #: What probing all of each window costs.
        self._costs: tuple[float, float] = windows.lengths_us

    @property
    def decision(self) -> Decision:
        fraction = self.rate.fraction
        left, right = (
            ProbeOrder(part, learnt.order if self.settings.time_correlation else tuple(range(ages)))
            for part, learnt, ages in zip(self._fractions(), self._learnt, self.windows.ages, strict=True)
        )
        learns = self.settings.time_correlation or self.settings.direction
        return Decision((left, right), full_share=fraction * self.settings.sampling if learns else 0.0)

    def adapt(self, telemetry: Telemetry) -> Decision:
        self.rate.adapt(telemetry.load)
        if telemetry.work is not None:
            left, right = (float(work.sum()) for work in telemetry.work)
            self._costs = left, right
        ends = self._period.ends(telemetry.seconds)
        for learnt, counts in zip(self._learnt, telemetry.processed_fully, strict=True):
            learnt.observe(counts.matches, counts.comparisons)
            if ends:
                learnt.adapt()
        return self.decision

    def _fractions(self) -> tuple[float, float]:
        if not self.settings.direction:
            return self.rate.fraction, self.rate.fraction
        left, right = self._learnt
        return directed_fractions(self.rate.fraction, self._costs, (left.value, right.value))

    def snapshot(self) -> Snapshot:
        return {
            "rate": self.rate.snapshot(),
            "learnt": [learnt.snapshot() for learnt in self._learnt],
            "passed": self._period.passed,
            "costs": list(self._costs),
        }

    @classmethod
    def restore(
        cls,
        raw: Mapping[str, Any],
        windows: Shape,
        rate: RateRule,
        settings: AdaptiveSettings | None = None,
    ) -> AdaptiveShedding:
        """The caller restores `rate`, whose class depends on the rule."""
        restored = cls(windows, rate, settings)
        left, right = (TimeCorrelation.restore(learnt) for learnt in raw["learnt"])
        restored._learnt = left, right
        restored._period.passed = raw["passed"]
        restored._costs = raw["costs"][0], raw["costs"][1]
        return restored
