"""Prices per row and pair, and from them the cost of every partition, key and instance.

Five prices, in seconds where seconds were measured, else in units of one pair found:

    fixed      an instance's batch, whatever it does: no balancing changes it
    store      a new row that is stored                  divided among the instances of a split key
    match      a pair that is found                      divided as well
    upkeep     a stored row that is probed               of a left row: at all instances of a row of its grid
    probe      a new row that probes                     the same; of a right row: at all of a column

So a key in a grid of r rows and c columns costs each instance divided / (r · c) + left / r + right / c. In
a group of the biclique the rows that it stores are not its probes, so `store` cannot be learnt there and
`upkeep` stands for it.

While windows fill, every batch finds more pairs than the one before, at the same cost per row. A plan made
from the first batch would give pairs too little weight, and another move would follow when far more rows
are stored. So as long as the state grows, `prices_ahead` raises the price of a pair to its expected cost
some batches ahead:

    rows that a batch probes       now: stored − new / 2     in `BATCHES` batches: that + BATCHES · growth

(A row of the batch itself probes half of the batch, on average.) A state that does not grow changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.route.assignment import Assignment
from tidegate.route.load import Load, LoadWork

#: Batches to look ahead. More helps little: pairs outweigh all else by then. If windows fill earlier, pairs
#: get slightly too much weight.
BATCHES = 3


def prices_ahead(
    prices: NDArray[np.float64], *, stored: float, before: float, new: float
) -> NDArray[np.float64]:
    """Prices for the coming batches: the state holds `stored` rows now and held `before` a batch ago."""
    ahead = prices.copy()
    probed = max(stored - new / 2, 1.0)
    ahead[MATCH] *= 1 + BATCHES * max(stored - before, 0.0) / probed
    return ahead


#: fixed, store, match, upkeep, probe: ratios measured on the kernels (about 100 ns to sort and store a row,
#: the same to probe, some 25 ns a pair), and a little per stored row.
COUNTED = np.array([0.0, 4.0, 1.0, 0.01, 4.0])
FIXED, STORE, MATCH, UPKEEP, PROBE = range(5)


@dataclass(frozen=True)
class UnitCosts:
    """Costs of n partitions or keys; see the module docstring for the three parts."""

    divided: NDArray[np.float64]
    #: Cost of new and stored left rows, and of right ones, at each instance that probes them.
    left: NDArray[np.float64]
    right: NDArray[np.float64]
    #: Rows in the state: the cost of moving.
    rows: NDArray[np.float64]
    #: New rows.
    new: NDArray[np.float64]
    #: Variance of the cost if rows arrive independently; for single keys (see `_chance`).
    chance: NDArray[np.float64]

    @property
    def whole(self) -> NDArray[np.float64]:
        """On one instance."""
        return self.divided + self.left + self.right

    def piece(self, key: int, grid: SplitGrid) -> float:
        """The cost of a key at each instance of its grid."""
        left, right = self.left[key] / grid.rows, self.right[key] / grid.columns
        return float(self.divided[key] / len(grid.places) + left + right)

    def at(self, chosen: NDArray[np.int64]) -> UnitCosts:
        """The costs of these partitions or keys."""
        parts = (self.divided, self.left, self.right, self.rows, self.new, self.chance)
        return UnitCosts(*(part[chosen] for part in parts))


def counts_of(work: LoadWork, both: bool) -> NDArray[np.float64]:
    """Shape (5, n): the quantity that each price applies to. `both`: the group serves both directions."""
    probes = work.probes.sum(axis=0, dtype=np.float64)
    # Rows that probe one side are stored on the other, if this group stores it at all.
    store = probes if both else np.zeros_like(probes)
    return np.stack([np.zeros_like(probes), store, work.matches, work.stored.sum(axis=0), probes])


def serves_both(load: Load) -> bool:
    """True for the load of a co-located join; a group of the biclique leaves one side at zero."""
    base, keys = load.partitions, load.keys
    used = [
        int(work.stored[side].sum() + work.probes[side].sum()) for side in (0, 1) for work in (base, keys)
    ]
    return used[0] + used[1] > 0 and used[2] + used[3] > 0


def price(work: LoadWork, prices: NDArray[np.float64], both: bool) -> UnitCosts:
    """The cost of each partition or key."""
    counts = counts_of(work, both)
    # Rows that probe one side are new rows of the other.
    seen = prices[PROBE] * work.probes[::-1] + prices[UPKEEP] * work.stored
    return UnitCosts(
        divided=prices[STORE] * counts[STORE] + prices[MATCH] * counts[MATCH],
        left=seen[0],
        right=seen[1],
        rows=counts[UPKEEP],
        new=counts[PROBE],
        chance=_chance(work, prices),
    )


def _chance(work: LoadWork, prices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Variance of a key's cost: its n new rows are n ± sqrt(n), and each matches all stored rows of the key.

    So a single row that matches a thousand stored rows counts as chance; a thousand that match one do not.
    """
    pairs = prices[MATCH] ** 2 * (work.probes * work.stored.astype(np.float64) ** 2).sum(axis=0)
    return np.asarray(pairs + (prices[STORE] + prices[PROBE]) ** 2 * work.probes.sum(axis=0))


