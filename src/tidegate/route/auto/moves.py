"""The three moves that build a plan of the `auto` strategy, in this order.

1. `split`: heavy keys get more instances (`splitting.py`). Nothing else helps against a key that costs more
   than a fair share.
2. `shift_pieces`: a piece of a split key changes its instance. Pieces relieve most per row moved.
3. `level_out`: partitions and single keys change their instance (`packing.py`), into the room that is left.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegate.route.auto.packing import PackingItems, repack
from tidegate.route.auto.plan import BalancePlan
from tidegate.route.auto.splitting import best_grid, grid_needed
from tidegate.route.auto.work_costs import SplitGrid

#: A key changes its grid only if its pieces get lighter by at least this part, because loads fluctuate.
_GAIN_LEAST = 0.1


def split(plan: BalancePlan, piece: float, above: float) -> None:
    """Give keys heavier than `piece` fair shares, on instances above `above`, enough instances.

    No key gets fewer instances than it has, and keys on instances below `above` stay unchanged. A key with
    enough instances may get a better grid of the same instances, which moves nothing.
    """
    rows, columns = grid_needed(plan.keys, plan.fair, piece, plan.instances)
    heavy = np.flatnonzero(rows * columns > 1)
    for key in heavy[np.argsort(-plan.keys.whole[heavy], kind="stable")].tolist():
        was = plan.lies(key)
        if plan.loads[list(was.places)].max() <= above * plan.fair:
            continue
        more = int(rows[key] * columns[key]) - len(was.places)
        if more > 0:
            plan.put(key, SplitGrid((*was.places, *_lightest(plan, was.places, more)), int(columns[key])))
            continue
        other = best_grid(plan.keys, key, was.places)
        if plan.keys.piece(key, other) < (1 - _GAIN_LEAST) * plan.keys.piece(key, was):
            plan.put(key, other)


def shift_pieces(plan: BalancePlan, above: float) -> None:
    """Move pieces of split keys away from instances heavier than `above` fair shares, one at a time."""
    for _ in range(2 * plan.instances):
        heaviest, makespan = int(np.argmax(plan.loads)), plan.makespan
        if makespan <= above * plan.fair:
            return
        best, chosen = 0.99 * makespan, None
        for key, grid in plan.own.items():
            if heaviest not in grid.places or not 1 < len(grid.places) < plan.instances:
                continue
            (taker,) = _lightest(plan, grid.places, 1)
            weight = plan.keys.piece(key, grid)
            heavier = max(makespan - weight, float(plan.loads[taker]) + weight)
            if heavier < best:
                places = tuple(taker if one == heaviest else one for one in grid.places)
                best, chosen = heavier, (key, SplitGrid(places, grid.columns))
        if chosen is None:
            return
        plan.put(*chosen)


def level_out(plan: BalancePlan, above: float, alone: float) -> None:
    """Move partitions and single keys until no instance weighs more than `above` fair shares.

    A key is moved alone only if it weighs at least `alone` of a fair share.
    """
    items, keys = _items(plan, alone)
    places, _ = repack(items, plan.loads, above * plan.fair)
    moved = np.flatnonzero(places != items.at)
    partitions = moved[moved < plan.table.size]
    # Keys first: their load must not be counted with their partitions.
    for item in moved[partitions.size :].tolist():
        plan.put(int(keys[item - plan.table.size]), SplitGrid((int(places[item]),)))
    plan.move_partitions(partitions, places[partitions])


def _items(plan: BalancePlan, alone: float) -> tuple[PackingItems, NDArray[np.int64]]:
    """Everything that can move: partitions, then keys; and the numbers of these keys."""
    single = np.array([key for key, grid in plan.own.items() if len(grid.places) == 1], np.int64)
    lies = np.array([plan.own[key].places[0] for key in single.tolist()], np.int64)
    free = (plan.keys.whole >= alone * plan.fair) & (plan.table[plan.load.homes] >= 0)
    free[list(plan.own)] = False
    inside = np.flatnonzero(free)
    keys, homes = np.concatenate([single, inside]), plan.load.homes[inside]
    at = np.concatenate([plan.table, lies, plan.table[homes]])
    home = np.full(at.size, -1, np.int64)
    home[at.size - inside.size :] = homes
    cost = np.concatenate([plan.cost, plan.keys.whole[keys]])
    # Spread unplaced partitions without work over the instances.
    cost[at < 0] += 1e-3 * plan.cost.mean()
    rows = np.concatenate([plan.rows, plan.keys.rows[keys]])
    return PackingItems(cost, rows, at, home), keys


def _lightest(plan: BalancePlan, but: tuple[int, ...], count: int) -> list[int]:
    """The `count` lightest instances other than these, lightest first."""
    loads = plan.loads.copy()
    loads[list(but)] = np.inf
    return [int(one) for one in np.argsort(loads, kind="stable")[:count]]
