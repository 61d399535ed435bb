"""Overhead: the part of a batch that no operator explains; a fixed part, and one per input row.

Spark plans, schedules and commits regardless of the rows, but it also reads, parses and shuffles them;
parsing JSON can take longer than any join. If that counted as fixed, rows would seem free and ever more be
let in.

    seconds ▲            ╱ ▪       Batches are grouped by size, a quarter of an octave each. Sizes that differ
            │        ▪ ╱           by a fifth or more give the cost per row and the fixed part. Batches of
            │      ╱ ▪             about one size give neither: their differences are chance, and the last
            │  ▪ ╱                 answer stays.
            └──────────────▶ rows

Until sizes differ, everything above the time of an empty batch is attributed to rows. (An empty batch has
mostly run before the first rows arrive; it may do less than others, so it is ignored once sizes differ.) So
neither are too many rows let in because they seem free, nor is an overlong batch accepted as unavoidable; the
next batch then has another size and corrects the guess. A row cost below a third of the overhead of the
largest batches counts as zero.

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
#: Batches remembered per size, and for how many batches after the last of them.
_OF_A_SIZE, _REMEMBERED = 5, 60
#: Least ratio of the largest to the smallest size for a line.
_APART = 1.2
#: Least part of the overhead that rows must explain.
_MATTERS = 1 / 3

#: Rows and seconds of a batch, and its number.
_Batch = tuple[float, float, int]


class Overhead:
    """Seconds of a batch that belong to no operator."""

    def __init__(self) -> None:
        #: The last batches of each size, and the last ones of all.
        self._sizes: dict[int, list[_Batch]] = {}
        self._last: list[_Batch] = []
        #: Seconds per row from batches of different sizes; None before there are any.
        self._learnt: float | None = None
        #: Seconds of the last batches without rows.
        self._empty: list[float] = []

    @property
    def per_row(self) -> float:
        """Seconds per row; 0 if rows explain so little of the overhead that it may be chance."""
        if not self._last:
            return 0.0
        rows, seconds = self._middles()[-1]
        per_row = self._guessed(rows, seconds) if self._learnt is None else self._learnt
        return per_row if per_row * rows > _MATTERS * seconds else 0.0

    @property
    def most_rows(self) -> float:
        """Rows of the largest batches remembered."""
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
        """Seconds per row before sizes differ."""
        without = median(self._empty) if self._empty else 0.0
        return max(0.0, seconds - without) / max(rows, 1.0)

    def _middles(self) -> list[tuple[float, float]]:
        """Rows and seconds of the median batch of each size, smallest first."""
        # A few numbers, needed several times a batch: arrays would take twenty times as long.
        return [
            (median(rows for rows, _, _ in some), median(seconds for _, seconds, _ in some))
            for some in self._sizes.values()
        ]

    def _tell(self) -> None:
        """Fit a line through the median batch of each size, weighted by the number of batches."""
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
