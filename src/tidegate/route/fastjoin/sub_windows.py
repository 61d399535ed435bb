"""The windowed load vector: counts of the last few sub-windows, the oldest dropped when a new one is added.

Paper: FastJoin, section III-E. "For each worker instance, we use a fixed-size vector … every element means
|R| in a sub-window. When the expired tuples are removed, the head of the vector would be popped."

        ┌────┬────┬────┬────┐
    ◀── │ −3 │ −2 │ −1 │ new│ ◀──      total() = sum over the window;  mean() = mean per sub-window
        └────┴────┴────┴────┘

Fed with arrivals, its total is |R| of a windowed join, without reading the state. Tidegate's state knows
its row counts, so the `fastjoin` strategy feeds |R| and φ of each batch instead and judges imbalance by
their mean: a single odd batch then moves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError


@dataclass(frozen=True)
class SubWindows:
    """At most `size` arrays of one shape, oldest first."""

    size: int
    counts: tuple[NDArray[np.float64], ...] = ()

    def __post_init__(self) -> None:
        if self.size < 1:
            raise FlowError(
                "A window needs at least one sub-window",
                code="BALANCE_SETTING_INVALID",
                got=self.size,
                do="Give 1 sub-window or more",
            )

    def push(self, newest: NDArray[np.float64]) -> SubWindows:
        """The vector with one more sub-window; a full vector drops its oldest."""
        return SubWindows(self.size, (*self.counts, newest)[-self.size :])

    def total(self) -> NDArray[np.float64]:
        return np.asarray(np.sum(self.counts, axis=0))

    def mean(self) -> NDArray[np.float64]:
        """The mean over the sub-windows so far."""
        return np.asarray(np.mean(self.counts, axis=0))

    def to_json(self) -> list[Any]:
        return [counts.tolist() for counts in self.counts]

    @classmethod
    def from_json(cls, size: int, raw: Sequence[Any]) -> SubWindows:
        """Restore a vector; a longer one loses its oldest sub-windows."""
        return cls(size, tuple(np.asarray(counts, np.float64) for counts in raw[-size:]))
