"""How much of the time is left free for what cannot be foreseen: as much as predictions were off by.

Ours. A fixed headroom wastes time on a quiet machine and is too small on a busy one. What a batch took is
compared with what was predicted before it ran, so the error holds all of it: costs, rows, neighbours. The
headroom is the error that one batch in ninety would exceed, were errors normal:

    middle of the last errors + 2.3 · how far errors lie from it

Errors far out count as if they were less far, so a single batch that goes wrong changes little. Older ones
count less, and `first` counts as some errors did, so headroom moves slowly from what is assumed to what is
seen. Batches that were shorter than predicted are no reason for headroom: where errors lie further below the
middle than above it (what was learnt before was too dear), only those above count.

Guarantee: between `least` and `most`; `first` until enough batches have been seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.errors import FlowError

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Batches that are remembered, those that it takes to judge, and those that the middle is of.
_KEPT, _ENOUGH, _RECENT = 48, 3, 16
#: What is left of an error's weight with every batch that follows, and the errors that `first` counts as.
_FADES, _ASSUMED = 0.96, 3.0
#: In standard deviations: what one in ninety exceeds; beyond which errors count as if they were there; and
#: what half of all errors lie within.
_HIGHEST, _FAR_OUT, _HALF = 2.3, 3.0, 0.674


@dataclass(frozen=True)
class SafetyMarginSettings:
    """More headroom: fewer batches that take too long, more that is left out."""

    first: float = 0.08
    least: float = 0.05
    most: float = 0.3

    def __post_init__(self) -> None:
        if not 0 <= self.least <= self.first <= self.most < 1:
            raise FlowError(
                "Headroom is a part of the time, and begins between its least and its most",
                got=self,
                do="Give 0 <= least <= first <= most < 1",
            )

    @classmethod
    def always(cls, part: float) -> SafetyMarginSettings:
        return cls(part, part, part)


class SafetyMargin:
    """A part of the time, from the errors of predictions."""

    def __init__(self, settings: SafetyMarginSettings | None = None) -> None:
        self.settings = settings or SafetyMarginSettings()
        self._errors: list[float] = []

    def observe(self, predicted: float, took: float, batch_seconds: float) -> None:
        """A short batch is off by much of itself and little of the time there is: the latter counts."""
        self._errors = [*self._errors, (took - predicted) / max(predicted, batch_seconds / 2)][-_KEPT:]
        self.__dict__.pop("part", None)

    # Asked for many times a batch, and the same until the next error.
    @cached_property
    def part(self) -> float:
        """The headroom: a part of the time there is."""
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
        """Of errors for which `first` would be right."""
        return (self.settings.first / (1 - self.settings.first) / _HIGHEST) ** 2

    def snapshot(self) -> list[float]:
        return self._errors

    @classmethod
    def restore(cls, raw: Any, settings: SafetyMarginSettings | None = None) -> SafetyMargin:
        restored = cls(settings)
        restored._errors = list(raw)
        return restored


def _variance(off: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """How far errors lie from their middle, squared: on both sides, or above it where that is less."""
    usual = float(np.median(np.abs(off))) / _HALF
    squares = weights * np.minimum(np.abs(off), _FAR_OUT * usual) ** 2
    return float(min(squares.sum(), 2 * squares[off > 0].sum()) / weights.sum())
