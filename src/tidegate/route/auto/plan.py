"""One plan of the `auto` strategy: a draft assignment, the loads it causes and the rows it moves.

A plan starts from the present state: partitions in their places, keys that were moved, keys that are split.
Every change (`moves.py`) keeps the loads of the instances and the number of moved rows up to date, so that
plans can be compared. The instances of a key form a grid (`model/routing.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tidegate.route.assignment import Assignment
from tidegate.route.auto.splitting import best_grid
from tidegate.route.auto.work_costs import SplitGrid, UnitCosts, own_keys, price, serves_both
from tidegate.route.load import Load


@dataclass
class BalancePlan:
    """A draft of the next assignment; a key is identified by its number among the watched keys."""

    load: Load
    base: UnitCosts
    keys: UnitCosts
    instances: int
    #: Partition → instance; -1: unplaced.
    table: NDArray[np.int64]
    #: Watched key → its instances, for those with a place of their own.
    own: dict[int, SplitGrid]
    #: Cost and stored rows of each partition, without keys that have a place of their own.
    cost: NDArray[np.float64] = field(init=False)
    rows: NDArray[np.float64] = field(init=False)
    #: Instance → work.
    loads: NDArray[np.float64] = field(init=False)
    moved_rows: float = 0.0

    def __post_init__(self) -> None:
        self.cost, self.rows = self.base.whole.copy(), self.base.rows.copy()
        self._sum_loads()

    def _sum_loads(self) -> None:
        housed = self.table >= 0
        self.loads = np.bincount(self.table[housed], self.cost[housed], self.instances).astype(np.float64)
        for key, grid in self.own.items():
            self.loads[list(grid.places)] += self.keys.piece(key, grid)

    @property
    def fair(self) -> float:
        """A fair share of an instance."""
        return float(self.loads.mean())

    @property
    def state_rows(self) -> float:
        """All rows in the state."""
        return float(self.rows.sum() + self.keys.rows[list(self.own)].sum())

    @property
    def new_rows(self) -> float:
        """Rows that probed in this batch."""
        return float(self.base.new.sum() + self.keys.new[list(self.own)].sum())

    @property
    def scatters(self) -> bool:
        """True if a key lies on several instances."""
        return any(len(grid.places) > 1 for grid in self.own.values())

    @property
    def makespan(self) -> float:
        return float(self.loads.max())

    def copy(self) -> BalancePlan:
        """An independent plan with bit-identical loads, to try a change on."""
        twin = BalancePlan(self.load, self.base, self.keys, self.instances, self.table.copy(), dict(self.own))
        twin.cost, twin.rows, twin.loads = self.cost.copy(), self.rows.copy(), self.loads.copy()
        twin.moved_rows = self.moved_rows
        return twin

    def resized(self, instances: int) -> BalancePlan:
        """The same on another number of instances; items of removed instances become unplaced."""
        twin = self.copy()
        for key, grid in self.own.items():
            stays = tuple(one for one in grid.places if one < instances)
            twin.put(key, best_grid(self.keys, key, stays) if stays else None)
        twin.instances = instances
        twin.table = np.where(twin.table < instances, twin.table, -1)
        twin._sum_loads()
        return twin

    def lies(self, key: int) -> SplitGrid:
        """The instances of a watched key."""
        return self.own.get(key) or SplitGrid((int(self.table[self.load.homes[key]]),))

    def put(self, key: int, grid: SplitGrid | None) -> None:
        """Give a watched key these instances. None: return it to its partition."""
        home = int(self.load.homes[key])
        was = self.lies(key)
        if self.own.pop(key, None) is None:
            self.cost[home] -= self.keys.whole[key]
            self.rows[home] -= self.keys.rows[key]
        now = grid or self.lies(key)
        common = len(set(was.places) & set(now.places))
        stays = common / max(len(was.places), len(now.places))
        self.moved_rows += (1 - stays) * float(self.keys.rows[key])
        self.loads[list(was.places)] -= self.keys.piece(key, was)
        self.loads[list(now.places)] += self.keys.piece(key, now)
        if grid is not None:
            self.own[key] = grid
        else:
            self.cost[home] += self.keys.whole[key]
            self.rows[home] += self.keys.rows[key]

    def move_partitions(self, moved: NDArray[np.int64], places: NDArray[np.int64]) -> None:
        """Take partitions to other instances."""
        was = self.table[moved]
        housed = was >= 0
        self.loads -= np.bincount(was[housed], self.cost[moved[housed]], self.instances)
        self.table[moved] = places
        self.loads += np.bincount(self.table[moved], self.cost[moved], self.instances)
        self.moved_rows += float(self.rows[moved].sum())

    def noise(self) -> NDArray[np.float64]:
        """Standard deviation of each instance's load, assuming that n rows are n ± sqrt(n).

        Watched keys are taken one by one: the fluctuation of one key does not average out over its partition.
        """
        inside = np.ones(len(self.keys.rows), np.bool_)
        inside[list(self.own)] = False
        homes, partitions = self.load.homes[inside], self.table.size
        # Keys that are not watched are many, and each of them is light.
        rest = np.maximum(self.cost - np.bincount(homes, self.keys.whole[inside], partitions), 0)
        new = np.maximum(self.base.new - np.bincount(homes, self.keys.new[inside], partitions), 1)
        parts = rest**2 / new + np.bincount(homes, self.keys.chance[inside], partitions)
        variance = np.bincount(self.table, parts, self.instances)
        for key, grid in self.own.items():
            variance[list(grid.places)] += self.keys.chance[key] / len(grid.places) ** 2
        return np.sqrt(variance)

    def likely_makespan(self) -> float:
        """The load of the heaviest instance, plus one standard deviation."""
        return float((self.loads + self.noise()).max())

    def assignment(self, current: Assignment) -> Assignment:
        """The plan as an assignment. A key on the instance of its partition needs no place of its own."""
        placed = {
            int(self.load.codes[key]): grid
            for key, grid in self.own.items()
            if grid.places != (int(self.table[self.load.homes[key]]),)
        }
        keys = {code: grid.places for code, grid in placed.items()}
        columns = {code: grid.columns for code, grid in placed.items() if grid.columns > 1}
        wanted = Assignment(self.instances, tuple(self.table.tolist()), 1, keys, columns)
        return current if wanted == current else wanted


def plan_of(load: Load, current: Assignment, prices: NDArray[np.float64], least: float = 0.0) -> BalancePlan:
    """The plan that changes nothing. Keys without a load did nothing and lose their place.

    Watched keys that cost less than `least` fair shares stay in their partitions unseen: there may be very
    many of them, and no plan would move them.
    """
    both, own = serves_both(load), own_keys(load, current)
    base, keys = price(load.partitions, prices, both), price(load.keys, prices, both)
    mine = np.array(list(own), np.int64)
    fair = (base.whole.sum() + keys.whole[mine].sum()) / current.instances
    heavy = keys.whole >= least * fair
    heavy[mine] = True
    chosen = np.flatnonzero(heavy)
    seen = Load(
        load.batch,
        load.partitions,
        load.seconds,
        load.codes[chosen],
        load.homes[chosen],
        load.keys.at(chosen),
    )
    table = np.array(current.table, np.int64)
    return BalancePlan(seen, base, keys.at(chosen), current.instances, table, own_keys(seen, current))
