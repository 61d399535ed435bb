"""Window drop by groups: every window loses the share p of its groups, and none loses more than 𝓑 in a row.

Paper: window drop, section 3.1: a drop may have group-by columns. Where a window is much longer than a batch,
dropping all groups alike means minutes at full load and minutes at none. By groups, every window is thinned.

Groups form 64 cohorts, by a hash of their columns; all groups of a cohort lose the same windows. What cohort
c loses of window k is a function of c, k, p and the seed, so nothing is remembered per group:

    cohort 0     o ▓ . ▓  o . ▓ ▓  o ▓ . ▓          𝓑 = 3: o is kept whatever p is, once in 𝓑 + 1 windows,
    cohort 21    . o ▓ ▓  . o ▓ .  ▓ o ▓ .              and for each cohort at another time
    cohort 42    ▓ . o ▓  ▓ ▓ o .  ▓ . o ▓          ▓ dropped: its number lies below p / share_max

The number of a window advances around a circle in steps of the golden ratio and starts elsewhere for each
cohort. So the share p is dropped of each window's cohorts and of each cohort's windows, as evenly as can be.
As in the paper one number may decide several windows in a row (`per_coin`), because long runs are what allows
early drops where windows overlap.

Guarantee: at most 𝓑 windows in a row are dropped of any group, however p changes from window to window,
because two windows that are always kept are 𝓑 + 1 apart. Where another 𝓑 held before, the first run is cut
to the new one. A decided window is never decided again, and cutting time into calls changes nothing.

Where we differ: the paper leaves groups to its technical report, and tosses a coin per batch of 𝓑 windows.
Here no window is opened against its number, so there is no drop debt.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.window.drop.window_drop import WindowDrop, seed_bits, share_max

#: As many as a whole number of 64 bits has, so that one number says which of them a time is dropped of.
COHORTS = 64
#: The most windows decided in one call; see `window_drop.BATCHES_MAX`.
WINDOWS_MAX = 20_000
_NUMBERS = np.arange(COHORTS, dtype=np.int64)
#: Where each cohort starts on the circle of 2^64: neighbours as far apart as can be.
_STARTS = np.array([int(f"{number:06b}"[::-1], 2) << 58 for number in range(COHORTS)], np.uint64)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class DecidedGroups:
    """Windows `begin` to `end` − 1, by cohort: whether they are dropped, (cohorts, windows)."""

    begin: int
    dropped: NDArray[np.bool_]

    @property
    def end(self) -> int:
        return self.begin + int(self.dropped.shape[1])

    def runs(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The dropped runs: cohort, first window, first window beyond."""
        edges = np.diff(self.dropped.astype(np.int8), axis=1, prepend=0, append=0)
        cohorts, first = np.nonzero(edges > 0)
        _, beyond = np.nonzero(edges < 0)
        return cohorts, self.begin + first, self.begin + beyond


@dataclass(frozen=True)
class GroupDrop:
    """Decides for each cohort of groups about the windows of a drop."""

    windows: WindowDrop

    def decide(self, from_us: int, gaps_us: NDArray[np.int64], up_to_us: int, p: float) -> DecidedGroups:
        """Decide the windows that start from one time up to another.

        `gaps_us`: by cohort, how long before the first time no window is kept.
        """
        drop = self.windows
        drop.check(p)
        begin = -((drop.offset_us - from_us) // drop.slide_us)
        last = (up_to_us - drop.offset_us) // drop.slide_us
        numbers = np.arange(begin, min(last + 1, begin + WINDOWS_MAX))
        dropped = self.dropped(numbers, p)
        gaps = np.minimum(drop.max_gap, -(-gaps_us // drop.slide_us))
        return DecidedGroups(begin, _cut(dropped, drop.max_gap - gaps))

    def dropped(self, windows: NDArray[np.int64], p: float) -> NDArray[np.bool_]:
        """By cohort and window: whether it is dropped at this p."""
        drop, cycle = self.windows, self.windows.max_gap + 1
        per_coin = drop.per_coin or drop.max_gap
        shifted = windows[None, :] + (_NUMBERS * cycle // COHORTS)[:, None]
        turn, place = np.divmod(shifted, cycle)
        coin = turn * -(-drop.max_gap // per_coin) + (place - 1) // per_coin
        at = _STARTS[:, None] + coin.astype(np.uint64) * _GOLDEN + seed_bits(drop.seed)
        below = (at >> np.uint64(11)).astype(np.float64) * 2.0**-53 < p / share_max(drop.max_gap)
        found: NDArray[np.bool_] = below & (place > 0)
        return found


def _cut(dropped: NDArray[np.bool_], left: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Keep the window of a cohort that would be one too many; `left`: how many more may be missing."""
    first_kept = np.logical_and.accumulate(dropped, axis=1).sum(axis=1)
    (late,) = np.nonzero(first_kept > left)
    dropped[late, left[late]] = False
    return dropped
