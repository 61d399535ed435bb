"""Basic windows: where, in a time-sorted side of a join, the rows of each age lie that a row may meet.

Paper: selective join, time correlation adaptation: a window of w seconds has 1 + w / b basic windows.

Slots are aligned to the epoch and rows never move between them. The age of a stored row's slot is counted
from the slot of the probing row:

    slots     …|    5    |    6    |    7    |    8    |     stored rows, sorted by time
    ages            3         2         1         0          seen from a probing row T in slot 8
                      [◀──────────── w ──────────── T        what lies outside the window is cut off

Age 0 is filled up to T only and the highest age is cut at T − w, so together they hold one slot's worth.
Where we differ: the paper lets rows expire a whole basic window at a time, so its windows are up to b too
long; here the window is exact for every row, as the join condition demands, and a slot of 0 means "no basic
windows", one range for the whole window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Ranges:
    """Per probing row (first axis) and age of slot (second): stored rows starts … ends - 1."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        return self.ends - self.starts


def ages(window_us: int, slot_us: int) -> int:
    """How many basic windows a window has; the newest and the oldest are incomplete."""
    return 1 + -(-window_us // slot_us) if slot_us else 1


def ranges_by_age(
    stored_us: NDArray[np.int64],
    times_us: NDArray[np.int64],
    window_us: int,
    slot_us: int,
    *,
    equal_times: bool,
) -> Ranges:
    """Where each probing row's older partners lie, by age.

    Of two rows with the same time exactly one may see the other: the side with `equal_times`.
    """
    first = np.searchsorted(stored_us, times_us - window_us, side="left")
    last = np.searchsorted(stored_us, times_us, side="right" if equal_times else "left")
    last = np.maximum(first, last)
    if not slot_us:
        return Ranges(first[:, None], last[:, None])
    depth = ages(window_us, slot_us)
    own = times_us // slot_us
    lowest = int(own.min(initial=0)) - depth + 1
    edges_us = np.arange(lowest, int(own.max(initial=0)) + 2) * slot_us
    begins = np.searchsorted(stored_us, edges_us, side="left")
    place = (own - lowest)[:, None] - np.arange(depth)
    starts = np.clip(begins[place], first[:, None], last[:, None])
    ends = np.clip(begins[place + 1], first[:, None], last[:, None])
    return Ranges(starts, ends)
