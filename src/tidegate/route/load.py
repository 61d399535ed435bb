"""The input of balancing strategies: the work of each partition, heavy key and instance in one batch.

All figures are counts of the batch that just ran (or estimates for the first, which has not run yet),
except `seconds`, which is measured. A join has two directions: new left rows probe stored right rows, and
the reverse. `stored[s]` are the rows of side s in the state, `probes[s]` the new rows of the *other* side
that probed them. In the biclique a group of instances serves one direction, and the other row of these
arrays is zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class LoadWork:
    """The work of each of n partitions (or keys): arrays of one length."""

    #: Shape (2, n): rows of side s in the state after the batch.
    stored: NDArray[Any]
    #: Shape (2, n): new rows of the other side that probed them.
    probes: NDArray[Any]
    #: Shape (n,): pairs found.
    matches: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.matches)

    def at(self, chosen: NDArray[np.int64] | NDArray[np.bool_]) -> LoadWork:
        """The work of these partitions or keys."""
        return LoadWork(self.stored[:, chosen], self.probes[:, chosen], self.matches[chosen])


def no_work(n: int) -> LoadWork:
    """Zero work for n partitions or keys."""
    return LoadWork(np.zeros((2, n), np.int64), np.zeros((2, n), np.int64), np.zeros(n, np.int64))


@dataclass(frozen=True)
class Load:
    """The load of one batch, as strategies see it.

    >>> Load(batch=7, partitions=no_work(4)).unevenness
    1.0
    """

    batch: int
    #: Per base partition, without the keys that have a place of their own.
    partitions: LoadWork
    #: Shape (instances,): measured processor time of each instance; empty where nothing was measured.
    seconds: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    #: Keys that are watched because they are heavy or have a place of their own: their codes, the partition
    #: that each belongs to by its code, and the work of each, wherever its rows lie. The work of a key
    #: without a place of its own is counted in its partition as well.
    codes: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))
    homes: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    keys: LoadWork = field(default_factory=lambda: no_work(0))
    #: The largest number of rows and pairs of an instance, divided by an even share.
    unevenness: float = 1.0
