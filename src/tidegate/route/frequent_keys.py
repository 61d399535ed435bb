"""Finds the keys that cause much of the work, among any number of keys, in constant memory.

FastJoin keeps a count of every key. Here heavy keys come from the frequent items sketch of DataSketches
(counters of Misra and Gries, purged by their median). Sketches are mergeable: every task makes one, and
they are added up.

    rows, chunk by chunk ─▶ weights by key ─▶ those above the floor ─▶ sketch ─▶ heaviest keys

Sending a key to the sketch takes a seventh of a microsecond, so keys below `FLOOR` of their chunk's weight
are not sent. That is all keys of an even distribution, and all but some hundreds of a skewed one.

Guarantee: an estimated weight is never too large, and too small by at most `error`: `FLOOR` of the total,
the purged weight (at most 3.5 / 2 ** lg_size of the total), and the heaviest key that was not sent. So
`heaviest` misses no key above its bound, as long as that is above `error`. Memory is constant for any
number of keys and rows. The same chunks in the same order give the same answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import datasketches
import numpy as np
from numpy.typing import NDArray

from tidegate.model.json_values import Snapshot

#: Keys below this part of the weight of their chunk are not sent to the sketch.
FLOOR = 1 / 16384
#: Equal to no key: keys are numbers.
_NO_KEY = ""
_MISS_NONE = datasketches.frequent_items_error_type.NO_FALSE_NEGATIVES


class FrequentKeys:
    """Weights of the heaviest keys."""

    def __init__(self, lg_size: int) -> None:
        """An empty sketch with room for three quarters of 2 ** lg_size keys."""
        self._sketch = datasketches.frequent_items_sketch(lg_size)
        #: Weight of all keys, and the weight of any single key that may not have been sent to the sketch.
        self.total, self._unsent = 0, 0.0

    def add(self, codes: NDArray[np.uint64], weights: NDArray[np.int64]) -> None:
        """Add a chunk: each of its keys once, with its weight."""
        total = int(weights.sum())
        chosen = np.flatnonzero(weights >= max(1.0, FLOOR * total))
        self._send(codes[chosen], weights[chosen])
        self.total += total
        self._unsent += FLOOR * total

    def _send(self, codes: NDArray[np.uint64], weights: NDArray[np.int64]) -> None:
        for code, weight in zip(codes.tolist(), weights.tolist(), strict=True):
            self._sketch.update(code, weight)

    def merge(self, other: FrequentKeys) -> None:
        """Add the counts of another sketch."""
        self._sketch.merge(other._sketch)
        self.total += other.total
        self._unsent += other._unsent

    @property
    def error(self) -> float:
        """The largest amount by which a weight may be too small."""
        # The upper bound of an absent key is what the sketch may have purged of any key.
        return self._unsent + float(self._sketch.get_upper_bound(_NO_KEY))

    def heaviest(self, least: float, most: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Codes and weights of all keys that may have this weight, heaviest first, at most `most`."""
        bound = max(0, math.ceil(least - self._unsent) - 1)
        found = self._sketch.get_frequent_items(_MISS_NONE, bound)
        codes = np.array([code for code, *_ in found], np.uint64)
        weights = np.array([at_least for _, _, at_least, _ in found], np.int64)
        order = np.lexsort((codes, -weights))[:most]
        return codes[order], weights[order]

    def to_json(self, least: float, most: int) -> Snapshot:
        """The sketch as JSON: at most `most` keys, none lighter than `least`."""
        codes, weights = self.heaviest(0, most + 1)
        sent = min(most, int((weights >= least).sum()))
        left_out = int(weights[sent]) if sent < weights.size else 0
        return {
            "total": self.total,
            "untold": self.error + left_out,
            "codes": codes[:sent].tolist(),
            "weights": weights[:sent].tolist(),
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any], lg_size: int) -> FrequentKeys:
        restored = cls(lg_size)
        restored._send(np.array(raw["codes"], np.uint64), np.array(raw["weights"], np.int64))
        restored.total, restored._unsent = raw["total"], raw["untold"]
        return restored
