"""Compares the choice by content with the best choice by time alone, at equal counted cost with estimation.

Beyond the selective join paper. Both may spend a fraction r of the cost of comparing everything:

    by time      the best cells of both windows by their true matches per comparison (`clairvoyant.py`), the
                 last in part; the same for every row
    by content   a batch of rows of both streams, as long as a slot, divides its budget among (row, slot)
                 cells by estimated value, less the cost of estimation: the code that tasks on Spark run
                 (`join/selective/content_choice.py`)

The statistics of a slot cover the rows stored when its batch probes: the batch stores its rows first, so the
newest slot is included. Nothing is learnt from matches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import StateError
from tidegate.join.kernel_types import NEW_TIMES, NUMBER, POSITIONS, kernel
from tidegate.join.selective.content_choice import Direction, StoredItems, choose_by_content
from tidegate.join.sets.item_sets import ItemSets, bitsets, item_sets
from tidegate_lab.simulate.join.basic_windows import Windows, ranges_by_age
from tidegate_lab.simulate.join.counted_conditions import CountedOverlap
from tidegate_lab.workloads.selective_join import Rows, Steps, Workload, draw


@dataclass(frozen=True)
class Outputs:
    """Pairs found at equal cost."""

    by_time: float
    by_content: float
    #: Comparisons that were made by content, and what would have been made by time.
    compared: int
    allowed: float

    @property
    def gain(self) -> float:
        return self.by_content / self.by_time


@dataclass(frozen=True)
class _Truth:
    """New rows of one stream and the window of the other: all that is true, and what a slot knows."""

    own_slots: NDArray[np.int64]
    probing: ItemSets
    #: By row and age: rows in reach, and matches.
    sizes: NDArray[np.int64]
    matches: NDArray[np.int64]
    #: By item and slot, and by slot: rows that contain it, rows, items of all rows.
    counts: NDArray[np.int64]
    rows: NDArray[np.int64]
    items: NDArray[np.int64]

    def batch(self, slot: int) -> tuple[Direction, NDArray[np.int64]]:
        """The rows of one slot before the slots in their reach, oldest first; with their matches."""
        first, end = np.searchsorted(self.own_slots, [slot, slot + 1])
        ages = self.sizes.shape[1]
        seen = slice(max(0, slot - ages + 1), slot + 1)
        rows, items = self.rows[seen], self.items[seen]
        stored = StoredItems(self.counts[:, seen], None, rows, items, np.zeros(len(rows), np.bool_))
        oldest_first = slice(len(rows) - 1, None, -1)
        sizes, matches = (one[first:end, oldest_first] for one in (self.sizes, self.matches))
        probing = self.probing.take(np.arange(first, end))
        return Direction(probing, stored, sizes.astype(np.int32)), matches


def compare(
    workload: Workload, rate: float, windows: Windows, condition: CountedOverlap, fraction: float, slots: int
) -> Outputs:
    """Both choices on rows of so many slots, after the windows have filled."""
    filled = max(windows.ages)
    seconds = (filled + slots) * windows.slot_us / 1e6
    streams = draw(workload, (Steps(((seconds, rate),)),) * 2)
    sets = [item_sets(rows.bounds, rows.items, workload.items) for rows in streams]
    both = [_truth(side, streams, sets, windows, condition, first_slot=filled) for side in (0, 1)]
    found, compared, allowed = 0, 0, 0.0
    for slot in range(filled, filled + slots):
        batch = [truth.batch(slot) for truth in both]
        directions = [direction for direction, _ in batch]
        new_rows = sum(len(direction.sizes) for direction in directions)
        choice = choose_by_content(condition, directions, fraction, new_rows)
        for (direction, matches), probes in zip(batch, choice.probes, strict=True):
            found += int(matches[probes].sum())
            compared += int(direction.sizes[probes].sum())
            allowed += fraction * float(direction.sizes.sum())
    return Outputs(_by_time(both, fraction), found, compared, allowed)


def _truth(
    side: int,
    streams: tuple[Rows, Rows],
    sets: list[ItemSets],
    windows: Windows,
    condition: CountedOverlap,
    *,
    first_slot: int,
) -> _Truth:
    other = 1 - side
    slot_us = windows.slot_us
    first = int(np.searchsorted(streams[side].times_us, first_slot * slot_us))
    times_us, probing = streams[side].times_us[first:], sets[side].take(np.arange(first, len(sets[side])))
    whole = ranges_by_age(
        streams[other].times_us, times_us, windows.lengths_us[other], slot_us, equal_times=side == 1
    )
    matches = condition.count(_words(probing), _words(sets[other]), whole)
    own, stored = times_us // slot_us, streams[other].times_us // slot_us
    slots = int(max(own.max(initial=0), stored.max(initial=0))) + 1
    return _Truth(
        own,
        probing,
        whole.sizes,
        matches,
        item_counts(sets[other], stored, slots),
        np.bincount(stored, minlength=slots),
        np.bincount(stored, sets[other].sizes, minlength=slots).astype(np.int64),
    )


def _words(sets: ItemSets) -> NDArray[np.uint64]:
    return bitsets(sets.bounds, sets.items, sets.universe)


def _by_time(both: list[_Truth], fraction: float) -> float:
    """What the best cells of both windows find, the last one in part."""
    sizes = np.concatenate([direction.sizes.sum(axis=0) for direction in both])
    matches = np.concatenate([direction.matches.sum(axis=0) for direction in both])
    best = np.argsort(-matches / np.maximum(sizes, 1), kind="stable")
    before = np.cumsum(sizes[best]) - sizes[best]
    taken = np.clip(fraction * sizes.sum() - before, 0, sizes[best])
    return float((matches[best] * taken / np.maximum(sizes[best], 1)).sum())


def item_counts(stored: ItemSets, slot_of_row: NDArray[np.int64], slots: int) -> NDArray[np.int64]:
    """Per item and slot: the rows that contain it. Inverted lists of a slot have them as their lengths."""
    slot_of_row = np.ascontiguousarray(slot_of_row, np.int64)
    counts = np.zeros((stored.universe, slots), np.int64)
    fit = slot_of_row.shape == (len(stored),)
    if not fit or not _count_items(stored.bounds, stored.items, slot_of_row, slots, counts.ravel()):
        raise StateError(
            "Rows and slots do not fit together",
            code="LAB_ARRAYS_INCONSISTENT",
            got=f"slots of {slot_of_row.shape}, {len(stored)} rows, {slots} slots",
        )
    return counts


@kernel(POSITIONS, POSITIONS, POSITIONS, NUMBER, NEW_TIMES)
def _count_items(bounds: Any, items: Any, slot_of_row: Any, slots: Any, counts: Any) -> Any:
    """Whether all slots were slots; if not, the counts are worth nothing."""
    for row in range(slot_of_row.size):
        if not 0 <= slot_of_row[row] < slots:
            return False
        for at in range(bounds[row], bounds[row + 1]):
            counts[items[at] * slots + slot_of_row[row]] += 1
    return True
