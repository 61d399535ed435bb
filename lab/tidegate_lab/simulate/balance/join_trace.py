"""The trace of a simulated partitioned join, batch by batch, and the figures derived from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.route.fastjoin.imbalance import imbalance
from tidegate.route.ls_stream.deviation import deviation
from tidegate_lab.simulate.balance.join_costs import Cost
from tidegate_lab.simulate.balance.placement import Migration


@dataclass(frozen=True)
class Share:
    """One group of instances in one batch: all of them, or one half of the biclique."""

    cost: Cost
    #: Work of each instance in perfect balance; see `join_costs.py`.
    even: float
    #: Size of the routing table; keys in it that lie on several instances.
    entries: int
    split: int
    #: What moved between this batch and the one before it; None where nothing did.
    migration: Migration | None

    @property
    def work(self) -> NDArray[np.float64]:
        return self.cost.linear + self.cost.squared

    @property
    def ratio(self) -> float:
        """LI of FastJoin (equation 2): heaviest / lightest."""
        return imbalance(self.work)

    @property
    def deviation(self) -> float:
        """LI of Ls-Stream (equation 13): the larger of the relative distances from the mean."""
        return deviation(self.work)


@dataclass(frozen=True)
class JoinBatch:
    """One batch: new rows, rows in the windows after it, pairs found, and each group's share."""

    batch: int
    rows: int
    stored: int
    pairs: int
    groups: tuple[Share, ...]

    @property
    def work(self) -> NDArray[np.float64]:
        """Work of every instance."""
        return np.concatenate([group.work for group in self.groups])

    @property
    def makespan(self) -> float:
        return float(self.work.max())

    @property
    def even(self) -> float:
        """Perfect balance over all instances."""
        sizes = np.array([group.work.size for group in self.groups])
        return float(np.dot([group.even for group in self.groups], sizes) / sizes.sum())

    @property
    def overload(self) -> float:
        """How many times as long as in perfect balance the batch takes."""
        return self.makespan / self.even if self.even > 0 else 1.0

    @property
    def moved_rows(self) -> float:
        return sum(group.migration.rows for group in self.groups if group.migration)

    @property
    def migrations(self) -> int:
        return sum(group.migration is not None for group in self.groups)


@dataclass(frozen=True)
class JoinTrace:
    """A whole run."""

    batches: tuple[JoinBatch, ...]

    def series(self, name: str) -> NDArray[np.float64]:
        """One of the figures of a batch, over time."""
        return np.array([getattr(batch, name) for batch in self.batches], np.float64)

    def ratios(self) -> NDArray[np.float64]:
        """LI of FastJoin over time: the worse of the groups."""
        return np.array([max(group.ratio for group in batch.groups) for batch in self.batches])

    def deviations(self) -> NDArray[np.float64]:
        """LI of Ls-Stream over time: the worse of the groups."""
        return np.array([max(group.deviation for group in batch.groups) for batch in self.batches])

    def sustained_rates(self, capacity: float) -> NDArray[np.float64]:
        """Per batch: how many times the input rate could be until the heaviest instance has no time left.

        `capacity` is the work that an instance can do during a batch. At x times the rate, work is
        linear · x + squared · x²; with squared work alone this is the papers' sqrt(capacity / heaviest).
        """
        return np.array(
            [min(_sustained(group.cost, capacity) for group in batch.groups) for batch in self.batches]
        )

    def throughput(self, capacity: float, skip: int = 0) -> float:
        """Rows per batch that the heaviest instance sustains: the mean over all but the first batches."""
        rates = self.sustained_rates(capacity)[skip:]
        return float(np.mean(rates * self.series("rows")[skip:]))


def _sustained(cost: Cost, capacity: float) -> float:
    linear, squared = cost.linear, cost.squared
    # The stable form of the root: it also holds where either part is zero.
    with np.errstate(divide="ignore"):
        rates = 2 * capacity / (linear + np.sqrt(linear**2 + 4 * squared * capacity))
    return float(rates.min())
