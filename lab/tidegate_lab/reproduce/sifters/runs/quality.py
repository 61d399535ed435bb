"""Quality: how complete queries really are, counted on rows and not foreseen from regions.

Paper: sifters, section II-C and equations 1 and 2:

    C(q) = rows of q that are kept / rows of q           a query without any row is complete
    V(q) = α·C(q) + 1 − α                                may go below zero where α > 1
    V*   = Σ w·V(q)

Rows are kept or not, or kept with a probability: then C is what can be expected. Which rows a query asks for
does not depend on what is dropped: `answers` finds them once, for any number of filters to be judged by.
Every row is compared with every box that holds it on the first axis; this is for experiments and checks, not
for the way of the data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.kernels import compiled
from tidegate.sift.queries.axes import places
from tidegate.sift.queries.boxes import Boxes


@dataclass(frozen=True, eq=False)
class Quality:
    """Rows that each query asks for, and those that it gets."""

    rows: NDArray[np.int64]
    kept: NDArray[np.float64]

    @property
    def completeness(self) -> NDArray[np.float64]:
        """C of every query."""
        return np.divide(self.kept, self.rows, out=np.ones(len(self.rows)), where=self.rows > 0)

    def scaled(self, share: float) -> Quality:
        """Were only this share of the kept rows kept, whichever they are."""
        return Quality(self.rows, self.kept * share)

    def overall_qos(self, weights: NDArray[np.float64], alphas: NDArray[np.float64]) -> float:
        """V*; weights add up to 1."""
        return float(weights @ (alphas * self.completeness + 1 - alphas))


@dataclass(frozen=True, eq=False)
class Answers:
    """Which rows each query asks for: those of query q are `row[ends[q - 1] : ends[q]]`."""

    row: NDArray[np.int64]
    ends: NDArray[np.int64]

    @property
    def rows(self) -> NDArray[np.int64]:
        """How many rows each query asks for."""
        return np.diff(self.ends, prepend=0)

    def quality(self, keep: NDArray[np.float64] | NDArray[np.bool_]) -> Quality:
        """What queries get of rows that are kept, by mask or probability."""
        rows = self.rows
        query = np.repeat(np.arange(len(rows)), rows)
        kept = np.bincount(query, weights=keep[self.row], minlength=len(rows))
        return Quality(rows, kept.astype(np.float64))


def answers(rows: NDArray[np.float64], boxes: Boxes) -> Answers:
    """The rows that every query asks for; rows are (rows, axes)."""
    order = np.argsort(rows[:, 0])
    at = np.ascontiguousarray(places(rows[order]).T)
    by_owner = np.argsort(boxes.owner, kind="stable")
    found, ends = _find(at, boxes.low[by_owner], boxes.high[by_owner])
    last_box = np.cumsum(np.bincount(boxes.owner, minlength=boxes.queries))
    return Answers(order[found], ends[last_box])


def measure(
    rows: NDArray[np.float64], boxes: Boxes, keep: NDArray[np.float64] | NDArray[np.bool_]
) -> Quality:
    """Count the rows of every query, and those kept."""
    return answers(rows, boxes).quality(keep)


@compiled
def _find(
    at: NDArray[np.int64], low: NDArray[np.int64], high: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows in each box, box by box, and how many lie in the first so many boxes.

    `at` has the places of rows by axis, sorted by the first.
    """
    found, ends = np.empty(len(at[0]) + 1, np.int64), np.zeros(len(low) + 1, np.int64)
    first, filled = at[0], 0
    for box in range(len(low)):
        begin, end = np.searchsorted(first, low[box, 0]), np.searchsorted(first, high[box, 0])
        if filled + end - begin > len(found):
            found = np.concatenate((found, np.empty(len(found) + end - begin, np.int64)))
        for row in range(begin, end):
            inside = True
            for k in range(1, len(at)):
                inside &= low[box, k] <= at[k, row] < high[box, k]
            found[filled] = row
            filled += inside
        ends[box + 1] = filled
    return found[:filled], ends
