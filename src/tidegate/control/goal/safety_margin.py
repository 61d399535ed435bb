"""Safety margin: the part of the time budget kept free, learnt from prediction errors.

Ours. A fixed margin wastes time on a quiet machine and is too small on a busy one. Comparing the actual time
of a batch with its prediction covers all errors: costs, rows, other load. The margin is an upper quantile of
these errors: their mean, and as many standard deviations as one batch in ninety exceeds. Batches that were
shorter than predicted need no margin, so the deviation is that above the mean. Errors are clipped as in
`cost_model.py`, so a single bad batch changes little.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.control.goal.control_tuning import TUNING, ControlTuning


@dataclass
class SafetyMargin:
    """Prediction errors as parts of the budget: their number, mean, and variance above the mean."""

    seen: int = 0
    mean: float = 0.0
    variance: float = 0.0

    def part(self, tuning: ControlTuning = TUNING) -> float:
        """The safety margin as a part of the time budget."""
        margin = tuning.margin
        if not self.seen:
            return margin.first
        high = self.mean + margin.deviations * max(self._deviation, tuning.load.noise_least)
        return min(max(0.0, high / (1 + max(0.0, high))), margin.most)

    @property
    def _deviation(self) -> float:
        return float(self.variance**0.5)

    def observe(
        self, predicted: float, took: float, batch_seconds: float, tuning: ControlTuning = TUNING
    ) -> None:
        """Record an error relative to the budget: a short batch may err by much of itself and little of the
        budget.
        """
        margin = tuning.margin
        if not self.seen:
            assumed = margin.first / (1 - margin.first) / margin.deviations
            self.variance = assumed**2
        self.seen += 1
        bound = tuning.load.clip * max(self._deviation, tuning.load.noise_least)
        off = (took - predicted) / max(predicted, batch_seconds / 2) - self.mean
        off = max(-bound, min(bound, off))
        self.mean += off / margin.memory
        # Errors above the mean are half of all, so they count twice.
        self.variance += ((2 * off**2 if off > 0 else 0.0) - self.variance) / margin.memory
