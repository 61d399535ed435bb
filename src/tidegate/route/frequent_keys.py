"""Keys that make much of the work: out of any number of keys, in constant memory.

FastJoin keeps a count of every key. Here heavy keys come from the frequent items sketch of DataSketches
(counters of Misra and Gries, purged by their median), which is mergeable: every task makes one, and sketches
add up.

    rows, chunk by chunk ─▶ weights by key ─▶ those above the floor ─▶ sketch ─▶ heaviest keys

Handing a key over takes a seventh of a microsecond, so keys below `FLOOR` of their chunk's weight are not: of
even keys that is all of them, and of skewed ones all but some hundreds.

Guarantee: a weight is never told too large, and too small by at most `error`, which is `FLOOR` of the total
and what was purged, at most 3.5 / 2 ** lg_size of it. So `heaviest` misses no key above its bound, as long as
that is above `error`. Memory is constant, whatever the number of keys and rows. The same chunks in the same
order give the same answer.
"""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import datasketches
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Keys below this part of the weight of their chunk are not handed to the sketch.
FLOOR = 1 / 16384
_NUMBERS = datasketches.PyLongsSerDe()
#: Equal to no key: keys are numbers.
_NO_KEY = ""
_MISS_NONE = datasketches.frequent_items_error_type.NO_FALSE_NEGATIVES


class FrequentKeys:
    """Weights of the heaviest keys."""

    def __init__(self, lg_size: int) -> None:
        """With room for three quarters of 2 ** lg_size keys."""
        self._sketch = datasketches.frequent_items_sketch(lg_size)
        #: Weight of all keys.
        self.total = 0

    def add(self, codes: NDArray[np.uint64], weights: NDArray[np.int64]) -> None:
        """A chunk: each of its keys once, with its weight."""
        total = int(weights.sum())
        chosen = np.flatnonzero(weights >= max(1.0, FLOOR * total))
        # The sketch writes its keys as signed numbers.
        signed = codes[chosen].view(np.int64).tolist()
        for code, weight in zip(signed, weights[chosen].tolist(), strict=True):
            self._sketch.update(code, weight)
        self.total += total

    def merge(self, other: FrequentKeys) -> None:
        """Add what another one has seen."""
        self._sketch.merge(other._sketch)
        self.total += other.total

    @property
    def error(self) -> float:
        """What any weight may be too small by."""
        # Of something that is no key, the sketch says what it may have forgotten of any.
        return FLOOR * self.total + float(self._sketch.get_upper_bound(_NO_KEY))

    def heaviest(self, least: float, most: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """All keys that may have this weight, the heaviest first and at most so many: codes, and weights."""
        bound = max(0, math.ceil(least - FLOOR * self.total) - 1)
        found = self._sketch.get_frequent_items(_MISS_NONE, bound)
        codes = np.array([code for code, *_ in found], np.int64).view(np.uint64)
        weights = np.array([at_least for _, _, at_least, _ in found], np.int64)
        order = np.lexsort((codes, -weights))[:most]
        return codes[order], weights[order]

    def to_json(self) -> dict[str, Any]:
        return {"total": self.total, "sketch": b64encode(self._sketch.serialize(_NUMBERS)).decode()}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> FrequentKeys:
        restored = cls.__new__(cls)
        restored._sketch = datasketches.frequent_items_sketch.deserialize(b64decode(raw["sketch"]), _NUMBERS)
        restored.total = raw["total"]
        return restored
