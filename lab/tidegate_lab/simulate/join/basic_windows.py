"""Basic windows: the ranges of a time-sorted side of a join that a probing row may match, by age.

Paper: selective join, time correlation adaptation: a window of w seconds has 1 + w / b basic windows.

Slots are aligned to the epoch and rows never move between them. The age of a stored row's slot is counted
from the slot of the probing row:

    slots     …|    5    |    6    |    7    |    8    |     stored rows, sorted by time
    ages            3         2         1         0          seen from a probing row T in slot 8
                      [◀──────────── w ──────────── T        rows outside the window are cut off

Age 0 is filled up to T only and the highest age is cut at T − w, so together they cover one slot.
Where we differ: the paper lets rows expire a whole basic window at a time, so its windows are up to b too
long; here the window is exact for every row, as the join condition demands. A slot of 0 means no basic
windows: one range for the whole window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.control.actuators.policy import Work
from tidegate.errors import FlowError


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


def cell_lengths(window_us: int, slot_us: int) -> NDArray[np.float64]:
    """Mean length of the basic windows of one window, by age.

    Rows probe from anywhere within their own slot, so on average half of it lies before them, and the oldest
    basic window has what is left.
    """
    depth = ages(window_us, slot_us)
    if depth == 1:
        return np.array([float(window_us)])
    # Of a probing row at u in [0, slot): age j covers window time from u + (j - 1) slot to u + j slot.
    begins = np.arange(depth) - 1.0
    lengths = np.array([_mean_overlap(begin * slot_us, slot_us, window_us) for begin in begins])
    return lengths


def _mean_overlap(begin: float, slot: float, window: float) -> float:
    """Mean over u in [0, slot) of the part of [u + begin, u + begin + slot] inside [0, window]."""

    def area(x: float) -> float:
        """Integral of min(max(t, 0), window) for t up to x."""
        inside = min(max(x, 0.0), window)
        return inside * inside / 2 + max(0.0, x - window) * window

    return (area(begin + 2 * slot) - 2 * area(begin + slot) + area(begin)) / slot


def select(ranges: Ranges, order: Sequence[int], fraction: float) -> Ranges:
    """The part of each row's ranges that it is compared with, taking ages in this order.

    Ages that are not in the order are not touched.
    """
    sizes = ranges.sizes
    budget = np.rint(fraction * sizes.sum(axis=1)).astype(np.int64)
    chosen = np.asarray(order, np.int64)
    ordered = sizes[:, chosen]
    before = np.cumsum(ordered, axis=1) - ordered
    taken = np.zeros_like(sizes)
    taken[:, chosen] = np.clip(budget[:, None] - before, 0, ordered)
    return Ranges(ranges.ends - taken, ranges.ends)


def explore(
    whole: Ranges, chosen: Ranges, exploring: NDArray[np.bool_], depth: float, lot: NDArray[np.float64]
) -> Ranges:
    """Let some rows also look at a part of every basic window that they would skip, all of it with depth 1.

    Where in the basic window that part lies is decided by the row's lot, a number in [0, 1).
    """
    pieces = np.ceil(depth * whole.sizes).astype(np.int64)
    starts = whole.starts + (lot[:, None] * (whole.sizes - pieces + 1)).astype(np.int64)
    looks = exploring[:, None] & (pieces > chosen.sizes)
    return Ranges(np.where(looks, starts, chosen.starts), np.where(looks, starts + pieces, chosen.ends))


def whole_or_nothing(whole: Ranges, chosen: Ranges, lot: NDArray[np.float64] | None = None) -> Ranges:
    """For an index that cannot be cut by time: a basic window chosen in part is taken whole, or not at all.

    Without a lot it is not taken, so never more than the budget is spent. With lots it is taken with the
    chance of its part, so on average the budget is used up, however large basic windows are.
    """
    part, size = chosen.sizes, whole.sizes
    taken = part == size if lot is None else (part == size) | (lot[:, None] * size < part)
    return Ranges(np.where(taken, whole.starts, whole.ends), whole.ends)


@dataclass(frozen=True)
class Windows:
    """The windows of a join (left, right) and the length of their basic windows; slot 0: no basic windows."""

    lengths_us: tuple[int, int]
    slot_us: int

    def __post_init__(self) -> None:
        if min(self.lengths_us) < 0 or max(self.lengths_us) == 0 or self.slot_us < 0:
            raise FlowError(
                "A join needs a window on at least one side, and a basic window that is not negative",
                code="LAB_WINDOW_INVALID",
                got=f"windows {self.lengths_us}, basic window {self.slot_us} microseconds",
                do="Give microseconds; one window may be 0, and a basic window of 0 means none",
            )

    @property
    def ages(self) -> tuple[int, int]:
        return ages(self.lengths_us[0], self.slot_us), ages(self.lengths_us[1], self.slot_us)

    @property
    def work(self) -> Work:
        """Steady input: basic windows hold as much as they are long."""
        left, right = (cell_lengths(length, self.slot_us) for length in self.lengths_us)
        return left, right
