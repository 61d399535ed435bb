"""What balancers are told: what each partition, each heavy key and each instance had to do in one batch.

All figures are counts of the batch that just ran (or what is likely of the first, which did not run yet),
except `seconds`, which was measured. A join has two
directions: new left rows look at stored right rows, and the other way round. `stored[s]` are the rows of
side s that lie in the state, `probes[s]` the new rows of the *other* side that looked at them. In the
biclique a group of instances serves one direction, and the other row of these arrays is zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Work:
    """What each of n partitions (or keys) had to do: arrays of one length."""

    #: Shape (2, n): rows of side s in the state after the batch.
    stored: NDArray[Any]
    #: Shape (2, n): new rows of the other side that looked for partners among them.
    probes: NDArray[Any]
    #: Shape (n,): pairs found.
    matches: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.matches)

    def at(self, chosen: NDArray[np.int64] | NDArray[np.bool_]) -> Work:
        """The same of some of them."""
        return Work(self.stored[:, chosen], self.probes[:, chosen], self.matches[chosen])


def no_work(n: int) -> Work:
    """Nothing was done in any of n."""
    return Work(np.zeros((2, n), np.int64), np.zeros((2, n), np.int64), np.zeros(n, np.int64))


@dataclass(frozen=True)
class Load:
    """What one batch did, as balancers see it."""

    batch: int
    #: Per base partition, without the keys that have a place of their own.
    partitions: Work
    #: Shape (instances,): measured processor time of each instance; empty where nothing was measured.
    seconds: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    #: Keys that are watched because they are heavy or have a place of their own: their codes, the partition
    #: that each belongs to by its code, and what each did, wherever its rows lie. What a key without a place
    #: of its own did is counted in its partition as well.
    codes: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))
    homes: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    keys: Work = field(default_factory=lambda: no_work(0))
    #: The largest number of rows and pairs of an instance over that of an even share.
    unevenness: float = 1.0
