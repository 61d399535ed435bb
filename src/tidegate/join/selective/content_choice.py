"""Content-aware probe: chooses the basic windows that each new row probes, with one budget for all rows.

Beyond the selective join paper (time correlation and join direction adaptation), where all rows probe the
same parts. Here every (row, basic window) cell of both directions has a value per cost, known before any
comparison, and the best cells fill the budget (`row_cells.py`):

    condition       expected matches of a comparison                   cost of a cell
    overlap ≥ k     e_k of the shares of the row's items (content.py)  candidate pairs, or, where the basic
    Jaccard ≥ x     the same, with the k that sets of mean size need   window has inverted lists, the entries
    inner product   expected sum of products over the threshold        of the row's lists plus the lookups

The inner product uses Markov's bound on the probability of reaching the threshold. All estimates only rank
cells and never decide what matches. With lists, the cost is the entries read: rows of popular items cost
more.

Guarantee: a function of the sets, independent of the order of stored rows or runs. A replayed batch, which
has the same stored runs, therefore probes the same cells (rows with equal sets may change places). The
choice never exceeds the budget, in units of its costs, and takes everything with a fraction of 1.

Estimates are charged in comparisons and taken off the budget before any comparison is made. An estimate and
its choice cost as much as `CELL_COMPARISONS` comparisons of two-word bitsets including writing their pairs;
the item counts and shares behind them cost `ROW_COMPARISONS` per stored row. Measured
(`lab/scripts/set_pairs_speed.py`): 4.4 and 24 for repeated batches of 1000 rows. Batches of 5000 rows, whose
values no longer fit into the cache, took up to 7 and 50, so these are the charges. What remains for comparing
is the budget of a time-only choice minus the price of the estimates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.join.selective.content import item_shares, match_values
from tidegate.join.selective.row_cells import choose_row_cells
from tidegate.join.sets.index_choice import ENTRY_WORDS
from tidegate.join.sets.item_sets import ItemSets
from tidegate.join.sets.similarity import least_common
from tidegate.join.sets.thresholds import InnerProduct, SetCondition

CELL_COMPARISONS = 7.0
ROW_COMPARISONS = 50.0


def price(cells: float, stored_rows: float) -> float:
    """The price of estimates for this many cells, and of maintaining the counts behind them."""
    return CELL_COMPARISONS * cells + ROW_COMPARISONS * stored_rows


#: Cells compared with each other at once. More would take more memory and choose no better.
CELLS_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class StoredItems:
    """Item statistics of some basic windows, available before comparing, in the probing rows' item codes."""

    #: By item and basic window: rows that contain it, and (weighted sets) the sum of their weights.
    counts: NDArray[np.int64]
    weights: NDArray[np.float64] | None
    #: By basic window: its rows, all items of its rows, and whether it has inverted lists.
    rows: NDArray[np.int64]
    items: NDArray[np.int64]
    lists: NDArray[np.bool_]

    @classmethod
    def nothing(cls, items: int, windows: int, weighted: bool) -> StoredItems:
        """Basic windows without rows, to be filled."""
        counts, weights = np.zeros((items, windows), np.int64), np.zeros((items, windows))
        rows, of_rows = np.zeros((2, windows), np.int64)
        return cls(counts, weights if weighted else None, rows, of_rows, np.zeros(windows, np.bool_))


