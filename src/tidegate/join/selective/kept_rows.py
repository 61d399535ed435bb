"""The part of a join's stored rows that random drop kept, by basic window.

Related work of the selective join paper (random drop); the estimate is ours. Rows of both sides are dropped
before the join, at a ratio that changes from batch to batch. So a pair was found with the probability that
both of its rows were kept: the ratio of the present batch for the new row, and that of its own batch for the
stored one. Counts of offered and kept rows by basic window say what the second was.

Guarantee: a function of the counts; at most one entry per basic window that can still be probed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class KeptRows:
    """Rows of one side: the basic windows in which batches ended, oldest first, and their rows."""

    slots: tuple[int, ...] = ()
    offered: tuple[float, ...] = ()
    kept: tuple[float, ...] = ()
    #: The last basic window in which rows were lost for another reason, not at random.
    lost: int | None = None

    def after(self, slot: int, offered: float, kept: float, oldest: int, lost: bool = False) -> KeptRows:
        """With a batch whose newest row is in `slot`; without basic windows before `oldest`.

        `lost`: the batch also lost rows that were not chosen at random.
        """
        if not offered:
            return self
        slot = max(slot, self.slots[-1]) if self.slots else slot
        entries = dict(zip(self.slots, zip(self.offered, self.kept, strict=True), strict=True))
        before = entries.get(slot, (0.0, 0.0))
        entries[slot] = before[0] + offered, before[1] + kept
        left = {number: rows for number, rows in entries.items() if number >= oldest or number == slot}
        every = tuple(left.values())
        last = slot if lost else self.lost
        return KeptRows(
            tuple(left),
            tuple(one for one, _ in every),
            tuple(one for _, one in every),
            last if last is not None and last >= oldest else None,
        )

    def shares(self, slots: NDArray[np.int64]) -> NDArray[np.float64]:
        """The part that was kept of each of these basic windows; 1 where nothing is known.

        A batch that spans several basic windows is listed under its last.
        """
        if not self.slots:
            return np.ones(slots.size)
        place = np.minimum(np.searchsorted(self.slots, slots), len(self.slots) - 1)
        return np.asarray((np.array(self.kept) / np.array(self.offered))[place])

    @property
    def at_random(self) -> bool:
        """Whether rows are missing, and all of them at random."""
        return self.lost is None and self.kept != self.offered
