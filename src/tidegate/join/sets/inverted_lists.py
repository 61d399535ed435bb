"""Inverted lists of stored rows: for every item the places of the rows that contain it.

Paper: selective join, partial processing (indexed joins): both of its variants.

    order="time"         item 7 ▸ 0 3 4 9 12 17 …       places ascend, as times do: two binary searches find
                                   [──────)             the part inside a range
    order="identifier"   item 7 ▸ 9 0 17 3 12 4 …       sorted by an identifier unrelated to time: all of it
                                                        is read, entries outside the range are skipped

With single values (sets of one item) every list is the bucket of a hash index, and a probe reads one bucket.

A probe reads the lists of its items (`list_counts.py`, `list_sums.py`) instead of comparing rows. Rows
without a common item are never touched, which is nearly all of them when there are many items.

Guarantee: as in `pair_finders.py`. Where we differ: the paper keeps balanced trees or linked lists that
grow and shrink row by row. Stored runs here never change and expire as a whole, so a list is a part of one
array, built by counting. The paper's identifier is the address of a row; ours is a scrambled place.

Cost: list entries read, plus one for every list looked up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate.join.kernel_types import NUMBER, PLACES, POSITIONS, inlined, kernel
from tidegate.join.sets.item_sets import ItemSets
from tidegate.join.sets.list_counts import count_step
from tidegate.join.sets.list_sums import sum_step
from tidegate.join.sets.pair_finders import Chunk, checked_ranges, in_chunks, range_lengths
from tidegate.join.sets.similarity import weights_of
from tidegate.join.sets.thresholds import InnerProduct, SetCondition

ORDERS = ("time", "identifier")


@dataclass(frozen=True)
class InvertedLists:
    """Any condition on sets, with an index whose lists are sorted by time or by identifier."""

    condition: SetCondition
    order: str = "time"

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise FlowError(
                "Unknown order of inverted lists",
                code="INTERNAL_TUNING_INVALID",
                got=self.order,
            )

    def prepare(self, stored: ItemSets) -> PreparedLists:
        rows = np.arange(len(stored), dtype=np.int64)
        if self.order == "identifier":
            rows = np.argsort(_identifiers(rows), kind="stable")
        bounds, entries, origins = _lists(stored.bounds, stored.items, stored.universe, rows)
        weighted = isinstance(self.condition, InnerProduct)
        weights = weights_of(stored)[origins] if weighted else np.zeros(0)
        return PreparedLists(self.condition, stored, bounds, entries, weights, self.order == "time")


@dataclass(frozen=True, eq=False)
class PreparedLists:
    """Stored rows and the lists of their items: item i has entries[bounds[i]:bounds[i + 1]]."""

    condition: SetCondition
    stored: ItemSets
    bounds: NDArray[np.int64]
    entries: NDArray[np.int32]
    #: The weight that goes with each entry; empty where weights do not matter.
    weights: NDArray[np.float64]
    by_time: bool

    @property
    def nbytes(self) -> int:
        return self.bounds.nbytes + self.entries.nbytes + self.weights.nbytes + self.stored.nbytes

    def find(
        self, probing: ItemSets, starts: NDArray[np.int64], ends: NDArray[np.int64], at_most: int
    ) -> Iterator[Chunk]:
        starts, ends = checked_ranges(probing, self.stored, starts, ends, at_most)
        parts = self.parts(probing, starts, ends)
        lists = self.entries, *parts
        if isinstance(self.condition, InnerProduct):
            step = sum_step(self.condition, probing, self.stored, lists, self.weights, starts, ends)
        else:
            step = count_step(self.condition, probing, self.stored, lists, starts, ends)
        return in_chunks(step, len(probing), int(range_lengths(starts, ends).sum()), at_most)

    def parts(self, probing: ItemSets, starts: Any, ends: Any) -> tuple[Any, Any]:
        """Per probing item, begin and end of the entries that are read of its list."""
        lists = self.bounds, self.entries, self.by_time
        begins, stops = _cut(probing.bounds, probing.items, starts, ends, *lists)
        return begins, stops


def _identifiers(rows: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A distinct number per row, unrelated to its time: the row times an odd factor, modulo 2⁶⁴."""
    return rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)


@kernel(POSITIONS, POSITIONS, NUMBER, POSITIONS)
def _lists(bounds: Any, items: Any, universe: Any, rows: Any) -> Any:
    """Lists built by counting, rows in the order given; per entry also the position of its item."""
    ends = np.zeros(universe + 1, np.int64)
    for at in range(items.size):
        ends[items[at] + 1] += 1
    for item in range(universe):
        ends[item + 1] += ends[item]
    fill = ends[:-1].copy()
    entries, origins = np.empty(items.size, np.int32), np.empty(items.size, np.int64)
    for row in rows:
        for at in range(bounds[row], bounds[row + 1]):
            to = fill[items[at]]
            entries[to], origins[to] = row, at
            fill[items[at]] = to + 1
    return ends, entries, origins


@inlined
def _first_from(entries: Any, begin: Any, end: Any, place: Any) -> Any:
    """The first of the ascending entries begin … end - 1 that is not before `place`."""
    while begin < end:
        middle = (begin + end) >> 1
        if entries[middle] < place:
            begin = middle + 1
        else:
            end = middle
    return begin


@kernel(POSITIONS, POSITIONS, POSITIONS, POSITIONS, POSITIONS, PLACES, NUMBER)
def _cut(
    bounds: Any, items: Any, starts: Any, ends: Any, list_bounds: Any, entries: Any, by_time: Any
) -> Any:
    """Per probing item the part of its list to read: the entries in the row's range, or the whole list."""
    begins, stops = np.zeros(items.size, np.int64), np.zeros(items.size, np.int64)
    for row in range(starts.size):
        start, end = starts[row], ends[row]
        if start >= end:
            continue
        for at in range(bounds[row], bounds[row + 1]):
            begin, stop = list_bounds[items[at]], list_bounds[items[at] + 1]
            if by_time and begin < stop:
                if entries[begin] < start:
                    begin = _first_from(entries, begin, stop, start)
                if begin < stop and entries[stop - 1] >= end:
                    stop = _first_from(entries, begin, stop, end)
            begins[at], stops[at] = begin, stop
    return begins, stops
