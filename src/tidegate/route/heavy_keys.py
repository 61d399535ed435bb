"""Which keys are heavy: found exactly in a task, remembered over batches in constant memory.

In a task the new rows are sorted by code, so a key is a run of rows. `heavy_keys` finds all runs of at least
a given share of the rows without looking at every row: a run of c rows or more covers one of the positions
c - 1, 2c - 1, …, so only the keys at those positions are counted.

Over batches `HeavyKeys` adds such lists up, with forgetting: before each batch all counts are multiplied by
`fading`. It keeps `size` keys. When there are more, the largest count that has no place is taken off all
counts, and what is left above zero is kept: the Misra–Gries summary in the mergeable form of Agarwal et al.
(Mergeable Summaries, 2012). Both steps are linear, so the classic bound holds for faded counts too.

Guarantee, for the faded number of rows of every key, listed (`counts`) or not (0):

    count <= true <= count + missed        missed <= (share + 1 / (size + 1)) · total

where `share` is the largest share below which tasks did not report keys, and `total` the faded number of all
rows. So a key with more than that part of all rows is always listed. `missed` is counted, not estimated.

Why not the frequent-items sketch of Apache DataSketches: it cannot forget, its Python interface takes one key
at a time, and its bytes are not JSON. Lists of a few hundred keys per task, already counted, leave nothing
for it to do that a sum over arrays does not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.errors import FlowError, explain

if TYPE_CHECKING:
    from numpy.typing import NDArray


def heavy_keys(
    sorted_codes: NDArray[np.uint64], share: float
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Codes with at least `share` of the rows (and at least one), ascending, and how many rows each has."""
    if not 0 <= share <= 1:
        raise FlowError(explain("A share of rows lies between 0 and 1", got=share))
    least = max(1, math.ceil(share * sorted_codes.size))
    sampled = sorted_codes[least - 1 :: least]
    candidates = sampled[np.flatnonzero(np.append(sampled[1:] != sampled[:-1], sampled.size > 0))]
    first = np.searchsorted(sorted_codes, candidates, side="left")
    counts = np.searchsorted(sorted_codes, candidates, side="right") - first
    heavy = counts >= least
    return candidates[heavy], counts[heavy]


@dataclass(frozen=True)
class HeavyKeys:
    """Counts of the heaviest keys so far; see the module docstring."""

    size: int = 512
    #: 1 never forgets; less follows the stream faster and forgets rarer keys.
    fading: float = 0.8
    #: Ascending, and as many counts.
    codes: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))
    counts: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    #: No key has more rows than its count and this.
    missed: float = 0.0
    total: float = 0.0

    def __post_init__(self) -> None:
        if self.size < 1 or not 0 < self.fading <= 1:
            raise FlowError(
                explain(
                    "Heavy keys need room for one key, and must not fade to nothing at once",
                    got=f"size {self.size}, fading {self.fading}",
                    do="Give a size of 1 or more and a fading above 0, at most 1",
                )
            )

    def after_batch(
        self, codes: NDArray[np.uint64], counts: NDArray[np.int64], rows: int, share: float
    ) -> HeavyKeys:
        """After one more batch of `rows` rows: the lists of all its tasks one after the other.

        A code may be in several lists. Keys with less than `share` of a task's rows may be in none.
        """
        both = np.concatenate([self.codes, codes])
        added = np.concatenate([self.fading * self.counts, counts])
        listed, places = np.unique(both, return_inverse=True)
        sums = np.bincount(places, added, listed.size).astype(np.float64)
        cut = 0.0
        if listed.size > self.size:
            cut = float(np.partition(sums, listed.size - self.size - 1)[listed.size - self.size - 1])
            sums -= cut
        kept = sums > 0
        return HeavyKeys(
            self.size,
            self.fading,
            listed[kept],
            sums[kept],
            missed=self.fading * self.missed + share * rows + cut,
            total=self.fading * self.total + rows,
        )

    def at_least(self, share: float) -> NDArray[np.uint64]:
        """Codes that may have this share of all rows. None that has is left out, if more than was missed."""
        return self.codes[self.counts + self.missed >= share * self.total]

    def to_json(self) -> dict[str, Any]:
        return {
            "size": self.size,
            "fading": self.fading,
            "codes": self.codes.tolist(),
            "counts": self.counts.tolist(),
            "missed": self.missed,
            "total": self.total,
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> HeavyKeys:
        codes, counts = np.array(raw["codes"], np.uint64), np.array(raw["counts"], np.float64)
        return cls(raw["size"], raw["fading"], codes, counts, raw["missed"], raw["total"])
