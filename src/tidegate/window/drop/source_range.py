"""The source times that an output window depends on: the exact range, for known slides and offsets.

Paper: window drop, section 3.2, where table 2 has an upper bound for any alignment (`drop_window.py`).

From the output upwards, a needed range of times [low, high) requires the windows that begin in it, and
these require their rows:

    needed            [───────────────)
    window starts   |─────|─────|─────|─────|          slide
    in range              ×     ×
    required              [───────────────────)        first start … last start + size

A slide is at most a size, so these windows leave no hole between them: one range requires one range, or
nothing where no window begins in it. An inner join requires rows that may still match a partner inside of
the range: `back_us` earlier. A join that also emits unmatched rows must see all partners of a row: it
requires rows on both sides.

Guarantee: the range holds every source time that can influence the needed results, and each of its times
can influence one. It lies inside the bound of table 2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.window.spec import WindowSpec


@dataclass(frozen=True)
class JoinReach:
    """One side of a join: how much earlier and later than its results a row is needed.

    A negative `ahead_us`: all rows needed are at least this much earlier than their results.
    """

    back_us: int
    ahead_us: int = 0


#: A step on the way of rows to a result that changes the needed times.
Step = WindowSpec | JoinReach


def source_range(
    steps: Iterable[Step], low: NDArray[np.int64], high: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The source times [low, high) that needed times [low, high) require; steps go from the output upwards.

    A range that requires nothing is returned with high = low.
    """
    for step in steps:
        wanted = high > low
        if isinstance(step, WindowSpec):
            first, end = step.starting(low, high)
            wanted &= end > first
            low, high = step.start(first), step.end(end - 1)
        else:
            low, high = low - step.back_us, high + step.ahead_us
        high = np.where(wanted, high, low)
    return low, high
