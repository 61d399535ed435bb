"""How much of the time is left free for what cannot be foreseen: as much as predictions were off by.

Ours. A fixed headroom wastes time on a quiet machine and is too small on a busy one. What a batch took is
compared with what was predicted before it ran, so the error holds all of it: costs, rows, neighbours. The
headroom is the error that one batch in a hundred and sixty would exceed, were errors normal; it is taken from
quartiles, so a single batch that goes wrong changes nothing.

Guarantee: between `least` and `most`; `first` until enough batches have been seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tidegate.errors import FlowError, explain

#: Batches that are remembered, and those that it takes to judge. Of half as many, quartiles jump by chance,
#: and each jump upwards sheds at once: levels would not come to rest.
_KEPT, _ENOUGH = 48, 10
#: Of a normal distribution, in standard deviations: the upper quartile, and what one in 160 exceeds.
_QUARTILE, _HIGHEST = 0.674, 2.5


@dataclass(frozen=True)
class HeadroomSettings:
    """More headroom: fewer batches that take too long, more that is left out."""

    first: float = 0.15
    least: float = 0.05
    most: float = 0.3

    def __post_init__(self) -> None:
        if not 0 <= self.least <= self.first <= self.most < 1:
            raise FlowError(
                explain(
                    "Headroom is a part of the time, and begins between its least and its most",
                    got=self,
                    do="Give 0 <= least <= first <= most < 1",
                )
            )

    @classmethod
    def always(cls, part: float) -> HeadroomSettings:
        return cls(part, part, part)


class Headroom:
    """A part of the time, from the errors of predictions."""

    def __init__(self, settings: HeadroomSettings | None = None) -> None:
        self.settings = settings or HeadroomSettings()
        self._errors: list[float] = []

    def observe(self, predicted: float, took: float, batch_seconds: float) -> None:
        """A short batch is off by much of itself and little of the time there is: the latter counts."""
        self._errors = [*self._errors, (took - predicted) / max(predicted, batch_seconds / 2)][-_KEPT:]
        self.__dict__.pop("part", None)

    # Asked for many times a batch, and the same until the next error.
    @cached_property
    def part(self) -> float:
        if len(self._errors) < _ENOUGH:
            return self.settings.first
        middle, upper = np.quantile(self._errors, [0.5, 0.75])
        high = middle + _HIGHEST / _QUARTILE * (upper - middle)
        return float(np.clip(high / (1 + max(0.0, high)), self.settings.least, self.settings.most))

    def snapshot(self) -> list[float]:
        return self._errors

    @classmethod
    def restore(cls, raw: Any, settings: HeadroomSettings | None = None) -> Headroom:
        restored = cls(settings)
        restored._errors = list(raw)
        return restored
