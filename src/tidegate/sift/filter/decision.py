"""Decision: which rows of a region are dropped, so that the region loses exactly its share of them.

Paper: sifters, section IV-A. A share of the rows are samples (section II-E): marked, and passed regardless of
the threshold, so that the server sees what is offered. The threshold d of a region is the share of its other
rows to drop, at the edge as on a server, and whoever sets it makes up for the samples.

At the edge counters per region decide:

    drop  ⇔  dropped + lot < d · others             (others: rows that are no samples, with this one)
    keep  ⇔  kept + lot < (1 − d) · others          where d > 1/2

Every drop has a lot in [0, 1), drawn once. So each stretch of 1/d rows loses one at random: with a fixed lot
(the paper rounds up) every k-th row would go, which is always the same one of k sensors that alternate.
Guarantee: after any number of rows of a region, dropped differs from d · others by at most one, and on
average by nothing, also where filters are replaced often and there are many regions and nodes. Equal rows
have fates of their own.

Lots come from a hash (SplitMix64) of the number of the drop in its region, samples from one of the row's
position in its stream.

A server decides without counters, because replays must agree: `keep_by_hash` takes 64 hashed bits of a row,

    keep  ⇔  (hash >>> 11) · 2^-53 >= d         (Spark: shiftrightunsigned(hash, 11) >= ⌈d · 2^53⌉, the same)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidegate.kernels import compiled
from tidegate.sift.filter.lookup import Lookup

if TYPE_CHECKING:
    from tidegate.sift.filter.sifter import Sifter

#: The decision about a row: kept rows are above DROP, rows to mark are SAMPLE.
DROP, KEEP, SAMPLE = 0, 1, 2
#: 2^-53: turns the upper 53 bits of a hash into a share in [0, 1), exactly.
UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class Counters:
    """Rows of each region under one sifter."""

    offered: NDArray[np.int64]
    dropped: NDArray[np.int64]
    sampled: NDArray[np.int64]

    @classmethod
    def zero(cls, regions: int) -> Counters:
        return cls(*(np.zeros(regions, np.int64) for _ in range(3)))


class Gate:
    """A sifter applied to one stream: batches of coordinates in, verdicts out; counters accumulate.

    `counters`: those that a sifter of the same order left.
    """

    def __init__(
        self, sifter: Sifter, *, seed: int = 0, position: int = 0, counters: Counters | None = None
    ) -> None:
        self.sifter = sifter
        self.lookup: Lookup = Lookup.of(sifter.regions)
        self.counters: Counters = counters or Counters.zero(sifter.regions.count)
        #: Nodes with different seeds sample different positions.
        self.seed = seed
        #: Rows seen so far, over all sifters.
        self.position = position
        # Another sifter draws other lots.
        self._lots = _lots(np.uint64((seed ^ hash(sifter.order)) % 2**64), sifter.thresholds, *self._counted)

    def decide(self, coordinates: Sequence[NDArray[np.float64]]) -> NDArray[np.uint8]:
        """DROP, KEEP or SAMPLE for every row, given one array per axis, in the order of the stream."""
        rows = len(coordinates[0])
        verdicts = np.empty(rows, np.uint8)
        lookup = self.lookup
        if lookup.exact_walk:
            cell, cells = lookup.regions(coordinates), np.arange(lookup.count, dtype=np.int32)
        else:
            cell, cells = np.zeros(rows, np.int32), lookup.cells
            lookup.add_ranks(coordinates, cell)
        _decide(
            cell,
            cells,
            self.sifter.thresholds,
            *self._counted,
            self.sifter.sample_share,
            np.uint64((self.seed + self.position) % 2**64),
            *self._lots,
            verdicts,
        )
        self.position += rows
        return verdicts

    @property
    def _counted(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        return self.counters.offered, self.counters.dropped, self.counters.sampled


def keep_by_hash(
    region: NDArray[np.int32], hashed: NDArray[np.int64], thresholds: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Whether each row passes, by 64 hashed bits of it."""
    kept = np.empty(len(region), np.bool_)
    _keep_by_hash(region, hashed.view(np.uint64), thresholds, kept)
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
    seeds: NDArray[np.uint64],
    lots: NDArray[np.float64],
    verdicts: NDArray[np.uint8],
) -> None:
    for i in range(len(cell)):
        region = cells[cell[i]]
        offered[region] += 1
        if sample_share > 0.0 and _share(_mixed(position + np.uint64(i))) < sample_share:
            sampled[region] += 1
            verdicts[i] = SAMPLE
            continue
        others, d = offered[region] - sampled[region], thresholds[region]
        keeps = d > 0.5  # what is rarer has lots
        chosen = others - 1 - dropped[region] if keeps else dropped[region]
        hit = chosen + lots[region] < (1.0 - d if keeps else d) * others
        if hit:
            lots[region] = _share(_mixed(seeds[region] + np.uint64(chosen + 1)))
        verdicts[i] = KEEP if hit == keeps else DROP
        dropped[region] += hit != keeps


@compiled
def _lots(
    seed: np.uint64,
    thresholds: NDArray[np.float64],
    offered: NDArray[np.int64],
    dropped: NDArray[np.int64],
    sampled: NDArray[np.int64],
) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    """By region: the seed of its lots, and the next lot."""
    seeds, lots = np.empty(len(dropped), np.uint64), np.empty(len(dropped))
    for region in range(len(dropped)):
        kept = offered[region] - sampled[region] - dropped[region]
        chosen = kept if thresholds[region] > 0.5 else dropped[region]
        seeds[region] = _mixed(seed ^ _mixed(np.uint64(region)))
        lots[region] = _share(_mixed(seeds[region] + np.uint64(chosen)))
    return seeds, lots


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