@dataclass(frozen=True, eq=False)
class Direction:
    """New rows, and the basic windows of the other side that hold candidate pairs for them."""

    probing: ItemSets
    stored: StoredItems
    #: Per row and basic window: candidate pairs.
    sizes: NDArray[np.int32]

    def part(self, number: int, of: int) -> Direction:
        """Part `number` of `of` equal parts of the rows."""
        first, end = (len(self.sizes) * step // of for step in (number, number + 1))
        if (first, end) == (0, len(self.sizes)):
            return self
        return Direction(self.probing.take(np.arange(first, end)), self.stored, self.sizes[first:end])


@dataclass(frozen=True, eq=False)
class Choice:
    """Per direction, row and basic window: whether to probe; and the total cost, estimates included."""

    probes: list[NDArray[np.bool_]]
    #: In comparisons, where one costs as much as it would on average if all were made.
    charged: float


def choose_by_content(
    condition: SetCondition, directions: Sequence[Direction], fraction: float, stored_rows: int
) -> Choice:
    """The best cells whose cost is at most this fraction of the cost of all."""
    candidate_pairs = float(sum(one.sizes.sum(dtype=np.int64) for one in directions))
    if fraction >= 1 or not candidate_pairs:
        return Choice([one.sizes > 0 for one in directions], candidate_pairs)
    parts = -(-sum(one.sizes.size for one in directions) // CELLS_AT_ONCE) or 1
    probes: list[list[NDArray[np.bool_]]] = [[] for _ in directions]
    spent = total = 0.0
    for number in range(parts):
        some = [one.part(number, parts) for one in directions]
        values, costs = _all_weighed(condition, some)
        everything, estimates = float(costs.sum()), price(costs.size, stored_rows / parts)
        chosen = choose_row_cells(values, costs, fraction * everything - estimates)
        spent += float(costs[chosen].sum()) + estimates
        total += everything
        for mine, found in zip(probes, _by_direction(chosen, some), strict=True):
            mine.append(found)
    # A lookup that finds no list costs nothing, so the total may be zero.
    return Choice([np.concatenate(one) for one in probes], candidate_pairs * spent / total if total else 0.0)


def _all_weighed(
    condition: SetCondition, some: Sequence[Direction]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """`_weighed` of all directions, one behind the other."""
    weighed = [_weighed(condition, one) for one in some]
    return np.concatenate([v.ravel() for v, _ in weighed]), np.concatenate([c.ravel() for _, c in weighed])


def _by_direction(chosen: NDArray[np.bool_], some: Sequence[Direction]) -> list[NDArray[np.bool_]]:
    """The chosen cells of each direction; a cell without rows is never one."""
    ends = np.cumsum([one.sizes.size for one in some])
    cut = zip(np.split(chosen, ends[:-1]), some, strict=True)
    return [mine.reshape(one.sizes.shape) & (one.sizes > 0) for mine, one in cut]


def _weighed(condition: SetCondition, one: Direction) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Per row and basic window: expected matches per cost, and the cost, in comparisons of bitsets."""
    stored, sizes = one.stored, one.sizes
    values = expected_matches(condition, one.probing, stored)
    if not stored.lists.any():
        return values, sizes.astype(np.int64)
    # List entries in the row's time range: the sum of the shares of its items.
    entries = _values(one.probing, stored, 1) * sizes + np.diff(one.probing.bounds)[:, None]
    costs = np.where(stored.lists, np.rint(_entry_cost(stored) * entries), sizes).astype(np.int64)
    costs[sizes == 0] = 0
    return (values * sizes / np.maximum(costs, 1)).astype(np.float32), costs


def _entry_cost(stored: StoredItems) -> float:
    """The cost of reading an entry in comparisons of bitsets, which touch at most a word per item."""
    mean = float(stored.items.sum()) / max(1, int(stored.rows.sum()))
    return ENTRY_WORDS / max(1.0, min(mean, len(stored.counts) / 64))


def expected_matches(condition: SetCondition, probing: ItemSets, stored: StoredItems) -> NDArray[np.float32]:
    """Per row and basic window: the expected number of matches of a comparison."""
    if isinstance(condition, InnerProduct):
        return _expected_products(probing, stored, condition.at_least)
    mean = round(float(stored.items.sum()) / max(1, int(stored.rows.sum())))
    largest = int(probing.sizes.max(initial=0)) + mean
    least = least_common(condition, largest)[probing.sizes + mean]
    values = np.zeros((len(probing), len(stored.rows)), np.float32)
    for at_least in np.unique(least).tolist():
        alike = np.flatnonzero(least == at_least)
        some = probing if alike.size == len(probing) else probing.take(alike)
        values[alike] = _values(some, stored, at_least)
    return values


def _values(probing: ItemSets, stored: StoredItems, at_least: int) -> NDArray[np.float32]:
    """As `match_values`, for rows that all probe the same basic windows, in the order given."""
    windows = len(stored.rows)
    if not windows:
        return np.zeros((len(probing), 0), np.float32)
    shares = item_shares(stored.counts, stored.rows, windows)
    newest = np.full(len(probing), windows - 1, np.int64)
    return match_values(probing, shares, newest, at_least)[:, ::-1]


def _expected_products(probing: ItemSets, stored: StoredItems, at_least: float) -> NDArray[np.float32]:
    """The expected sum of products over the threshold: Markov's bound on the probability of a match."""
    if stored.weights is None or probing.weights is None:
        return np.zeros((len(probing), len(stored.rows)), np.float32)
    mean = np.nan_to_num(stored.weights) / np.maximum(stored.rows, 1)
    sums = np.zeros((len(probing), len(stored.rows)))
    some = np.flatnonzero(np.diff(probing.bounds))
    if some.size:
        products = probing.weights[:, None] * mean[probing.items]
        sums[some] = np.add.reduceat(products, probing.bounds[some], axis=0)
    # NaN and negative estimates have no value.
    return np.clip(np.nan_to_num(sums / at_least), 0.0, 1e30).astype(np.float32)
