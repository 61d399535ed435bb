"""Which source times an output window is made of: the exact range, for windows aligned to the epoch.

Paper: window drop, section 3.2, where table 2 has an upper bound for any alignment (`drop_window.py`).

From the output upwards, a wanted range of times [low, high) asks for the windows that begin in it, and these
ask for their rows:

    wanted            [───────────────)
    window starts   |─────|─────|─────|─────|          slide
    in range              ×     ×
    asked for             [───────────────────)        first start … last start + size

A slide is at most a size, so these windows leave no hole between them: one range asks for one range, or for
nothing where no window begins in it. An inner join asks for rows that may still meet a partner inside of the
range: `back_us` earlier. A join that also shows rows without a partner must know all partners of a row: it
asks for rows on both sides.

Guarantee: the range holds every source time that can influence the wanted results, and each of its times can
influence one. It lies inside the bound of table 2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.window.spec import WindowSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class JoinReach:
    """One side of a join: rows are needed so much earlier, and later, than the results they are part of."""

    back_us: int
    ahead_us: int = 0


#: What rows pass on their way to a result and what changes the times that are asked for.
Step = WindowSpec | JoinReach


def source_range(
    steps: Iterable[Step], low: NDArray[np.int64], high: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The source times [low, high) that wanted times [low, high) ask for; steps go from the output upwards.

    A range that asks for nothing comes back with high = low.
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
