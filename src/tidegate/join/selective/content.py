"""Estimates the value of comparing a row with a slot, before comparing, from how often the row's items occur.

Beyond the selective join paper (time correlation adaptation), where a basic window has the same value for
every row. Rows of one stream differ: one carries items that half of a slot carries, another carries items
that no stored row has. A slot knows how many of its rows contain each item (the lengths of its inverted
lists). For a row, a slot where item i occurs in a share q_i of the rows, and k common items that make a
match:

    value      e_k = Σ q_a · q_b · … over all choices of k of the row's items
    steps      e_k += q · e_(k−1), …, e_2 += q · e_1, e_1 += q          item by item, all slots side by side

If items occurred independently of each other, the value would be the expected number of ways to pick k common
items with one row of the slot. So the value is never below the probability of a match (union bound), nearly
equal to it where shares are small, and exact for single values: the share of equal ones. It only ranks slots
and never decides what matches. A value of 0 means that fewer than k of the row's items occur in the slot (or
that the value is below 1e-40).

Computing the probability itself, item by item, was tried and chose no better: for Zipf(0.6) and Zipf(0.8),
both found 1.67 and 1.35 times as much as the best time-only choice (r = 0.2, estimates not charged), and it
takes several times as long. `row_cells.py` and `lab/tidegate_lab/simulate/join/by_content.py` measure what an
estimate costs and what it gains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from tidegate.errors import StateError
from tidegate.join.kernel_types import NUMBER, POSITIONS, kernel
from tidegate.join.sets.item_sets import ItemSets
from tidegate.join.sets.vectors import CACHE_LINE, LANES, LINE, add_products, set_products

_NUMBERS = types.Array(types.float32, 1, "C", readonly=True, aligned=False)


@dataclass(frozen=True, eq=False)
class ItemShares:
    """Per item (first axis) and slot (second, newest first): the share of the slot's rows that contain it.

    Slots 0 … slots - 1. A row probes `ages` of them: its own and the ones before it. Columns beyond the slots
    are zero, so that kernels can read `LANES` at a time.
    """

    table: NDArray[np.float32]
    slots: int
    ages: int


def item_shares(counts: NDArray[np.int64], rows: NDArray[np.int64], ages: int) -> ItemShares:
    """Shares from the number of rows that contain an item, by item and slot, and the rows per slot."""
    items, slots = counts.shape
    if rows.shape != (slots,) or ages < 1:
        raise StateError(
            "Counts of items and of rows do not fit together",
            code="INTERNAL_ARRAYS_INCONSISTENT",
            got=f"counts of {counts.shape}, rows of {rows.shape}, {ages} ages",
        )
    table = np.zeros((items, slots + _lanes(ages)), np.float32)
    _fill(np.ascontiguousarray(counts, np.int64).ravel(), np.ascontiguousarray(rows, np.int64), table)
    return ItemShares(table, slots, ages)


def match_values(
    probing: ItemSets, shares: ItemShares, own_slots: NDArray[np.int64], at_least: int
) -> NDArray[np.float32]:
    """Per probing row and age: the value of a comparison with slot own_slots[row] - age; 0 before slot 0."""
    own_slots = np.ascontiguousarray(own_slots, np.int64)
    values = np.zeros((0, shares.ages), np.float32)
    if own_slots.shape == (len(probing),) and probing.universe == shares.table.shape[0] and at_least >= 1:
        # No row has more items than the universe, so this many lines are enough.
        enough = min(at_least, probing.universe + 1)
        table = shares.table.ravel(), shares.table.shape[1], shares.slots
        values = _values(probing.bounds, probing.items, *table, own_slots, shares.ages, enough)
    if len(values) != len(probing):
        raise StateError(
            "Rows, items and slots do not fit together",
            code="INTERNAL_ARRAYS_INCONSISTENT",
            got=f"{len(probing)} rows in slots of {own_slots.shape}, shares of {shares.table.shape}",
        )
    return values


def _lanes(ages: int) -> int:
    return -(-ages // LANES) * LANES


@kernel(POSITIONS, POSITIONS, types.Array(types.float32, 2, "C"))
def _fill(counts: Any, rows: Any, table: Any) -> Any:
    """One pass, newest slot first: for a small batch this is most of the cost of the shares."""
    for item in range(table.shape[0]):
        for slot in range(rows.size):
            share = np.float32(counts[item * rows.size + slot]) / np.float32(max(rows[slot], 1))
            table[item, rows.size - 1 - slot] = share


@kernel(POSITIONS, POSITIONS, _NUMBERS, NUMBER, NUMBER, POSITIONS, NUMBER, NUMBER)
def _values(
    bounds: Any, items: Any, table: Any, width: Any, slots: Any, own_slots: Any, ages: Any, at_least: Any
) -> Any:
    """None where a slot is out of range. A row's last lanes overlap the next row, which overwrites them."""
    values = np.empty(own_slots.size * ages + LANES, np.float32)
    # Line j holds e_j of some slots, line 0 holds ones; every line starts at a cache line.
    room = np.ones((at_least + 2) * LINE, np.float32)
    lines = room[(-room.ctypes.data % CACHE_LINE) // 4 :]
    for row in range(own_slots.size):
        first, end, column = bounds[row], bounds[row + 1], slots - 1 - own_slots[row]
        if not 0 <= column < slots:
            return values[:0].reshape(0, ages)
        if end - first < at_least:
            values[row * ages : (row + 1) * ages] = 0.0
            continue
        for block in range(0, ages, LANES):
            for at in range(first, end):
                share = items[at] * width + column + block
                # Highest first: e_j needs e_(j−1) without this item.
                line = at_least
                if at - first < at_least:
                    line = at - first
                    set_products(lines, (line + 1) * LINE, lines, line * LINE, table, share)
                # Skip lines that cannot contribute to e_k with the items that are left.
                while line > max(0, at_least - (end - at)):
                    add_products(lines, line * LINE, lines, (line - 1) * LINE, table, share)
                    line -= 1
            set_products(values, row * ages + block, lines, at_least * LINE, lines, 0)
    return values[: own_slots.size * ages].reshape(own_slots.size, ages)
