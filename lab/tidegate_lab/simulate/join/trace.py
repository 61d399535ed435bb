"""The trace of a simulated run, tick by tick, and rates over any part of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegate.control.actuators.policy import Decision

COUNTED = ("offered", "fetched", "dropped", "comparisons", "outputs")
SECOND_US = 1_000_000


class Trace:
    """Counts per tick, and the decision that was in force."""

    def __init__(self, tick_us: int) -> None:
        self._tick_us = tick_us
        self._counts: dict[str, list[int]] = {name: [] for name in COUNTED}
        self.decisions: list[Decision] = []

    def add(self, decision: Decision, **counts: int) -> None:
        """One more tick."""
        self.decisions.append(decision)
        for name in COUNTED:
            self._counts[name].append(counts[name])

    def ticks(self, name: str) -> NDArray[np.int64]:
        """One of the counts, per tick."""
        return np.array(self._counts[name], np.int64)

    def total(self, name: str, begin: float = 0.0, end: float = float("inf")) -> int:
        """One of the counts, from one second of the run to another."""
        counts = self.ticks(name)
        first = round(begin * SECOND_US / self._tick_us)
        last = counts.size if np.isinf(end) else round(end * SECOND_US / self._tick_us)
        return int(counts[first:last].sum())

    def fractions(self) -> NDArray[np.float64]:
        """Fractions of the left and the right window that were processed, per tick (second axis: window)."""
        return np.array([[w.fraction for w in d.windows] for d in self.decisions], np.float64)
