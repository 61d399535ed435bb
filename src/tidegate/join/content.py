"""How likely a row matches a stored row, from how often its items occur: known before a single comparison.

Beyond the selective join paper (time correlation adaptation), whose basic windows are worth the same to
every row. Two rows of one stream differ: one carries items that half of a slot carries, another items that
nobody has. A slot knows how many of its rows contain each item (the lengths of its inverted lists). For a row
with items i₁ … i_n and a slot where item i occurs in a share q_i of the rows, the chance of at least k common
items with a row of the slot is the tail of a sum of n coins with chances q₁ … q_n:

    coins      q₁  q₂  q₃ … q_n        P(0), P(1), …, P(k − 1) are updated coin by coin: n · k steps
    chance     1 − P(0) − … − P(k − 1)

Guarantee: exact for k = 1 with a single item (the share of equal values). For sets it takes items to occur
independently within a slot, which sets drawn from one popularity nearly do; it is an estimate for choosing,
and never decides what matches. Only its order counts: the values themselves run too high, because the items
of a set exclude each other.

All slots of a row take the same steps side by side: the shares of an item in neighbouring slots are
neighbours. Still, an estimate takes the time of some tens of bitset comparisons. It pays where a slot has
thousands of rows or a comparison is dear, and whoever decides must charge for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import types

from tidegate.errors import StateError, explain
from tidegate.join.kernel import NUMBER, POSITIONS, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SHARES = types.Array(types.float64, 2, "C", readonly=True, aligned=False)


def item_shares(
    slots: NDArray[np.int64], bounds: NDArray[np.int64], items: NDArray[np.int64], shape: tuple[int, int]
) -> NDArray[np.float64]:
    """Per item (first axis) and slot: the share of the slot's rows that contain it; row k lies in slots[k].

    `shape` is (items, slots). An item that repeats within a row counts once.
    """
    row = np.repeat(np.arange(slots.size), np.diff(bounds))
    once = np.unique(row * shape[0] + items)
    place = (once % shape[0]) * shape[1] + slots[once // shape[0]]
    counts = np.bincount(place, minlength=shape[0] * shape[1]).reshape(shape)
    rows = np.bincount(slots, minlength=shape[1])
    return np.asarray(counts / np.maximum(rows, 1))


def match_chances(
    bounds: NDArray[np.int64],
    items: NDArray[np.int64],
    shares: NDArray[np.float64],
    own_slots: NDArray[np.int64],
    ages: int,
    at_least: int,
) -> NDArray[np.float64]:
    """Per probing row and age: the chance to match a row of the slot own_slots[k] - age; 0 before slot 0.

    Row k has the items items[bounds[k]:bounds[k + 1]], none twice.
    """
    rows_fit = own_slots.size == bounds.size - 1 and 0 <= own_slots.min(initial=0)
    items_fit = not items.size or 0 <= items.min() <= items.max() < shares.shape[0]
    if not (rows_fit and items_fit and own_slots.max(initial=0) < shares.shape[1] and at_least >= 1):
        raise StateError(
            explain(
                "Rows, items and slots do not fit together",
                got=f"{bounds.size - 1} rows in slots of {own_slots.shape}, shares of {shares.shape}",
            )
        )
    rows = np.ascontiguousarray(bounds), np.ascontiguousarray(items)
    slots = np.ascontiguousarray(shares), np.ascontiguousarray(own_slots)
    chances: NDArray[np.float64] = _chances(*rows, *slots, ages, at_least)
    return chances


@kernel(POSITIONS, POSITIONS, _SHARES, POSITIONS, NUMBER, NUMBER)
def _chances(bounds: Any, items: Any, shares: Any, own_slots: Any, ages: Any, at_least: Any) -> Any:
    chances = np.zeros((own_slots.size, ages), np.float64)
    # Per number of common items, oldest slot first: the chance of exactly so many; the last line: of enough.
    common = np.empty((at_least + 1, ages), np.float64)
    for row in range(own_slots.size):
        oldest = max(0, own_slots[row] - ages + 1)
        depth = own_slots[row] - oldest + 1
        common[:, :] = 0.0
        common[0, :] = 1.0
        for item in range(bounds[row], bounds[row + 1]):
            share = shares[items[item], oldest : oldest + depth]
            enough, nearly = common[at_least, :depth], common[at_least - 1, :depth]
            for slot in range(depth):
                enough[slot] += share[slot] * nearly[slot]
            for number in range(at_least - 1, 0, -1):
                here, below = common[number, :depth], common[number - 1, :depth]
                for slot in range(depth):
                    here[slot] += share[slot] * (below[slot] - here[slot])
            none = common[0, :depth]
            for slot in range(depth):
                none[slot] -= share[slot] * none[slot]
        for age in range(depth):
            chances[row, age] = common[at_least, depth - 1 - age]
    return chances
