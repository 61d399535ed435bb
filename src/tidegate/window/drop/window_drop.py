"""The window drop operator: drops windows with probability p, and never more than 𝓑 in a row.

Paper: window drop, sections 3.1 and 3.4. Windows are taken in batches of 𝓑 = `max_gap`, and one coin per
batch decides whether the whole batch is dropped: long runs of dropped windows are what allows early drops
of rows. After 𝓑 dropped windows one must open, whatever the coin says. Such a window is a *drop debt*: a
window is dropped in its place as soon as a coin says keep:

    coins       drop        drop        keep        keep          𝓑 = 4
    windows     ▓ ▓ ▓ ▓     o ▓ ▓ ▓     ▓ . . .     . . . .       o opened against the coin
    drop debt               1 1 1 1     0                         ▓ in the third batch: debt repaid

The coin of a batch is a hash of the seed and of the batch's number, compared with p: no generator state
must be kept, and all groups get the same windows.

Guarantee: at most 𝓑 windows in a row are dropped. The dropped windows are exactly 𝓑 per coin that said
drop, minus the debt. While p < 𝓑 / (𝓑 + 1) the debt has no trend, so the dropped share tends to p. A
decided window is never decided again; p may change with every call.

Where we differ: the paper opens "the first window of the second batch", which leaves a third one undefined.
We open a window exactly when the gap would be exceeded, the only way to reach the bound 𝓑 / (𝓑 + 1) that
the paper gives. A coin may decide fewer windows than 𝓑 (`per_coin`): where windows hardly overlap, shorter
gaps allow as many early drops, and spread the saved time more evenly. With p = 0 the debt is written off:
nothing is dropped without need.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate.window.drop.decisions import Decisions
from tidegate.window.drop.intervals import Intervals

#: The most batches of windows decided in one call, so that one timestamp from the far future does not cause a
#: decision about every window until then. Later windows are kept for now, and decided by later calls.
BATCHES_MAX = 100_000


def share_max(max_gap: int) -> float:
    """The largest share of windows that can be dropped: all but one of every 𝓑 + 1."""
    return max_gap / (max_gap + 1)


def gap_in_windows(longest_us: int, slide_us: int) -> int:
    """𝓑 for results at most `longest_us` apart: windows start a slide apart."""
    gap = longest_us // slide_us - 1
    if gap < 1:
        raise FlowError(
            "max_gap is too short to drop a window",
            code="OUTPUT_MAX_GAP_TOO_SHORT",
            got=f"max_gap of {longest_us} microseconds, and a window every {slide_us} microseconds",
            why="Without one window, the time between two results is two slides",
            do="Give a max_gap of at least two slides, or leave it out so that no window is dropped",
        )
    return gap


@dataclass(frozen=True)
class WindowDrop:
    """Windows that start every `slide_us`, of which at most `max_gap` in a row may be missing."""

    slide_us: int
    max_gap: int
    seed: int = 0
    #: Windows that one coin decides; 0: as many as may be missing in a row, as in the paper.
    per_coin: int = 0
    #: Window k begins at k · slide + offset.
    offset_us: int = 0

    def __post_init__(self) -> None:
        if self.slide_us <= 0 or self.max_gap < 1:
            raise FlowError(
                "A window drop needs a slide above zero and a max_gap of at least one window",
                code="WINDOW_DROP_INVALID",
                got=f"slide {self.slide_us} microseconds, max_gap {self.max_gap}",
                why="With a max_gap of zero, no window can be dropped",
                do="Give max_gap=1 or more, or leave it out so that no window is dropped",
            )
        if not 0 <= self.per_coin <= self.max_gap:
            raise FlowError(
                "One coin cannot decide more windows than may be missing in a row",
                code="WINDOW_DROP_COIN_INVALID",
                got=f"{self.per_coin} windows per coin, max_gap {self.max_gap}",
                do="Give a number of windows from 0 to max_gap",
            )

    def begin(self, from_us: int, gap_us: int = 0, drop_debt: int = 0) -> DropState:
        """The state before the first decision, which is about the first window from this time on.

        `gap_us`: how long before this time no window is kept; it may exceed the longest gap, if that was
        longer when they were decided.
        """
        first = -((self.offset_us - from_us) // self.slide_us)
        gap = min(self.max_gap, -(-gap_us // self.slide_us))
        return DropState(Decisions(self.slide_us, first, first, offset_us=self.offset_us), gap, drop_debt)

    def decide(self, state: DropState, up_to_us: int, p: float) -> DropState:
        """Decide all windows that start up to a time, and the rest of the last one's batch."""
        self.check(p)
        window, size = state.decisions.end, self.per_coin or self.max_gap
        first = window // size
        beyond = min(self._window_at(up_to_us) // size, first + BATCHES_MAX) + 1
        if beyond * size <= window:
            return state
        if p == 0:
            return state.extended(beyond * size, (), gap=0, drop_debt=0)
        drops = coins(np.arange(first, beyond), self.seed) < p
        runs: list[tuple[int, int]] = []
        gap, drop_debt = state.gap, state.drop_debt
        for batch, drop in enumerate(drops.tolist(), start=first):
            gap, drop_debt = self._batch(window, (batch + 1) * size, gap, drop_debt, drop, runs)
            window = (batch + 1) * size
        return state.extended(window, runs, gap=gap, drop_debt=drop_debt)

    def _window_at(self, time_us: int) -> int:
        """The last window that starts up to a time."""
        return (time_us - self.offset_us) // self.slide_us

    def _batch(
        self, window: int, end: int, gap: int, drop_debt: int, drop: bool, runs: list[tuple[int, int]]
    ) -> tuple[int, int]:
        """Decide one batch: append its dropped runs to `runs`; return the gap and the debt after it."""
        while window < end:
            if gap == self.max_gap:
                window, gap, drop_debt = window + 1, 0, drop_debt + drop
            elif drop or drop_debt:
                length = min(end - window, self.max_gap - gap, end - window if drop else drop_debt)
                runs.append((window, window + length))
                window, gap, drop_debt = (
                    window + length,
                    gap + length,
                    drop_debt if drop else drop_debt - length,
                )
            else:
                return 0, 0
        return gap, drop_debt

    def check(self, p: float) -> None:
        """Raise if the share is more than the longest gap allows."""
        if not 0 <= p <= share_max(self.max_gap):
            raise FlowError(
                f"With at most {self.max_gap} windows missing in a row, a share of 0 to "
                f"{share_max(self.max_gap):.3f} of all windows can be dropped",
                code="WINDOW_DROP_RATIO_INVALID",
                got=p,
                do="Give a smaller drop ratio, or a larger max_gap",
            )


@dataclass(frozen=True)
class DropState:
    """The decisions so far, and the input of the next decision."""

    decisions: Decisions
    #: Windows dropped since the last one that was kept.
    gap: int = 0
    #: Windows opened although the coin said drop, less those dropped in their place.
    drop_debt: int = 0

    def extended(self, end: int, runs: Iterable[tuple[int, int]], *, gap: int, drop_debt: int) -> DropState:
        """The state with the windows up to `end` decided, of which these runs are dropped."""
        past = self.decisions
        dropped = list(past.dropped)
        for first, beyond in runs:
            touches = bool(dropped) and dropped[-1][1] == first
            dropped.append((dropped.pop()[0] if touches else first, beyond))
        return DropState(replace(past, end=end, dropped=tuple(dropped)), gap, drop_debt)

    @property
    def until_us(self) -> int:
        """The start of the first undecided window."""
        return self.decisions.end * self.decisions.slide_us + self.decisions.offset_us

    @property
    def dropped(self) -> Intervals:
        """Starts of dropped windows."""
        return Intervals(*self.decisions.dropped_times)


def coins(batches: NDArray[np.int64], seed: int) -> NDArray[np.float64]:
    """A number in [0, 1) for each batch of windows: SplitMix64 of its number and the seed."""
    mixed = (batches.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed += seed_bits(seed)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


def seed_bits(seed: int) -> np.uint64:
    """A seed of any size as 64 bits."""
    return np.uint64(seed * 0xD1B54A32D192ED03 % 2**64)
