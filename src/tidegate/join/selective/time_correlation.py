"""Time correlation adaptation: the order in which the basic windows of one window are worth probing.

Paper: selective join, time correlation adaptation, algorithm 2.

Fully processed rows count their comparisons and matches per age of basic window. Every period the ages are
ordered by matches per comparison, the most productive first, and counting starts again.

Guarantee: the order is a function of the observations since the last adaptation and of the previous order
alone; `snapshot` → `restore` gives the same answers. Ages of equal value are taken newest first, so without
any observation the result is plain partial processing. An age that was never seen counts as an average one in
the order, and not at all in the value of the window.

Where we differ: the paper divides the matches by an expected number of comparisons (rates times basic
window). We divide by the comparisons actually made, so that the incomplete first and last basic windows,
and rates that change within a period, do not distort the order. An age without comparisons in a period
keeps its value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import StateError
from tidegate.model.json_values import Json


class TimeCorrelation:
    """The priorities of one window's basic windows."""

    def __init__(self, ages: int) -> None:
        # Floats: matches may be weighted, and candidate pairs are estimates for some rows.
        self._matches: NDArray[np.float64] = np.zeros(ages, np.float64)
        self._comparisons: NDArray[np.float64] = np.zeros(ages, np.float64)
        #: Matches per comparison, by age, as of the last adaptation; NaN for ages that were never seen.
        self.values: NDArray[np.float64] = np.full(ages, np.nan)

    @property
    def order(self) -> tuple[int, ...]:
        """Ages, the most productive first."""
        known = np.where(np.isnan(self.values), self.value, self.values)
        return tuple(np.argsort(-known, kind="stable").tolist())

    @property
    def value(self) -> float:
        """Expected matches of one comparison with any row of the window: the mean over its basic windows."""
        seen = self.values[~np.isnan(self.values)]
        return float(seen.mean()) if seen.size else 0.0

    def observe(self, matches: NDArray[Any], comparisons: NDArray[Any]) -> None:
        """Add the matches and comparisons of fully processed rows, by age."""
        if not matches.shape == comparisons.shape == self.values.shape:
            raise StateError(
                "Match counts do not fit the basic windows of the join",
                code="INTERNAL_ARRAYS_INCONSISTENT",
                got=f"{matches.size} matches and {comparisons.size} comparisons, {self.values.size} ages",
            )
        self._matches += matches
        self._comparisons += comparisons

    def adapt(self) -> tuple[int, ...]:
        """End the period and return the new order."""
        seen = self._comparisons > 0
        self.values[seen] = self._matches[seen] / self._comparisons[seen]
        self._matches[:] = 0
        self._comparisons[:] = 0
        return self.order

    def snapshot(self) -> Json:
        return {
            "matches": self._matches.tolist(),
            "comparisons": self._comparisons.tolist(),
            "values": [None if np.isnan(value) else value for value in self.values.tolist()],
        }

    @classmethod
    def restore(cls, raw: Mapping[str, Any]) -> TimeCorrelation:
        restored = cls(len(raw["values"]))
        restored._matches[:] = raw["matches"]
        restored._comparisons[:] = raw["comparisons"]
        restored.values[:] = np.array(raw["values"], np.float64)
        return restored
