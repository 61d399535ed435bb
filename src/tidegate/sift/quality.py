"""Quality: how complete queries really are, counted on rows and not foreseen from regions.

Paper: sifters, section II-C and equations 1 and 2:

    C(q) = rows of q that are kept / rows of q           a query without any row is complete
    V(q) = α·C(q) + 1 − α                                may go below zero where α > 1
    V*   = Σ w·V(q)

Rows are kept or not, or kept with a probability: then C is what can be expected. This is for experiments and
checks, not for the way of the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.sift.boxes import Boxes
from tidegate.sift.compiled import compiled
from tidegate.sift.held_rows import by_first_axis, held

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Quality:
    """Rows that each query asks for, and those that it gets."""

    rows: NDArray[np.int64]
    kept: NDArray[np.float64]

    @property
    def completeness(self) -> NDArray[np.float64]:
        """C of every query."""
        return np.divide(self.kept, self.rows, out=np.ones(len(self.rows)), where=self.rows > 0)

    def overall_qos(self, weights: NDArray[np.float64], alphas: NDArray[np.float64]) -> float:
        """V*; weights add up to 1."""
        return float(weights @ (alphas * self.completeness + 1 - alphas))


def measure(
    rows: NDArray[np.float64], boxes: Boxes, keep: NDArray[np.float64] | NDArray[np.bool_]
) -> Quality:
    """Count the rows of every query, and those kept, by mask or probability; rows are (rows, axes)."""
    order, at = by_first_axis(rows)
    asked, kept = _count(
        at, keep[order].astype(np.float64), boxes.low, boxes.high, boxes.owner, boxes.queries
    )
    return Quality(asked, kept)


@compiled
def _count(
    at: NDArray[np.int64],
    keep: NDArray[np.float64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    owner: NDArray[np.int32],
    queries: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Rows asked for and rows kept, per query."""
    asked, kept, found = np.zeros(queries, np.int64), np.zeros(queries), np.empty(len(keep), np.int64)
    for box in range(len(owner)):
        count = held(at, low, high, box, found)
        asked[owner[box]] += count
        for row in found[:count]:
            kept[owner[box]] += keep[row]
    return asked, kept
