"""What of a batch no operator explains: a fixed part, and one for every row that comes in.

Spark plans, schedules and commits whatever a batch holds; but it also reads, parses and shuffles its rows,
and rows of JSON take longer there than in any join. Who took that for fixed would let in ever more rows,
because they seem to cost nothing.

    seconds ▲            ╱ ▪       batches are remembered by size, a quarter of an octave each: sizes that
            │        ▪ ╱           differ by a fifth and more tell what a row takes, and what an empty batch
            │      ╱ ▪             would. Batches of about one size tell nothing, however often they come:
            │  ▪ ╱                 what they differ by is chance, and the last answer stays.
            └──────────────▶ rows

Before sizes differ, all of it is thought to be for rows that a batch without any takes less (one of those has
mostly come before the first rows did; it may do less than others, so it says nothing once sizes differ): then
neither twice as many are let in because they seem to cost nothing, nor is a batch that is too long taken for
fate; and the next batch, which has another size for it, tells what is true. Rows that take less than a third
of the overhead of the largest batches are not told from none.

Guarantee: a function of what was observed; one slow batch changes little (medians); `snapshot` → `restore`
gives the same answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, log2
from statistics import fmean, median, quantiles
from typing import Any

from tidegate.model.json_values import Snapshot

#: Fixed overhead is what three of four of these last batches did not exceed, without their rows.
_KEPT = 8
#: Batches of a size that are remembered, and for how many batches after the last of them.
_OF_A_SIZE, _REMEMBERED = 5, 60
#: Sizes tell something when the largest is so many times the smallest.
_APART = 1.2
#: Rows matter from this part of the overhead on.
_MATTERS = 1 / 3

#: Rows and seconds of a batch, and its number.
_Batch = tuple[float, float, int]


class Overhead:
    """Seconds of a batch that are no operator's."""

    def __init__(self) -> None:
        #: The last batches of each size, and the last ones of all.
        self._sizes: dict[int, list[_Batch]] = {}
        self._last: list[_Batch] = []
        #: Seconds of a row as sizes told it; None before they did.
        self._learnt: float | None = None
        #: Seconds of the last batches without rows.
        self._empty: list[float] = []

    @property
    def per_row(self) -> float:
        """Seconds of a row; none where rows take so little of the overhead that it may be chance."""
        if not self._last:
            return 0.0
        rows, seconds = self._middles()[-1]
        per_row = self._guessed(rows, seconds) if self._learnt is None else self._learnt
        return per_row if per_row * rows > _MATTERS * seconds else 0.0

    @property
    def most_rows(self) -> float:
        """Those of the largest batches that are remembered."""
        return self._middles()[-1][0] if self._last else inf

    @property
    def fixed(self) -> float:
        per_row = self.per_row
        left = [seconds - per_row * rows for rows, seconds, _ in self._last]
        if len(left) < 2:
            return max([0.0, *left])
        return max(0.0, quantiles(left, n=4, method="inclusive")[2])

    def observe(self, rows: float, seconds: float) -> None:
        """After a batch of so many rows."""
        number = self._last[-1][2] + 1 if self._last else 0
        batch = (float(rows), float(seconds), number)
        self._last = [*self._last, batch][-_KEPT:]
        size = round(4 * log2(max(rows, 1.0)))
        self._sizes[size] = [*self._sizes.get(size, []), batch][-_OF_A_SIZE:]
        known = sorted(self._sizes.items())
        self._sizes = {size: some for size, some in known if some[-1][2] > number - _REMEMBERED}
        self._tell()

    def observe_empty(self, seconds: float) -> None:
        """After a batch without rows."""
        self._empty = [*self._empty, float(seconds)][-_OF_A_SIZE:]

    def _guessed(self, rows: float, seconds: float) -> float:
        """Seconds of a row, before sizes tell."""
        without = median(self._empty) if self._empty else 0.0
        return max(0.0, seconds - without) / max(rows, 1.0)

    def _middles(self) -> list[tuple[float, float]]:
        """Rows and seconds of the middle batch of each size, the smallest first."""
        # A handful of numbers, asked for several times a batch: arrays would take twenty times as long.
        return [
            (median(rows for rows, _, _ in some), median(seconds for _, seconds, _ in some))
            for some in self._sizes.values()
        ]

    def _tell(self) -> None:
        """A line through the sizes, each by its middle batch and as heavy as it has batches."""
        middles, weights = self._middles(), [len(some) for some in self._sizes.values()]
        sizes = [rows for rows, _ in middles]
        if max(sizes) < _APART * max(min(sizes), 1.0):
            return
        mean = fmean(sizes, weights)
        pulls = [weight * (rows - mean) for rows, weight in zip(sizes, weights, strict=True)]
        rise = sum(pull * seconds for pull, (_, seconds) in zip(pulls, middles, strict=True))
        self._learnt = max(
            0.0, rise / sum(pull * (rows - mean) for pull, rows in zip(pulls, sizes, strict=True))
        )

    def snapshot(self) -> Snapshot:
        return {
            "sizes": {str(size): [list(one) for one in some] for size, some in self._sizes.items()},
            "last": [list(one) for one in self._last],
            "told": self._learnt,
            "empty": self._empty,
        }

    @classmethod
    def restore(cls, raw: Mapping[str, Any]) -> Overhead:
        restored = cls()
        restored._sizes = {int(size): [tuple(one) for one in some] for size, some in raw["sizes"].items()}
        restored._last = [tuple(one) for one in raw["last"]]
        restored._learnt = raw["told"]
        restored._empty = list(raw.get("empty", []))
        return restored
