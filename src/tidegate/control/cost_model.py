"""What a batch's time is made of: fixed + per row + per comparison + per output, learnt while running.

Least squares over all batches so far, where a batch counts `forgetting` times as much with every batch that
follows it, so that a machine that becomes slower is noticed. Costs are never negative. Steady input cannot
tell the four apart; what the data leave open stays near the last answer, and where there is none, near
"comparisons cost everything", the assumption of the selective join paper (section 4.1).

Guarantee: a function of the batches observed, in order; exact (up to the pull of the last answer) as soon as
four batches that differ enough have been seen; `snapshot` → `restore` gives the same answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.errors import FlowError, explain

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: How strongly fixed, row, comparison and output cost hold on to their last values, relative to the data.
#: The comparison gives way first: unexplained time is put down to it.
_HOLD = np.array([1e-3, 1e-3, 1e-4, 1e-3])


@dataclass(frozen=True)
class CostSettings:
    """Less forgetting averages more noise away, more follows a changing machine faster."""

    forgetting: float = 0.85

    def __post_init__(self) -> None:
        if not 0 < self.forgetting <= 1:
            raise FlowError(
                explain(
                    "A batch must keep some of its weight, and cannot gain any",
                    got=f"forgetting {self.forgetting}",
                    do="Give a number above 0, at most 1",
                )
            )


class CostModel:
    """Seconds of a batch from its rows, comparisons and outputs."""

    def __init__(self, settings: CostSettings | None = None) -> None:
        self.settings = settings or CostSettings()
        #: Seconds: fixed, per row, per comparison, per output.
        self.costs: NDArray[np.float64] = np.zeros(4)
        self._products = np.zeros((4, 4))
        self._times = np.zeros(4)

    def observe(self, rows: float, comparisons: float, outputs: float, seconds: float) -> None:
        """Learn from one batch."""
        made = np.array([1.0, rows, comparisons, outputs])
        self._products = self.settings.forgetting * self._products + np.outer(made, made)
        self._times = self.settings.forgetting * self._times + made * seconds
        self._fit()

    def predict(self, rows: float, comparisons: float, outputs: float) -> float:
        """Seconds that such a batch will take."""
        return float(self.costs @ np.array([1.0, rows, comparisons, outputs]))

    def _fit(self) -> None:
        """Least squares, held near the last answer; a negative cost becomes zero and we solve again."""
        size = np.sqrt(np.diag(self._products))
        used = size > 0
        # In units of what each part contributed, so that seconds per row and per batch can be weighed alike.
        unit = np.where(used, size, 1.0)
        last = self.costs * unit
        products = self._products / np.outer(unit, unit) + np.diag(_HOLD)
        times = self._times / unit + _HOLD * last
        while True:
            parts = np.zeros(4)
            parts[used] = np.linalg.solve(products[np.ix_(used, used)], times[used])
            if (parts >= 0).all():
                break
            used &= parts > 0
        self.costs = parts / unit

    def snapshot(self) -> dict[str, Any]:
        return {
            "costs": self.costs.tolist(),
            "products": self._products.tolist(),
            "times": self._times.tolist(),
        }

    @classmethod
    def restore(cls, raw: Mapping[str, Any], settings: CostSettings | None = None) -> CostModel:
        restored = cls(settings)
        restored.costs = np.array(raw["costs"], np.float64)
        restored._products = np.array(raw["products"], np.float64)
        restored._times = np.array(raw["times"], np.float64)
        return restored
