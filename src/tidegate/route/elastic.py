"""Decides how many instances a join runs on, between two bounds, given the time budget of a batch.

Beyond the papers: Ls-Stream names it as future work. The work of a batch is the total time of all
instances; on n instances it takes work / n, times the imbalance that balancing leaves. The target is the
fewest instances that are busy for at most `busy` of the budget.

    busy at the present number      0 ────── low ────────── busy ── high ────▶
                                      fewer   │   as many as now  │   more

Guarantee: between `low` and `high` nothing changes. A change must be due in `batches` batches in a row
(one, where the heaviest instance exceeds the budget). The number that a change leads to is busy at most
`busy`, above `low` and below `high`, so steady work causes one change. The memory is plain JSON.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError


@dataclass(frozen=True)
class Elastic:
    """Lower shares leave more room for bursts and need more instances."""

    least: int
    most: int
    #: Time budget of a batch.
    seconds: float
    busy: float = 0.6
    low: float = 0.3
    high: float = 0.8
    batches: int = 3

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most:
            raise FlowError(
                "The bounds of the number of instances must satisfy 1 <= least <= most",
                code="BALANCE_SCALE_RANGE",
                got=f"least {self.least}, most {self.most}",
                do="Give for example scale=(2, 8)",
            )
        # Twice the instances are half as busy: with less distance, a step down would follow a step up.
        if not (self.seconds > 0 and 0 < 2 * self.low <= self.busy <= self.high <= 1 and self.batches >= 1):
            raise FlowError(
                "A setting of autoscaling is out of range",
                code="BALANCE_SCALE_RANGE",
                got=self,
                why="With thresholds closer together the number of instances would oscillate",
                do="Give seconds > 0, 0 < 2 · low <= busy <= high <= 1 and batches >= 1; the defaults are "
                "0.3, 0.6, 0.8 and 3",
            )

    def wanted(
        self, seconds: NDArray[np.float64], memory: Mapping[str, Any]
    ) -> tuple[int, Mapping[str, Any]]:
        """The number of instances for the next batch, after one whose instances took these seconds."""
        present = int(seconds.size)
        if not self.least <= present <= self.most:
            return min(max(present, self.least), self.most), {}
        heaviest = float(seconds.max())
        busy = heaviest / self.seconds
        if self.low <= busy <= self.high:
            return present, {}
        fits = self._fewest(seconds)
        if fits == present or (fits > present) != (busy > self.high):
            return present, {}
        asked = 1 + (int(memory.get("asked", 0)) if memory.get("more") == (fits > present) else 0)
        if asked >= self.batches or busy > 1:
            return fits, {}
        return present, {"asked": asked, "more": fits > present}

    def _fewest(self, seconds: NDArray[np.float64]) -> int:
        """Instances that are busy for `busy` of the time, if they are as unevenly busy as now."""
        mean = float(seconds.mean())
        uneven = float(seconds.max()) / mean if mean > 0 else 1.0
        fits = math.ceil(float(seconds.sum()) * uneven / (self.busy * self.seconds) - 1e-9)
        return min(max(fits, self.least), self.most)
