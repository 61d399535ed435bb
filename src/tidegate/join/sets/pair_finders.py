"""How pairs of rows that match are found: what every way of finding them takes, gives and promises.

A `Matcher` is a condition and a way to find what fulfils it. It prepares one run of stored rows (rows in time
order) once: bitsets, or inverted lists. What is prepared is probed many times, each probing row with a range
of places of its own, the part of the window that it is compared with:

    stored rows   0 1 2 3 4 5 6 7 8 9 …                    sorted by time
    probing row k       [ starts[k] … ends[k] )            pairs (k, place), ordered by k, then by place

Guarantee: exactly the pairs that match, in that order, in chunks of at most as many as asked for: a row that
matches everything does not exhaust memory. A range that ends before it starts is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tidegate.errors import FlowError, StateError
from tidegate.join.sets.item_sets import ItemSets

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Probing rows and stored places of some pairs.
Chunk = tuple["NDArray[np.int64]", "NDArray[np.int64]"]
#: From (row, place) on, fill two arrays; how many pairs there are, and where to go on.
Step = Callable[[int, int, "NDArray[np.int64]", "NDArray[np.int64]"], tuple[int, int, int]]


class Prepared(Protocol):
    """One run of stored rows, ready to be probed."""

    @property
    def nbytes(self) -> int: ...

    def find(
        self, probing: ItemSets, starts: NDArray[np.int64], ends: NDArray[np.int64], at_most: int
    ) -> Iterator[Chunk]:
        """The pairs that match, in chunks of at most so many."""

    def cost(
        self, probing: ItemSets, starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Counted work per probing row: comparisons, or list entries read and lists looked up."""


class Matcher(Protocol):
    """Finds all pairs of a probing row and a stored row in that row's range of places."""

    def prepare(self, stored: ItemSets) -> Prepared:
        """What is worth keeping of these stored rows, for many probes."""


def in_chunks(step: Step, rows: int, pairs_most: int, at_most: int) -> Iterator[Chunk]:
    """Call a step until all rows are done; `pairs_most` is what ranges could hold at the very most."""
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
    """Compiled loops do not look where they read: what does not fit together must not reach them."""
    starts, ends = np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(ends, np.int64)
    if not starts.shape == ends.shape == (len(probing),) or probing.universe != stored.universe:
        raise StateError(
            "Probing rows, their ranges and stored rows do not fit together",
            got=f"{len(probing)} rows, {starts.shape} starts and {ends.shape} ends; items out of "
            f"{probing.universe} probing and {stored.universe} stored",
            why="Every probing row has one range, and both sides use the same codes",
        )
    alive = starts < ends
    if (alive & ((starts < 0) | (ends > len(stored)))).any():
        raise StateError(
            "A range of places lies outside the stored rows",
            got=f"{starts[alive].min()} … {ends[alive].max()} of {len(stored)} rows",
        )
    if at_most < 1:
        raise FlowError("A chunk of pairs holds at least one", got=at_most)
    return starts, ends


def range_lengths(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Stored rows per range: the comparisons of a probe without an index, and the most pairs it can find."""
    lengths: NDArray[np.int64] = np.maximum(ends - starts, 0)
    return lengths
