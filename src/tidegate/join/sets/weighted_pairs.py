"""Finds pairs of weighted sets with a large enough inner product, without an index.

Paper: selective join, motivation (similar news items: a windowed inner product join).

The weights of one probing row are scattered into an array with a place per item. Then every stored row in
range reads its own items from it, in ascending order. Merging two sorted lists of items gives the same
sums, but takes an unpredictable branch per item.

Guarantee: as in `pair_finders.py`; sums are added in ascending order of items, and only over common items
(weight 0 on one side and infinity on the other give NaN, as they should).
Cost: a comparison per stored row in range.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.join.kernel_types import (
    NEW_BITS,
    NEW_TIMES,
    NEW_WEIGHTS,
    NUMBER,
    POSITIONS,
    REAL,
    WEIGHTS,
    kernel,
)
from tidegate.join.sets.item_sets import ItemSets
from tidegate.join.sets.pair_finders import Chunk, checked_ranges, in_chunks, range_lengths
from tidegate.join.sets.similarity import weights_of
from tidegate.join.sets.thresholds import InnerProduct


@dataclass(frozen=True)
class Weighted:
    """Inner product without an index."""

    condition: InnerProduct

    def prepare(self, stored: ItemSets) -> PreparedWeights:
        weights_of(stored)
        return PreparedWeights(self.condition, stored)


@dataclass(frozen=True, eq=False)
class PreparedWeights:
    """Stored rows; nothing to prepare."""

    condition: InnerProduct
    stored: ItemSets

    @property
    def nbytes(self) -> int:
        return self.stored.nbytes

    def find(
        self, probing: ItemSets, starts: NDArray[np.int64], ends: NDArray[np.int64], at_most: int
    ) -> Iterator[Chunk]:
        starts, ends = checked_ranges(probing, self.stored, starts, ends, at_most)
        own, stored = weights_of(probing), self.stored
        sets = probing.bounds, probing.items, own, stored.bounds, stored.items, weights_of(stored)
        given = *sets, starts, ends, self.condition.at_least
        spread, has = np.zeros(stored.universe), np.zeros(stored.universe, np.uint8)

        def step(row: int, place: int, rows: Any, places: Any) -> tuple[int, int, int]:
            found: tuple[int, int, int] = _find(*given, row, place, spread, has, rows, places)
            return found

        return in_chunks(step, len(probing), int(range_lengths(starts, ends).sum()), at_most)


@kernel(
    POSITIONS, POSITIONS, WEIGHTS, POSITIONS, POSITIONS, WEIGHTS, POSITIONS, POSITIONS,
    REAL, NUMBER, NUMBER, NEW_WEIGHTS, NEW_BITS, NEW_TIMES, NEW_TIMES,
)  # fmt: skip
def _find(
    bounds: Any, items: Any, own: Any, stored_bounds: Any, stored: Any, weights: Any, starts: Any, ends: Any,
    at_least: Any, row: Any, place: Any, spread: Any, has: Any, rows: Any, places: Any,
) -> Any:  # fmt: skip
    """Continue at `place` of `row` until both arrays are full; return the pairs and where to continue."""
    found = 0
    while row < starts.size:
        place, end, full = max(place, starts[row]), ends[row], False
        for at in range(bounds[row], bounds[row + 1]):
            spread[items[at]], has[items[at]] = own[at], 1
        while place < end and not full:
            total = 0.0
            for at in range(np.uint64(stored_bounds[place]), np.uint64(stored_bounds[place + 1])):
                item = np.uint64(stored[at])
                # A select instead of a branch: whether an item is common is unpredictable.
                product = spread[item] * weights[at]
                total += product if has[item] else 0.0
            if total >= at_least:
                full = found == rows.size
                if not full:
                    rows[found], places[found] = row, place
                    found += 1
            place += int(not full)
        for at in range(bounds[row], bounds[row + 1]):
            has[items[at]] = 0
        if full:
            return found, row, place
        row, place = row + 1, 0
    return found, row, 0
