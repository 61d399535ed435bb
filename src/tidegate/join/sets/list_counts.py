"""Finds pairs of sets with enough common items by counting occurrences of stored rows in a probe's lists.

Paper: selective join, partial processing (indexed joins). The paper merges the lists of a probe with a
heap. We count in an array with one number per stored row (known as ScanCount), which needs no comparisons:

    lists of the row's items   7 ▸ 0 3 9     8 ▸ 3 4     9 ▸ 3 9        first pass: +1 at every place read
    counts                     1 0 0 3 1 0 0 0 0 2                      second pass: over the same places,
                                                                        test the count and reset it to 0

The second pass visits a place several times but finds its count once. So no list of touched rows is needed,
and the array is clean for the next row. Where the lists hold more entries than the range has rows, the
second pass runs over the range instead, in order; otherwise the few matching places are sorted.

Guarantee: as in `pair_finders.py`; Jaccard is decided by integers (`similarity.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.join.kernel_types import (
    NEW_BITS,
    NEW_PLACES,
    NEW_TIMES,
    NUMBER,
    PLACES,
    POSITIONS,
    inlined,
    kernel,
)
from tidegate.join.sets.item_sets import ItemSets
from tidegate.join.sets.pair_finders import Step
from tidegate.join.sets.similarity import fewest_common, least_common
from tidegate.join.sets.thresholds import Jaccard, Overlap

#: Entries of lists, and per probing item the part of them to read.
Lists = tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]


def count_step(
    condition: Overlap | Jaccard,
    probing: ItemSets,
    stored: ItemSets,
    lists: Lists,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> Step:
    """A step that finds the next pairs; it owns the counts, which are zero between calls."""
    own = int(probing.sizes.max(initial=0))
    least = least_common(condition, own + int(stored.sizes.max(initial=0)))
    fewest = fewest_common(condition, own)[probing.sizes]
    # Counts are accessed at random, so they should fit into the L1 cache: a byte each where that is enough.
    narrow = np.diff(probing.bounds).max(initial=0) < 256
    find, kind = (_find_narrow, np.uint8) if narrow else (_find_wide, np.int32)
    counts, passing = np.zeros(len(stored), kind), np.empty(len(stored), np.int32)
    given = probing.bounds, probing.sizes, stored.sizes, *lists, starts, ends, least, fewest

    def step(row: int, place: int, rows: Any, places: Any) -> tuple[int, int, int]:
        found: tuple[int, int, int] = find(*given, row, place, counts, passing, rows, places)
        return found

    return step


@inlined
def _count(entries: Any, begins: Any, stops: Any, first: Any, last: Any, counts: Any) -> Any:
    """Add one at every place read; return the number of entries read."""
    read = 0
    for at in range(first, last):
        part = entries[begins[at] : stops[at]]
        read += part.size
        for one in range(part.size):
            counts[np.uint32(part[one])] += 1
    return read


@inlined
def _collect(
    entries: Any, begins: Any, stops: Any, first: Any, last: Any, counts: Any, fewest: Any,
    start: Any, end: Any, own: Any, sizes: Any, least: Any, passing: Any,
) -> Any:  # fmt: skip
    """The matching places, ascending, found through the lists; all counts are reset to zero."""
    found = 0
    for at in range(first, last):
        part = entries[begins[at] : stops[at]]
        for one in range(part.size):
            place = np.uint32(part[one])
            common = counts[place]
            counts[place] = 0
            # The first test is rarely true and shields the others.
            if common >= fewest and start <= place < end and common >= least[own + sizes[place]]:
                passing[found] = part[one]
                found += 1
    if found > 1:
        passing[:found].sort()
    return found


@inlined
def _sweep(
    counts: Any, fewest: Any, start: Any, end: Any, own: Any, sizes: Any, least: Any, passing: Any
) -> Any:
    """The matching places, ascending, found by scanning the range."""
    found = 0
    for place in range(start, end):
        if counts[place] >= fewest and counts[place] >= least[own + sizes[place]]:
            passing[found] = place
            found += 1
    counts[:] = 0
    return found


def _search(
    bounds: Any, own_sizes: Any, sizes: Any, entries: Any, begins: Any, stops: Any, starts: Any, ends: Any,
    least: Any, fewest: Any, row: Any, place: Any, counts: Any, passing: Any, rows: Any, places: Any,
) -> Any:  # fmt: skip
    """Continue at `place` of `row` until both arrays are full; return the pairs and where to continue."""
    found = 0
    while row < starts.size:
        start, end = max(place, starts[row]), ends[row]
        first, last = bounds[row], bounds[row + 1]
        matching = 0
        if start < end and last - first >= fewest[row]:
            read = _count(entries, begins, stops, first, last, counts)
            own = own_sizes[row]
            if read > counts.size:
                matching = _sweep(counts, fewest[row], start, end, own, sizes, least, passing)
            else:
                matching = _collect(
                    entries, begins, stops, first, last, counts, fewest[row],
                    start, end, own, sizes, least, passing,
                )  # fmt: skip
        fits = min(matching, rows.size - found)
        for one in range(fits):
            rows[found + one], places[found + one] = row, passing[one]
        found += fits
        if fits < matching:
            return found, row, np.int64(passing[fits])
        row, place = row + 1, 0
    return found, row, 0


_SETS = (
    POSITIONS,
    POSITIONS,
    POSITIONS,
    PLACES,
    POSITIONS,
    POSITIONS,
    POSITIONS,
    POSITIONS,
    POSITIONS,
    POSITIONS,
)
_find_narrow = kernel(*_SETS, NUMBER, NUMBER, NEW_BITS, NEW_PLACES, NEW_TIMES, NEW_TIMES)(_search)
_find_wide = kernel(*_SETS, NUMBER, NUMBER, NEW_PLACES, NEW_PLACES, NEW_TIMES, NEW_TIMES)(_search)
