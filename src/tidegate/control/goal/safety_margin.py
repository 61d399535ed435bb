"""Safety margin: the part of the time budget kept free, learnt from prediction errors.

Ours. A fixed margin wastes time on a quiet machine and is too small on a busy one. Comparing the actual time
of a batch with its prediction covers all errors: costs, rows, other load. The margin is the error that one
batch in ninety would exceed if errors were normal:

    median of the last errors + 2.3 · standard deviation

Far errors are clipped, so a single bad batch changes little. Older errors count less, and `first` counts as a
few errors, so the margin moves slowly from the assumption to the measurement. Batches that were shorter than
predicted need no margin: if errors spread further below the median than above it, only those above count.

Guarantee: between `least` and `most`; `first` until enough batches have been seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.errors import REPORT_BUG, FlowError

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Batches remembered, batches needed for an estimate, and batches in the median.
_KEPT, _ENOUGH, _RECENT = 48, 3, 16
#: Decay of an error's weight per batch, and the number of errors that `first` counts as.
_FADES, _ASSUMED = 0.96, 3.0
#: In standard deviations: what one in ninety exceeds; where errors are clipped; and what half of all errors
#: lie within.
_HIGHEST, _FAR_OUT, _HALF = 2.3, 3.0, 0.674


@dataclass(frozen=True)
class SafetyMarginSettings:
    """A larger margin: fewer overlong batches, more shedding."""

    first: float = 0.08
    least: float = 0.05
    most: float = 0.3

    def __post_init__(self) -> None:
        if not 0 <= self.least <= self.first <= self.most < 1:
            raise FlowError(
                "A setting of the safety margin is out of range",
                code="INTERNAL_TUNING_INVALID",
                got=self,
                do=REPORT_BUG,
            )

    @classmethod
    def always(cls, part: float) -> SafetyMarginSettings:
        return cls(part, part, part)


class SafetyMargin:
    """A part of the time budget, from prediction errors."""

    def __init__(self, settings: SafetyMarginSettings | None = None) -> None:
        self.settings: SafetyMarginSettings = settings or SafetyMarginSettings()
        self._errors: list[float] = []

    def observe(self, predicted: float, took: float, batch_seconds: float) -> None:
        """Record an error relative to the budget: a short batch may err by much of itself and little of the
        budget.
        """
        self._errors = [*self._errors, (took - predicted) / max(predicted, batch_seconds / 2)][-_KEPT:]
        self.__dict__.pop("part", None)

    # Needed many times a batch, and constant until the next error.
    @cached_property
    def part(self) -> float:
        """The safety margin as a part of the time budget."""
        if len(self._errors) < _ENOUGH:
            return self.settings.first
        errors = np.array(self._errors)
        middle = float(np.median(errors[-_RECENT:]))
        weights = np.power(_FADES, np.arange(len(errors), dtype=np.float64)[::-1])
        known = float(weights.sum() / (weights.sum() + _ASSUMED))
        variance = known * _variance(errors - middle, weights) + (1 - known) * self._assumed_variance
        high = known * middle + _HIGHEST * variance**0.5
        return float(np.clip(high / (1 + max(0.0, high)), self.settings.least, self.settings.most))

    @property
    def _assumed_variance(self) -> float:
        """Variance of errors for which `first` would be right."""
        return (self.settings.first / (1 - self.settings.first) / _HIGHEST) ** 2

    def snapshot(self) -> list[float]:
        return self._errors

    @classmethod
    def restore(cls, raw: Any, settings: SafetyMarginSettings | None = None) -> SafetyMargin:
        restored = cls(settings)
        restored._errors = list(raw)
        return restored


def _variance(off: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Variance about the median: of both sides, or of the errors above it if that is less."""
    usual = float(np.median(np.abs(off))) / _HALF
    squares = weights * np.minimum(np.abs(off), _FAR_OUT * usual) ** 2
    return float(min(squares.sum(), 2 * squares[off > 0].sum()) / weights.sum())
