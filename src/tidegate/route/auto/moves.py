"""The three moves of a plan of the `auto` strategy, in this order.

1. `split`: heavy keys get more instances (`splitting.py`). Nothing else helps against a key that weighs more
   than a fair share.
2. `shift_pieces`: a piece of a split key changes its instance. Pieces relieve most per row that moves.
3. `level_out`: partitions and single keys change their instance (`packing.py`), into what room is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidegate.route.auto.packing import Items, repack
from tidegate.route.auto.plan import Plan
from tidegate.route.auto.splitting import best_grid, grid_needed
from tidegate.route.auto.work_costs import Grid

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: A key stands in another grid only if its pieces weigh less by at least this part: loads waver.
_GAIN_LEAST = 0.1


def split(plan: Plan, piece: float, above: float) -> None:
    """Keys heavier than `piece` fair shares on instances above `above` get instances enough.

    None gets fewer than it has, and keys that burden nobody too much stay as they are. A key that has enough
    may stand better in another grid of the same instances, which moves nothing.
    """
    rows, columns = grid_needed(plan.keys, plan.fair, piece, plan.instances)
    heavy = np.flatnonzero(rows * columns > 1)
    for key in heavy[np.argsort(-plan.keys.whole[heavy], kind="stable")].tolist():
        was = plan.lies(key)
        if plan.loads[list(was.places)].max() <= above * plan.fair:
            continue
        more = int(rows[key] * columns[key]) - len(was.places)
        if more > 0:
            plan.put(key, Grid((*was.places, *_lightest(plan, was.places, more)), int(columns[key])))
            continue
        other = best_grid(plan.keys, key, was.places)
        if plan.keys.piece(key, other) < (1 - _GAIN_LEAST) * plan.keys.piece(key, was):
            plan.put(key, other)


def shift_pieces(plan: Plan, above: float) -> None:
    """Pieces of split keys leave instances heavier than `above` fair shares, one at a time."""
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
                best, chosen = heavier, (key, Grid(places, grid.columns))
        if chosen is None:
            return
        plan.put(*chosen)


def level_out(plan: Plan, above: float, alone: float) -> None:
    """Move partitions and single keys until no instance weighs more than `above` fair shares.

    A key is moved alone only if it weighs at least `alone` of a fair share.
    """
    items, keys = _items(plan, alone)
    places, _ = repack(items, plan.loads, above * plan.fair)
    moved = np.flatnonzero(places != items.at)
    partitions = moved[moved < plan.table.size]
    # Keys first: what they take along must not be counted with their partitions.
    for item in moved[partitions.size :].tolist():
        plan.put(int(keys[item - plan.table.size]), Grid((int(places[item]),)))
    plan.move_partitions(partitions, places[partitions])


def _items(plan: Plan, alone: float) -> tuple[Items, NDArray[np.int64]]:
    """All that can move: partitions, then keys, and which keys these are."""
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
    # Homeless partitions without work shall not all end in one place.
    cost[at < 0] += 1e-3 * plan.cost.mean()
    rows = np.concatenate([plan.rows, plan.keys.rows[keys]])
    return Items(cost, rows, at, home), keys


def _lightest(plan: Plan, but: tuple[int, ...], count: int) -> list[int]:
    """So many instances, the lightest first, other than these."""
    loads = plan.loads.copy()
    loads[list(but)] = np.inf
    return [int(one) for one in np.argsort(loads, kind="stable")[:count]]
