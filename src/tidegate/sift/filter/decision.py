"""Decision: which rows of a region are dropped, so that the region loses exactly its share of them.

Paper: sifters, section IV-A. At the edge two counters per region decide, without random numbers: a row is
dropped if sending it would let the share of dropped rows fall below the threshold d of its region,

    drop  ⇔  dropped + 1/2 < d · offered        (offered with this row)

Guarantee: after any number of rows of a region, dropped differs from d · offered by at most one half, as
long as samples leave enough rows to drop. The one half is ours: as printed, the rule rounds up and drops
the first row of every region with d > 0. That is too much where filters are replaced often and there are
many regions and nodes; rounding to the nearest has no such drift.

A share of the rows are samples (section II-E): marked, and passed regardless of the threshold, so that the
server sees what is offered. They count as offered, not as dropped, so other rows are dropped in their
place. A hash (SplitMix64) of the row's position in its stream selects them: every k-th row would always hit
the same one of k sensors that alternate. A row in no region always passes; it is counted as region `count`.

A server decides without counters, because replays must agree: `keep_by_hash` takes 64 hashed bits of a row,

    keep  ⇔  (hash >>> 11) · 2^-53 >= d         (Spark: shiftrightunsigned(hash, 11) >= ⌈d · 2^53⌉, the same)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.kernels import compiled
from tidegate.sift.filter.lookup import NOWHERE, Lookup

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tidegate.sift.filter.sifter import Sifter

#: The decision about a row: kept rows are above DROP, rows to mark are SAMPLE.
DROP, KEEP, SAMPLE = 0, 1, 2
#: 2^-53: turns the upper 53 bits of a hash into a share in [0, 1), exactly.
UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class Counters:
    """Rows of each region under one sifter; the last entry counts rows in no region."""

    offered: NDArray[np.int64]
    dropped: NDArray[np.int64]
    sampled: NDArray[np.int64]

    @classmethod
    def zero(cls, regions: int) -> Counters:
        return cls(*(np.zeros(regions + 1, np.int64) for _ in range(3)))


class Gate:
    """A sifter applied to one stream: batches of coordinates in, verdicts out; counters accumulate."""

    def __init__(self, sifter: Sifter, *, seed: int = 0, position: int = 0) -> None:
        self.sifter = sifter
        self.lookup: Lookup = Lookup.of(sifter.regions)
        self.counters: Counters = Counters.zero(sifter.regions.count)
        #: Nodes with different seeds sample different positions.
        self.seed = seed
        #: Rows seen so far, over all sifters.
        self.position = position
        # Rows in no region are never dropped: a threshold of 0 needs no extra branch.
        self._thresholds = np.append(sifter.thresholds, 0.0)

    def decide(self, coordinates: Sequence[NDArray[np.float64]]) -> NDArray[np.uint8]:
        """DROP, KEEP or SAMPLE for every row, given one array per axis, in the order of the stream."""
        rows = len(coordinates[0])
        verdicts = np.empty(rows, np.uint8)
        lookup, counted = self.lookup, self.counters
        if lookup.exact_walk:
            cell, cells = lookup.regions(coordinates), np.arange(lookup.count + 1, dtype=np.int32)
        else:
            cell, cells = np.zeros(rows, np.int32), lookup.cells
            lookup.add_ranks(coordinates, cell)
        _decide(
            cell,
            cells,
            self._thresholds,
            counted.offered,
            counted.dropped,
            counted.sampled,
            self.sifter.sample_share,
            np.uint64((self.seed + self.position) % 2**64),
            verdicts,
        )
        self.position += rows
        return verdicts


def keep_by_hash(
    region: NDArray[np.int32], hashed: NDArray[np.int64], thresholds: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Whether each row passes, by 64 hashed bits of it; regions without a threshold always pass."""
    kept = np.empty(len(region), np.bool_)
    _keep_by_hash(region, hashed.view(np.uint64), np.append(thresholds, 0.0), kept)
    return kept


@compiled
def _decide(
    cell: NDArray[np.int32],
    cells: NDArray[np.int32],
    thresholds: NDArray[np.float64],
    offered: NDArray[np.int64],
    dropped: NDArray[np.int64],
    sampled: NDArray[np.int64],
    sample_share: float,
    position: np.uint64,
    verdicts: NDArray[np.uint8],
) -> None:
    nowhere = len(thresholds) - 1
    for i in range(len(cell)):
        region = nowhere if cell[i] >= NOWHERE else cells[cell[i]]
        offered[region] += 1
        if sample_share > 0.0 and _share(_mixed(position + np.uint64(i))) < sample_share:
            sampled[region] += 1
            verdicts[i] = SAMPLE
            continue
        drop = dropped[region] + 0.5 < thresholds[region] * offered[region]
        dropped[region] += drop
        verdicts[i] = not drop


@compiled
def _keep_by_hash(
    region: NDArray[np.int32],
    hashed: NDArray[np.uint64],
    thresholds: NDArray[np.float64],
    kept: NDArray[np.bool_],
) -> None:
    for i in range(len(region)):
        kept[i] = _share(hashed[i]) >= thresholds[region[i]]


@compiled
def _share(bits: np.uint64) -> float:
    return np.float64(bits >> np.uint64(11)) * UNIT


@compiled
def _mixed(number: np.uint64) -> np.uint64:
    """SplitMix64's output function: decorrelates neighbouring numbers."""
    x = (number + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
