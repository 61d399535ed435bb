"""The protocol of pair finders: what every one takes, returns and guarantees.

A `PairFinder` combines a condition with an algorithm that finds the pairs fulfilling it. It prepares one run
of stored rows (in time order) once: bitsets, or inverted lists. The prepared run is probed many times. Each
probing row has its own range of places, the part of the window that it is compared with:

    stored rows   0 1 2 3 4 5 6 7 8 9 …                    sorted by time
    probing row k       [ starts[k] … ends[k] )            pairs (k, place), ordered by k, then by place

Guarantee: exactly the matching pairs, in that order, in chunks of at most the size asked for, so that a row
that matches everything does not exhaust memory. A range that ends before it starts is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError, StateError
from tidegate.join.sets.item_sets import ItemSets

#: Probing rows and stored places of some pairs.
Chunk = tuple[NDArray[np.int64], NDArray[np.int64]]
#: Fill two arrays from (row, place) on; return the number of pairs and where to continue.
Step = Callable[[int, int, NDArray[np.int64], NDArray[np.int64]], tuple[int, int, int]]


class PreparedSets(Protocol):
    """One run of stored rows, ready to be probed."""

    @property
    def nbytes(self) -> int: ...

    def find(
        self, probing: ItemSets, starts: NDArray[np.int64], ends: NDArray[np.int64], at_most: int
    ) -> Iterator[Chunk]:
        """The matching pairs, in chunks of at most this many."""


class PairFinder(Protocol):
    """Finds all pairs of a probing row and a stored row in that row's range of places."""

    def prepare(self, stored: ItemSets) -> PreparedSets:
        """Prepare these stored rows for many probes."""


def in_chunks(step: Step, rows: int, pairs_most: int, at_most: int) -> Iterator[Chunk]:
    """Call a step until all rows are done; `pairs_most` bounds the number of pairs in the ranges."""
    size = max(1, min(at_most, pairs_most))
    row, place = 0, 0
    while row < rows:
        probing, places = np.empty(size, np.int64), np.empty(size, np.int64)
        found, row, place = step(row, place, probing, places)
        if 2 * found < size:
            # Do not keep two long arrays alive for a few pairs.
            probing, places = probing[:found].copy(), places[:found].copy()
        if found:
            yield probing[:found], places[:found]


def checked_ranges(
    probing: ItemSets, stored: ItemSets, starts: Any, ends: Any, at_most: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Compiled loops do not check bounds, so inconsistent arrays are refused here."""
    starts, ends = np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(ends, np.int64)
    if not starts.shape == ends.shape == (len(probing),) or probing.universe != stored.universe:
        raise StateError(
            "Probing rows, their ranges and stored rows do not fit together",
            code="INTERNAL_ARRAYS_INCONSISTENT",
            got=f"{len(probing)} rows, {starts.shape} starts and {ends.shape} ends; items out of "
            f"{probing.universe} probing and {stored.universe} stored",
        )
    alive = starts < ends
    if (alive & ((starts < 0) | (ends > len(stored)))).any():
        raise StateError(
            "A range lies outside the stored rows",
            code="INTERNAL_POSITION_OUT_OF_BOUNDS",
            got=f"{starts[alive].min()} … {ends[alive].max()} of {len(stored)} rows",
        )
    if at_most < 1:
        raise FlowError(
            "A chunk of pairs must hold at least one",
            code="INTERNAL_TUNING_INVALID",
            got=at_most,
        )
    return starts, ends


def range_lengths(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Stored rows per range: the comparisons of a probe without an index, and the most pairs it can find."""
    lengths: NDArray[np.int64] = np.maximum(ends - starts, 0)
    return lengths
