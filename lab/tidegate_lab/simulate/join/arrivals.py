"""Both streams in the order of their arrival, and the input buffers in front of a simulated join.

    arrivals ──▶ keep? ──▶ [ buffer: what arrived in the last second ] ──▶ fetched, oldest first
                   │                     │
                dropped                overflow: rows chosen at random from all that wait

Rows with equal times arrive left first. All choices are hashes of row identity and seed, so a run repeats.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegate.join.selective.selection import KEEP, OVERFLOW, mixed, purpose, within_share


class Arrivals:
    """All rows of both streams, by arrival: time, side, place in its stream, identity."""

    def __init__(self, times_us: tuple[NDArray[np.int64], NDArray[np.int64]]) -> None:
        times = np.concatenate(times_us)
        sides = np.repeat([0, 1], [side.size for side in times_us])
        places = np.concatenate([np.arange(side.size) for side in times_us])
        order = np.lexsort((sides, times))
        self.times_us: NDArray[np.int64] = times[order]
        self.sides: NDArray[np.int64] = sides[order]
        self.places: NDArray[np.int64] = places[order]
        self.identity: NDArray[np.uint64] = (2 * self.places + self.sides).astype(np.uint64)


class InputBuffers:
    """Rows that have arrived and were neither fetched nor dropped, as places in the arrivals, ascending."""

    def __init__(self, arrivals: Arrivals, buffer_us: int, seed: int) -> None:
        self._arrivals, self._buffer_us, self._seed = arrivals, buffer_us, seed
        self._arrived = 0
        self.waiting: NDArray[np.int64] = np.empty(0, np.int64)
        #: Rows lost so far, per side.
        self.dropped = np.zeros(2, np.int64)

    def arrive(self, now_us: int, keep_share: float) -> NDArray[np.int64]:
        """Let in what arrives before now; how many came, per side, dropped ones included."""
        until = int(np.searchsorted(self._arrivals.times_us, now_us, side="left"))
        new = np.arange(self._arrived, until)
        self._arrived = until
        kept = within_share(self._arrivals.identity[new], keep_share, purpose(self._seed, KEEP))
        self._count_dropped(new[~kept])
        self.waiting = np.concatenate([self.waiting, new[kept]])
        return np.bincount(self._arrivals.sides[new], minlength=2)

    def arrived_since(self, time_us: int) -> NDArray[np.int64]:
        """Rows that came from this moment on, per side, dropped ones included."""
        first = np.searchsorted(self._arrivals.times_us[: self._arrived], time_us)
        return np.bincount(self._arrivals.sides[first : self._arrived], minlength=2)

    def fetch(self, rows: int) -> None:
        """The oldest rows leave for the join."""
        self.waiting = self.waiting[rows:]

    def overflow(self, now_us: int) -> None:
        """Per side, no more rows may wait than came during the buffer's length; victims are random."""
        room = self.arrived_since(now_us - self._buffer_us)
        for side in (0, 1):
            mine = np.flatnonzero(self._arrivals.sides[self.waiting] == side)
            excess = mine.size - int(room[side])
            if excess > 0:
                lots = mixed(self._arrivals.identity[self.waiting[mine]], purpose(self._seed, OVERFLOW))
                victims = mine[np.argpartition(lots, excess - 1)[:excess]]
                self._count_dropped(self.waiting[victims])
                self.waiting = np.delete(self.waiting, victims)

    def _count_dropped(self, rows: NDArray[np.int64]) -> None:
        self.dropped += np.bincount(self._arrivals.sides[rows], minlength=2)
