"""Chooses which partitions and keys leave overloaded instances, and where they go; moves the least state.

Nothing is packed from scratch. Instances above the cap give work away, starting with the items that cost most
per stored row: they relieve most for the price of their move. Each goes to the lightest instance, if it fits.

    1. shed    down the list, while the giver is above the cap: items that weigh at most twice its excess
    2. level   while the heaviest is still above the cap: the item that best evens it out with the lightest
    3. undo    up the list: items that turned out not to be needed go back

A key that is moved alone leaves its partition, which then weighs less. Items of an instance that no longer
exists (place -1) must move and come first, the heaviest first.

Guarantee: no move takes an instance above the cap that was not above it before, except in step 2, where the
taker stays below the giver's previous load. The heaviest never gets heavier, unless unplaced items force it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.kernels import compiled


@dataclass(frozen=True)
class PackingItems:
    """Items that can move: first all partitions, in order; then keys."""

    cost: NDArray[np.float64]
    rows: NDArray[np.float64]
    #: The instance of each; -1: unplaced.
    at: NDArray[np.int64]
    #: For a key that still belongs to its partition: that partition. -1 for partitions and other keys.
    home: NDArray[np.int64]


def repack(
    items: PackingItems, loads: NDArray[np.float64], cap: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The new place of each item (a key that stays in its partition keeps `at`), and the new loads."""
    homeless = items.at < 0
    gives = np.ones(items.at.size, np.bool_)
    if not homeless.any():
        # Only instances above the cap give. Where unplaced items are placed first, that may be any instance.
        gives = (loads > cap)[items.at]
    chosen = np.flatnonzero(gives)
    home = items.home[chosen]
    # A key and its partition lie on the same instance, so both are chosen or neither.
    home[home >= 0] = np.cumsum(gives)[home[home >= 0]] - 1
    weigh = np.where(homeless, items.cost, items.cost / np.maximum(items.rows, 1.0))[chosen]
    # Unplaced items by weight, then all others by relief per row moved.
    order = np.lexsort((-weigh, ~homeless[chosen]))
    cost, loads, places = items.cost[chosen], loads.copy(), items.at.copy()
    places[chosen] = _repack(cost, items.at[chosen], home, order, loads, cap, float(loads.mean()))
    return places, loads


@compiled
def _repack(
    cost: NDArray[np.float64],
    at: NDArray[np.int64],
    home: NDArray[np.int64],
    order: NDArray[np.int64],
    loads: NDArray[np.float64],
    cap: float,
    mean: float,
) -> NDArray[np.int64]:
    places = at.copy()
    for item in order:
        weight = cost[item]
        giver = places[item]
        if giver < 0:
            taker = int(np.argmin(loads))
            places[item] = taker
            loads[taker] += weight
            continue
        if loads[giver] <= cap or weight <= 0 or weight > 2 * (loads[giver] - mean):
            continue
        if home[item] >= 0 and places[home[item]] != at[home[item]]:
            continue
        taker = int(np.argmin(loads))
        if loads[taker] + weight <= cap:
            _move(item, giver, taker, cost, home, places, loads)
    _level(cost, at, home, order, loads, cap, places)
    for k in range(order.size - 1, -1, -1):
        item = order[k]
        giver = at[item]
        if giver < 0 or places[item] == giver or loads[giver] + cost[item] > cap:
            continue
        if home[item] >= 0 and places[home[item]] != giver:
            continue
        taker = places[item]
        places[item] = giver
        loads[taker] -= cost[item]
        loads[giver] += cost[item]
        if home[item] >= 0:
            cost[home[item]] += cost[item]
    return places


@compiled
def _move(
    item: int,
    giver: int,
    taker: int,
    cost: NDArray[np.float64],
    home: NDArray[np.int64],
    places: NDArray[np.int64],
    loads: NDArray[np.float64],
) -> None:
    places[item] = taker
    loads[giver] -= cost[item]
    loads[taker] += cost[item]
    if home[item] >= 0:
        cost[home[item]] -= cost[item]


@compiled
def _level(
    cost: NDArray[np.float64],
    at: NDArray[np.int64],
    home: NDArray[np.int64],
    order: NDArray[np.int64],
    loads: NDArray[np.float64],
    cap: float,
    places: NDArray[np.int64],
) -> None:
    # Each round relieves the heaviest; after twice as many rounds as instances there is nothing left to gain.
    for _ in range(2 * loads.size):
        giver, taker = int(np.argmax(loads)), int(np.argmin(loads))
        if loads[giver] <= cap:
            return
        best, chosen = 0.99 * loads[giver], -1
        for item in order:
            if places[item] != giver or cost[item] <= 0:
                continue
            if home[item] >= 0 and (places[home[item]] != at[home[item]] or at[item] != giver):
                continue
            heavier = max(loads[giver] - cost[item], loads[taker] + cost[item])
            if heavier < best:
                best, chosen = heavier, item
        if chosen < 0:
            return
        _move(chosen, giver, taker, cost, home, places, loads)
