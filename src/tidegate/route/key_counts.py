"""Counts the first rows of one side of a join, chunk by chunk, in constant memory.

Counted is what `control/balance/skew_scan.py` predicts a batch from: rows of every partition, heavy keys (by
the sketch of `route/frequent_keys.py`), the mean rows of all other keys, and the time that rows cover. Counts
of several tasks add up.

Guarantee: partitions are exact. While the sketch has room (for 12,000 keys with 1 / 16384 of the rows), the
reported rows of a heavy key are never too many and too few by at most six tenths of `SHARE`, and no key with
`SHARE` of the rows is missed; where a task has more keys than it may send, by what the next one had as well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.model.json_values import Snapshot
from tidegate.route.frequent_keys import FrequentKeys
from tidegate.route.hash_routing import partition_of

#: A key with less than this part of the rows that are counted together, or with fewer rows, is not worth a
#: word; and at most so many are told. Pairs grow with the square of rows: where keys are a little uneven
#: (Zipf 0.5), those with a few ten-thousandths of the rows make the heaviest instance a fifth heavier than an
#: even share.
SHARE, ROWS_LEAST, KEYS_MAX = 2e-4, 8, 1024
#: The sketch has room for three quarters of 2 ** this: far more keys than can have `SHARE` of the rows. Of
#: those, a task sends at most so many, and none with less than this part of `SHARE`: reports of thousands of
#: tasks have to fit into the driver.
_LG_SIZE, _SENT_MAX, _SENT_PART = 14, 2 * KEYS_MAX, 0.25
#: Rows of a chunk that are enough to tell wrong clocks from the others.
_ENOUGH = 20
#: The time that rows cover, without the few whose clocks are wrong: the middle part of them, in per cent.
_MIDDLE = (5.0, 95.0)
#: Newton's steps until a mean is known well enough, wherever it lies.
_STEPS = 16


@dataclass(frozen=True)
class SideSeen:
    """The rows that the first batch has for one side of a join."""

    #: Rows of each base partition; rows without a key count for nothing.
    partitions: NDArray[np.int64]
    #: Heavy keys and their rows.
    keys: dict[int, int]
    #: The time that the rows cover; None where there are none.
    span_us: tuple[int, int] | None
    #: Rows that a key which is not among the heavy ones has in the mean.
    usual: float = 0.0


class SideCount:
    """Rows of one side, as far as they were counted."""

    def __init__(self, partitions: int) -> None:
        self._partitions: NDArray[np.int64] = np.zeros(partitions, np.int64)
        self._keys = FrequentKeys(_LG_SIZE)
        #: The time that rows cover, and rows of the largest chunk that says so.
        self._span_us: tuple[int, int] | None = None
        self._span_rows = 0
        self._usual = 0.0

    def add(self, codes: NDArray[np.uint64], times_us: NDArray[np.int64]) -> None:
        """A chunk of rows."""
        if codes.size:
            first, last = np.percentile(times_us, _MIDDLE, method="nearest").tolist()
            self.add_counted(*np.unique(codes, return_counts=True), (first, last))

    def add_counted(
        self, keys: NDArray[np.uint64], rows: NDArray[np.int64], span_us: tuple[int, int]
    ) -> None:
        """A chunk whose keys somebody counted: each once, with its rows."""
        homes = partition_of(keys, self._partitions.size)
        self._partitions += np.bincount(homes, rows, self._partitions.size).astype(np.int64)
        self._keys.add(keys, rows)
        # Means of chunks add up, as rows do.
        total = int(rows.sum())
        self._usual += rows_of_others(rows[rows < _least(total)])
        self._cover(span_us, total)

    @property
    def rows(self) -> int:
        """All of them."""
        return self._keys.total

    def merge(self, other: SideCount) -> None:
        """Add what another task counted."""
        self._partitions += other._partitions
        self._keys.merge(other._keys)
        self._usual += other._usual
        if other._span_us is not None:
            self._cover(other._span_us, other._span_rows)

    def _cover(self, span_us: tuple[int, int], rows: int) -> None:
        """Few rows, of which one may have any time, say nothing where more have spoken."""
        enough, known = rows >= _ENOUGH, self._span_rows >= _ENOUGH
        if known and not enough:
            return
        first, last = span_us if self._span_us is None or enough > known else self._span_us
        self._span_us = min(first, span_us[0]), max(last, span_us[1])
        self._span_rows = max(self._span_rows, rows)

    def seen(self) -> SideSeen:
        """What is told of all that was counted."""
        least = _least(self._keys.total)
        codes, rows = self._keys.heaviest(least, KEYS_MAX)
        keys = dict(zip(codes.tolist(), rows.tolist(), strict=True))
        # Keys that were light in every chunk may be heavy in all: a key that is not told has fewer rows.
        return SideSeen(self._partitions, keys, self._span_us, min(self._usual, least))

    def to_json(self) -> Snapshot:
        return {
            "partitions": self._partitions.tolist(),
            "keys": self._keys.to_json(_SENT_PART * SHARE * self._keys.total, _SENT_MAX),
            "span_us": self._span_us,
            "span_rows": self._span_rows,
            "usual": self._usual,
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> SideCount:
        restored = cls(0)
        restored._partitions = np.array(raw["partitions"], np.int64)
        restored._keys = FrequentKeys.from_json(raw["keys"], _LG_SIZE)
        restored._span_us = None if raw["span_us"] is None else (raw["span_us"][0], raw["span_us"][1])
        restored._span_rows, restored._usual = raw["span_rows"], raw["usual"]
        return restored


def _least(rows: float) -> float:
    """Rows of a key that is told, of so many."""
    return max(SHARE * rows, ROWS_LEAST)


def rows_of_others(rows: NDArray[np.int64]) -> float:
    """Rows that a key has in the mean, of keys that have some and are not heavy.

    Keys that have no row were not counted. Were rows by chance one key's or another's, λ to a key, those with
    rows would have λ / (1 - e^-λ) of them each, which is known.
    """
    each = float(rows.sum()) / max(rows.size, 1)
    if each <= 1:
        return 0.0
    mean = each
    for _ in range(_STEPS):
        mean -= (mean - each * (1 - math.exp(-mean))) / (1 - each * math.exp(-mean))
    return mean
