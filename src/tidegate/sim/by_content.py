"""Choosing by content against the best choice by time alone: equal counted cost, estimates included.

Beyond the selective join paper. Both may spend a fraction r of what comparing everything would take:

    by time      one who knows the true matches per comparison of every cell of both windows
                 (`clairvoyant.py`) takes the best cells, the last in part; every row takes the same
    by content   a batch of rows of both streams, as long as a slot, shares its budget among (row, slot)
                 cells by estimated value (`join/content.py`, `join/row_cells.py`), less what estimating costs

The statistics of a slot are those of the rows that are stored when its batch is probed: the batch stores its
rows first, so the newest slot is known as well as the others. Nothing is learnt from matches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.control.shedding import Windows
from tidegate.join.basic_windows import ranges_by_age
from tidegate.join.conditions import bitsets
from tidegate.join.content import item_counts, item_shares, match_values
from tidegate.join.item_sets import ItemSets, item_sets
from tidegate.join.row_cells import budget, choose_row_cells
from tidegate.join.thresholds import Overlap
from tidegate.papers.selective_join import Rows, Steps, Workload, draw

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
class _Direction:
    """New rows of one stream and the window of the other: all that is true, and what is estimated."""

    own_slots: NDArray[np.int64]
    sizes: NDArray[np.int64]
    matches: NDArray[np.int64]
    values: NDArray[np.float32]


def compare(
    workload: Workload, rate: float, windows: Windows, condition: Overlap, fraction: float, slots: int
) -> Outputs:
    """Both choices on rows of so many slots, after the windows have filled."""
    filled = max(windows.ages)
    seconds = (filled + slots) * windows.slot_us / 1e6
    streams = draw(workload, (Steps(((seconds, rate),)),) * 2)
    sets = [item_sets(rows.bounds, rows.items, workload.items) for rows in streams]
    both = [_direction(side, streams, sets, windows, condition, first_slot=filled) for side in (0, 1)]
    found, compared, allowed = 0, 0, 0.0
    for slot in range(filled, filled + slots):
        batch = [_of_slot(direction, slot) for direction in both]
        sizes, matches, values = (
            np.concatenate([getattr(direction, name) for direction in batch])
            for name in ("sizes", "matches", "values")
        )
        chosen = choose_row_cells(values, sizes, budget(fraction, sizes, len(sizes)))
        found += int(matches[chosen].sum())
        compared += int(sizes[chosen].sum())
        allowed += fraction * float(sizes.sum())
    return Outputs(_by_time(both, fraction), found, compared, allowed)


def _direction(
    side: int,
    streams: tuple[Rows, Rows],
    sets: list[ItemSets],
    windows: Windows,
    condition: Overlap,
    *,
    first_slot: int,
) -> _Direction:
    other = 1 - side
    slot_us, depth = windows.slot_us, windows.ages[other]
    first = int(np.searchsorted(streams[side].times_us, first_slot * slot_us))
    times_us, probing = streams[side].times_us[first:], sets[side].take(np.arange(first, len(sets[side])))
    whole = ranges_by_age(
        streams[other].times_us, times_us, windows.lengths_us[other], slot_us, equal_times=side == 1
    )
    matches = condition.count(_words(probing), _words(sets[other]), whole)
    own, stored = times_us // slot_us, streams[other].times_us // slot_us
    slots = int(max(own.max(initial=0), stored.max(initial=0))) + 1
    shares = item_shares(item_counts(sets[other], stored, slots), np.bincount(stored, minlength=slots), depth)
    return _Direction(own, whole.sizes, matches, match_values(probing, shares, own, condition.at_least))


def _words(sets: ItemSets) -> NDArray[np.uint64]:
    return bitsets(sets.bounds, sets.items, sets.universe)


def _of_slot(direction: _Direction, slot: int) -> _Direction:
    rows = slice(*np.searchsorted(direction.own_slots, [slot, slot + 1]))
    return _Direction(
        direction.own_slots[rows], direction.sizes[rows], direction.matches[rows], direction.values[rows]
    )


def _by_time(both: list[_Direction], fraction: float) -> float:
    """What the best cells of both windows find, the last one in part."""
    sizes = np.concatenate([direction.sizes.sum(axis=0) for direction in both])
    matches = np.concatenate([direction.matches.sum(axis=0) for direction in both])
    best = np.argsort(-matches / np.maximum(sizes, 1), kind="stable")
    before = np.cumsum(sizes[best]) - sizes[best]
    taken = np.clip(fraction * sizes.sum() - before, 0, sizes[best])
    return float((matches[best] * taken / np.maximum(sizes[best], 1)).sum())