def own_keys(load: Load, assignment: Assignment) -> dict[int, SplitGrid]:
    """Watched key → its grid, for keys with a place of their own; keys not watched did nothing."""
    found = np.flatnonzero(assignment.listed(load.codes) >= 0)
    codes = {key: int(load.codes[key]) for key in found.tolist()}
    return {
        key: SplitGrid(assignment.keys[code], assignment.columns.get(code, 1)) for key, code in codes.items()
    }


def stored_rows(load: Load, assignment: Assignment) -> float:
    """All rows in the state."""
    own = list(own_keys(load, assignment))
    return float(load.partitions.stored.sum() + load.keys.stored[:, own].sum())


def counts_per_instance(load: Load, assignment: Assignment) -> NDArray[np.float64]:
    """Shape (5, instances): the quantity of each price, under the assignment that the batch ran with."""
    both, n, spread = serves_both(load), assignment.instances, assignment.spread
    table = np.array(assignment.table, np.int64)
    base = counts_of(load.partitions, both)
    # Without a grid each row is stored by one instance and probes all of them.
    base[[STORE, MATCH, UPKEEP]] /= spread
    own = own_keys(load, assignment)
    sizes = np.array([len(grid.places) for grid in own.values()], np.int64)
    places = np.array([one for grid in own.values() for one in grid.places], np.int64)
    keys = np.repeat(_of_grids(load.keys, own, both), sizes, axis=1)
    sums = np.ones((5, n))
    for kind in range(1, 5):
        sums[kind] = np.bincount(places, keys[kind], n)
        for step in range(spread):
            sums[kind] += np.bincount((table + step) % n, base[kind], n)
    return sums


def _of_grids(keys: LoadWork, own: Mapping[int, SplitGrid], both: bool) -> NDArray[np.float64]:
    """Shape (5, keys): the quantity of each price at every instance of a key's grid."""
    work = keys.at(np.array(list(own), np.int64))
    lines = np.array([(grid.rows, grid.columns) for grid in own.values()], np.float64).reshape(-1, 2).T
    counts = counts_of(work, both)
    counts[[STORE, MATCH]] /= lines.prod(axis=0)
    counts[UPKEEP] = (work.stored / lines).sum(axis=0)
    counts[PROBE] = (work.probes[::-1] / lines).sum(axis=0)
    return counts


class SplitGrid(NamedTuple):
    """Instances row by row; left rows go to one row of the grid, right rows to one column."""

    places: tuple[int, ...]
    columns: int = 1

    @property
    def rows(self) -> int:
        return len(self.places) // self.columns
