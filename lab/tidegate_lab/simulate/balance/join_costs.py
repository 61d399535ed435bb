"""Cost models of a join instance, in counted work: the two papers' models, and that of an indexed kernel.

- `ComparedWithInstance` (FastJoin, equation 1): a new row is compared with every stored row of each instance
  that it visits. Grows with the square of the rate.
- `ComparedWithPartition` (Ls-Stream, equations 9 and 10): with those of its own partition only. Squared too.
- `Indexed`: a row finds its matches by key; a cost per row stored and per visit, which grow linearly with
  the rate, and per pair found, which grows with its square.

A key with a place of its own counts as a partition of its own. Linear and quadratic work are kept apart, so
that the rate an instance sustains can be solved for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tidegate_lab.simulate.balance.placement import Placement


@dataclass(frozen=True)
class Done:
    """What each unit did in one batch. First axis: the side that is stored; sides not served are zero."""

    #: Rows that were stored.
    new: NDArray[np.float64]
    #: Stored rows that new rows of the other side looked at.
    seen: NDArray[np.float64]
    #: Those new rows.
    probes: NDArray[np.float64]
    #: Pairs found.
    matches: NDArray[np.float64]


@dataclass(frozen=True)
class Cost:
    """Work per instance, in the two parts that grow differently with the rate."""

    linear: NDArray[np.float64]
    squared: NDArray[np.float64]


class JoinCosts(Protocol):
    """A cost model is a value."""

    def work(self, done: Done, placement: Placement) -> Cost:
        """Work of each instance."""
        ...

    def even(self, done: Done, instances: int) -> float:
        """Work of each instance if every row lay on one and all were equally busy: perfect balance."""
        ...


@dataclass(frozen=True)
class ComparedWithInstance:
    """FastJoin: L = |R|·φ of an instance."""

    def work(self, done: Done, placement: Placement) -> Cost:
        squared = np.zeros(placement.instances)
        for side in (0, 1):
            seen = placement.per_instance(done.seen[side][placement.unit] * placement.seen[side])
            comes = done.probes[side][placement.unit] * placement.comes[1 - side]
            squared += seen * placement.per_instance(comes)
        return Cost(np.zeros(placement.instances), squared)

    def even(self, done: Done, instances: int) -> float:
        return float(np.dot(done.seen.sum(axis=1), done.probes.sum(axis=1))) / instances**2


@dataclass(frozen=True)
class ComparedWithPartition:
    """Ls-Stream: the product of a partition's rows, summed over the partitions of an instance."""

    def work(self, done: Done, placement: Placement) -> Cost:
        compared = (done.seen * done.probes).sum(axis=0)
        squared = placement.per_instance(compared[placement.unit] * placement.share)
        return Cost(np.zeros(placement.instances), squared)

    def even(self, done: Done, instances: int) -> float:
        return float((done.seen * done.probes).sum()) / instances


@dataclass(frozen=True)
class Indexed:
    """Our kernels: sorted runs, merged. The unit is one pair found.

    The defaults are the ratios measured on the kernels (about 100 ns to sort and store a row,
    the same to look for partners, some 25 ns a pair).
    """

    store: float = 4.0
    probe: float = 4.0
    match: float = 1.0

    def work(self, done: Done, placement: Placement) -> Cost:
        unit, share = placement.unit, placement.share
        visits = (done.probes[::-1, unit] * placement.comes).sum(axis=0)
        rows = self.store * done.new.sum(axis=0)[unit] * share + self.probe * visits
        pairs = self.match * done.matches[unit] * share
        return Cost(placement.per_instance(rows), placement.per_instance(pairs))

    def even(self, done: Done, instances: int) -> float:
        rows = self.store * done.new.sum() + self.probe * done.probes.sum()
        return float(rows + self.match * done.matches.sum()) / instances
