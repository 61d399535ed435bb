"""Finds pairs of weighted sets with a large enough inner product by adding along the lists of a probing row.

Paper: selective join, motivation (inner product joins) and partial processing (indexed joins).

As `list_counts.py`, with sums in place of counts. Lists are read in ascending order of items, so every sum
is added in that order, as `similarity.py` promises: all pair finders decide alike, to the last bit. The
threshold is above zero, so a place whose sum has been taken and reset to zero cannot match a second time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.join.kernel_types import (
    NEW_PLACES,
    NEW_TIMES,
    NEW_WEIGHTS,
    NUMBER,
    PLACES,
    POSITIONS,
    REAL,
    WEIGHTS,
    inlined,
    kernel,
)
from tidegate.join.sets.item_sets import ItemSets
from tidegate.join.sets.list_counts import Lists
from tidegate.join.sets.pair_finders import Step
from tidegate.join.sets.similarity import weights_of
from tidegate.join.sets.thresholds import InnerProduct


def sum_step(
    condition: InnerProduct,
    probing: ItemSets,
    stored: ItemSets,
    lists: Lists,
    list_weights: NDArray[np.float64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> Step:
    """A step that finds the next pairs; it owns the sums, which are zero between calls."""
    sums, passing = np.zeros(len(stored)), np.empty(len(stored), np.int32)
    given = probing.bounds, weights_of(probing), *lists, list_weights, starts, ends, condition.at_least

    def step(row: int, place: int, rows: Any, places: Any) -> tuple[int, int, int]:
        found: tuple[int, int, int] = _find(*given, row, place, sums, passing, rows, places)
        return found

    return step


@inlined
def _add(
    own: Any, entries: Any, weights: Any, begins: Any, stops: Any, first: Any, last: Any, sums: Any
) -> Any:
    for at in range(first, last):
        part, theirs = entries[begins[at] : stops[at]], weights[begins[at] : stops[at]]
        for one in range(part.size):
            sums[np.uint32(part[one])] += own[at] * theirs[one]


@inlined
def _collect(
    entries: Any, begins: Any, stops: Any, first: Any, last: Any,
    sums: Any, at_least: Any, start: Any, end: Any, passing: Any,
) -> Any:  # fmt: skip
    """The matching places, ascending; all sums are reset to zero."""
    found = 0
    for at in range(first, last):
        part = entries[begins[at] : stops[at]]
        for one in range(part.size):
            place = np.uint32(part[one])
            total = sums[place]
            sums[place] = 0.0
            if total >= at_least and start <= place < end:
                passing[found] = part[one]
                found += 1
    if found > 1:
        passing[:found].sort()
    return found


@kernel(
    POSITIONS, WEIGHTS, PLACES, POSITIONS, POSITIONS, WEIGHTS, POSITIONS, POSITIONS,
    REAL, NUMBER, NUMBER, NEW_WEIGHTS, NEW_PLACES, NEW_TIMES, NEW_TIMES,
)  # fmt: skip
def _find(
    bounds: Any, own: Any, entries: Any, begins: Any, stops: Any, weights: Any, starts: Any, ends: Any,
    at_least: Any, row: Any, place: Any, sums: Any, passing: Any, rows: Any, places: Any,
) -> Any:  # fmt: skip
    """Continue at `place` of `row` until both arrays are full; return the pairs and where to continue."""
    found = 0
    while row < starts.size:
        start, end = max(place, starts[row]), ends[row]
        first, last = bounds[row], bounds[row + 1]
        matching = 0
        if start < end:
            _add(own, entries, weights, begins, stops, first, last, sums)
            matching = _collect(
                entries, begins, stops, first, last, sums, at_least, start, end, passing
            )  # fmt: skip
        fits = min(matching, rows.size - found)
        for one in range(fits):
            rows[found + one], places[found + one] = row, passing[one]
        found += fits
        if fits < matching:
            return found, row, np.int64(passing[fits])
        row, place = row + 1, 0
    return found, row, 0
