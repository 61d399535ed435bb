"""Computes the time ranges of stored rows that a new row probes when work is skipped, one per basic window.

Paper: selective join, tuple processing, algorithm 3; here for a join that works batch by batch.

The plan of a batch gives, per window and age of basic window, the probe ratio: none of it, all of it, or its
newest part. (A basic window that is still filling has no known newest part: there the same ratio of the new
rows, drawn by hash sampling, probes all of it.) Ages count from the basic window of the new row itself:

    stored basic windows   …|    5    |    6    |    7    |    8    |    9    |
    age for a row in 8            3         2         1         0        -1       (ahead: the row was late)
    probe ratio                  0.0       1.0       0.4       1.0       1.0
                                      [▓▓▓▓▓▓▓▓▓]    [▓▓▓][▓▓▓▓▓▓▓▓▓|▓▓▓▓▓▓▓▓▓]

Only ages at which rows can match are numbered: with "1 to 2 hours after" and basic windows of 6 minutes, the
ages 10 to 20 of the left window are its numbers 0 to 10.

A few rows explore. In every basic window that other rows probe in part they probe a part too, at a
different place per row and with the same probability for every stored row (`chance_seen`). Their matches
are an unbiased estimate of what the other rows miss (`control/receipts/recall.py`). A join over the full
history has no basic windows: there some rows probe everything.

Guarantee: a function of times, unit hashes (from a row's identity), the plan and the batch alone. The
number of stored rows, their piece and their instance play no part, so a replay, a merge or a migration
changes nothing. For rows of one basic window the ranges never move backwards in time, and the probe relies
on that. (Ranges of exploring rows do move backwards; they are marked, and the probe searches for each.)

Where we differ: the paper gives each row a budget of r · |W| stored rows. Here the plan has already turned
that budget into parts of basic windows, by the number of rows in each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.join.selective.selection import unit_hashes
from tidegate.join.within import TimeCondition, Within
from tidegate.model.times import END_US, LEFT

#: Basic windows ahead of a row, or of the nearest that can match, that are counted separately; rows further
#: ahead count as the furthest.
AHEAD_MAX = 10
#: In place of an age: a probe range over all candidate pairs.
ALL_AGES = -1
#: A row that probes this much of a basic window probes all of it.
_ALMOST_ALL = 0.999


@dataclass(frozen=True)
class Ages:
    """The numbering of one stored side's basic windows, relative to new rows of the other side.

    Number `ahead` is the basic window that would hold the new row itself; higher numbers are older. It need
    not be one of the `count` numbers: it is negative where matches lie only further back, and too high where
    they lie only further ahead.
    """

    slot_us: int
    ahead: int
    count: int
    #: How far a stored row of this side may lie behind or ahead of a new row; a negative number is the least
    #: distance in the other direction.
    back_us: int
    ahead_us: int = 0

    def number(self, own: int, slot: int) -> int:
        return min(max(own - slot + self.ahead, 0), self.count - 1)

    def numbers(self, own: NDArray[np.int64], slot: NDArray[np.int64]) -> NDArray[np.int64]:
        """`number` for arrays."""
        return np.asarray(np.clip(own - slot + self.ahead, 0, self.count - 1))

    @property
    def nearest_us(self) -> int:
        """How far behind a new row its newest match lies at least."""
        return max(0, -self.ahead_us)

    def candidate_part(self, own_us: NDArray[np.int64], slot: NDArray[np.int64]) -> NDArray[np.float64]:
        """The part of a basic window that is inside the partner range of a new row of this time."""
        begin = np.maximum(slot * self.slot_us, own_us - self.back_us)
        end = np.minimum((slot + 1) * self.slot_us, own_us + self.ahead_us)
        return np.asarray(np.maximum(0, end - begin) / self.slot_us)


def ages_of(within: TimeCondition, side: int) -> Ages:
    """The basic windows of the stored rows of a side."""
    slot_us = within.slot_us(side)
    if not isinstance(within, Within):
        # A tumbling window is one basic window; a join without a window has one as well.
        return Ages(slot_us, 0, 1, slot_us, slot_us)
    lower_us, upper_us = within.bounds_us
    back_us, ahead_us = (upper_us, -lower_us) if side == LEFT else (-lower_us, upper_us)
    # The greatest difference between the basic windows of a new row and a match, in both directions.
    oldest, newest = -(-back_us // slot_us), -(-ahead_us // slot_us)
    ahead = min(AHEAD_MAX + max(0, -oldest), newest)
    return Ages(slot_us, ahead, ahead + 1 + oldest, back_us, ahead_us)


@dataclass(frozen=True)
class ProbeRange:
    """New rows (None: all of them) that probe stored rows from `low` to `high`, both included."""

    rows: NDArray[np.int64] | None
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    #: ALL_AGES: the pairs found must be sorted into ages afterwards.
    age: int
    exploring: bool
    #: All rows with their whole ranges, nothing chosen or cut.
    uncut: bool = False


@dataclass(frozen=True)
class Exploring:
    """The share of rows that explore, and how much of a basic window they probe."""

    share: float
    depth: float

    def parts(
        self, edges: tuple[int, int], share: float, places: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64] | int, NDArray[np.int64] | int]:
        """Begin and end of the part of a basic window that each row probes; places are numbers in [0, 1).

        A part may begin before the basic window or end behind it. Otherwise its edges would be probed less
        often than its middle.
        """
        begin, end = edges
        chance = chance_seen(share, self.depth)
        if chance == 1:
            return begin, end
        length = max(1, round(chance * (end - begin) / (1 - chance)))
        first = begin - length + 1 + (places * (end - begin + length)).astype(np.int64)
        return first, first + length - 1


def chance_seen(share: float, depth: float) -> float:
    """The probability that an exploring row probes a given stored row of a basic window.

    On average it probes as much as other rows or more, at any place instead of the newest part.
    """
    chance = max(share, depth)
    return chance if chance < _ALMOST_ALL else 1.0


@dataclass(frozen=True)
class NewRows:
    """New rows of one side from one batch: their times and partner ranges."""

    times: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    first_us: int
    last_us: int
    #: A number in [0, 1) per row, from its identity; the lowest ones explore. None: no sampling needed.
    unit_hashes: NDArray[np.float64] | None = None
    exploring: Exploring | None = None

    # Cached: both are read once per stored run and do not depend on the run.
    @cached_property
    def extent(self) -> tuple[int, int]:
        """The earliest and the latest time that any of the rows may probe."""
        return int(self.low.min()), int(self.high.max())

    @cached_property
    def middle(self) -> tuple[float, float]:
        """The mean partner range of a row."""
        return float(self.low.mean()), float(self.high.mean())


class NewRowGroups(NamedTuple):
    """New rows grouped by their basic window: the number of rows and the mean partner range."""

    own: NDArray[np.int64]
    rows: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    #: The group number of each row.
    which: NDArray[np.int64]

    @classmethod
    def of(cls, new: NewRows, slot_us: int) -> NewRowGroups:
        first, last = new.first_us // slot_us, new.last_us // slot_us
        own, which = np.arange(first, first + 1), np.zeros(new.times.size, np.int64)
        if last - first > new.times.size:
            own, which = np.unique(new.times // slot_us, return_inverse=True)
        elif last > first:
            own, which = np.arange(first, last + 1), new.times // slot_us - first
        rows = np.bincount(which, minlength=own.size)
        low, high = (np.bincount(which, ends, own.size) / np.maximum(rows, 1) for ends in (new.low, new.high))
        return cls(own, rows, low, high, which)


class Stored(NamedTuple):
    """A run of stored rows: first and last time, and number of rows."""

    first_us: int
    last_us: int
    rows: int


def candidate_pairs(ages: Ages, new: NewRowGroups, stored: Sequence[Stored]) -> NDArray[np.float64]:
    """Candidate pairs by age, assuming that a run's rows are spread evenly between its times."""
    runs = np.array(stored, np.int64).reshape(-1, 3)
    first, last, rows = runs[:, 0, None, None], runs[:, 1, None, None], runs[:, 2]
    # Axes: run, group, age.
    low, high = np.maximum(new.low[:, None], first), np.minimum(new.high[:, None], last)
    begins = (new.own[:, None] + ages.ahead - np.arange(ages.count)) * ages.slot_us
    begin, end = np.maximum(begins, low), np.minimum(begins + (ages.slot_us - 1), high)
    # Rows even further ahead or back count as the furthest.
    end[..., :1], begin[..., -1:] = high, low
    density = rows / (runs[:, 1] - runs[:, 0] + 1)
    seen: NDArray[np.float64] = np.einsum("rga,g,r->a", np.maximum(0.0, end - begin + 1), new.rows, density)
    return seen


def cell_number(window: int, exploring: bool, age: int) -> int:
    """One number for (window, exploring, age); `cell_of` is the inverse."""
    return (2 * window + int(exploring)) << 16 | age


def cell_of(number: int) -> tuple[int, bool, int]:
    """Window, exploring or not, age."""
    return number >> 17, bool(number >> 16 & 1), number & 0xFFFF


def probe_ranges(
    ages: Ages, shares: Sequence[float], new: NewRows, stored: tuple[int, int], filled_us: int = END_US
) -> Iterator[ProbeRange]:
    """The ranges that new rows probe among stored rows of these first and last times.

    Basic windows that end behind `filled_us` were not complete when the plan was made.
    """
    if not ages.slot_us:
        yield from _some_rows(new, shares[0])
        return
    for candidate in candidate_windows(ages, new, stored):
        share = shares[candidate.age]
        # A run inside one basic window needs no cut where all of it is probed.
        cut = not candidate.alone or share < 1
        yield from _probe_ranges(new, candidate, share, cut=cut, filled=candidate.end_us <= filled_us)


class CandidateWindow(NamedTuple):
    """New rows of one basic window (None: all of them), and a basic window of stored rows in range."""

    rows: NDArray[np.int64] | None
    age: int
    #: First and last time of the basic window of stored rows.
    begin_us: int
    end_us: int
    #: The run of stored rows lies entirely in this basic window.
    alone: bool


def candidate_windows(ages: Ages, new: NewRows, stored: tuple[int, int]) -> Iterator[CandidateWindow]:
    """The basic windows of stored rows, between these first and last times, in range of new rows."""
    slots = new.times // ages.slot_us if new.first_us // ages.slot_us < new.last_us // ages.slot_us else None
    owns = [new.first_us // ages.slot_us] if slots is None else np.unique(slots).tolist()
    first, last = stored[0] // ages.slot_us, stored[1] // ages.slot_us
    # A run of rows that catch up on hours spans more basic windows than are in range of any new row.
    earliest, latest = new.extent
    near, far = max(first, earliest // ages.slot_us), min(last, latest // ages.slot_us)
    for own in owns:
        rows = None if slots is None else np.flatnonzero(slots == own)
        for slot in range(near, far + 1):
            begin_us = slot * ages.slot_us
            yield CandidateWindow(
                rows, ages.number(own, slot), begin_us, begin_us + ages.slot_us - 1, first == last
            )


def _probe_ranges(
    new: NewRows, candidate: CandidateWindow, share: float, *, cut: bool, filled: bool
) -> Iterator[ProbeRange]:
    """The ranges of one basic window that new rows probe."""
    age, edges = candidate.age, (candidate.begin_us, candidate.end_us)
    for group, explores in groups(new, candidate.rows):
        part = share
        if draws(new, share, explores, filled):
            group, part = drawn(new, group, share), 1.0
        if group is None and explores is None and not cut:
            yield ProbeRange(None, new.low, new.high, age, False, uncut=True)
            continue
        if group is not None and not group.size:
            continue
        low, high = (new.low, new.high) if group is None else (new.low[group], new.high[group])
        if explores is not None and share < 1:
            begin, end = explored_part(new, group, explores, candidate, share)
            low = np.maximum(np.maximum(low, edges[0]), begin)
            high = np.minimum(np.minimum(high, edges[1]), end)
        elif cut:
            low, high = newest_part(np.maximum(low, edges[0]), np.minimum(high, edges[1]), part)
        yield from nonempty(ProbeRange(group, low, high, age, explores is not None))


def explored_part(
    new: NewRows,
    rows: NDArray[np.int64] | None,
    explores: Exploring,
    candidate: CandidateWindow,
    share: float,
) -> tuple[NDArray[np.int64] | int, NDArray[np.int64] | int]:
    """Begin and end of the part of a basic window that each exploring row probes."""
    edges = candidate.begin_us, candidate.end_us
    slot = candidate.begin_us // (candidate.end_us - candidate.begin_us + 1)
    return explores.parts(edges, share, _places(new, rows, slot))


def draws(new: NewRows, share: float, explores: Exploring | None, filled: bool) -> bool:
    """True if hash sampling decides whether a row probes all of a basic window or none, as it still fills."""
    return not filled and 0 < share < 1 and explores is None and new.unit_hashes is not None


def _places(new: NewRows, rows: NDArray[np.int64] | None, slot: int) -> NDArray[np.float64]:
    """The place in a basic window that each row probes: its unit hash, hashed again with the slot."""
    if new.unit_hashes is None:
        return np.zeros(0)
    return unit_hashes((new.unit_hashes if rows is None else new.unit_hashes[rows]).view(np.uint64), slot)


def drawn(new: NewRows, rows: NDArray[np.int64] | None, share: float) -> NDArray[np.int64]:
    """A sample of this share of the rows, independent of exploring: other digits of the unit hash decide."""
    if new.unit_hashes is None:
        return np.zeros(0, np.int64)
    everyone = np.arange(new.unit_hashes.size) if rows is None else rows
    return everyone[np.modf(new.unit_hashes[everyone] * 4093.0)[0] < share]


def _some_rows(new: NewRows, share: float) -> Iterator[ProbeRange]:
    """Without basic windows there is no time to cut at: a sample of the rows probes everything."""
    if share >= 1 or new.unit_hashes is None:
        yield ProbeRange(None, new.low, new.high, 0, False)
        return
    rows = np.flatnonzero(new.unit_hashes < share)
    if rows.size:
        yield ProbeRange(rows, new.low[rows], new.high[rows], 0, False)


def groups(
    new: NewRows, rows: NDArray[np.int64] | None
) -> list[tuple[NDArray[np.int64] | None, Exploring | None]]:
    """The rows that follow the plan, and the rows that explore."""
    if new.exploring is None or new.unit_hashes is None:
        return [(rows, None)]
    everyone = np.arange(new.times.size) if rows is None else rows
    explores = new.unit_hashes[everyone] < new.exploring.share
    return [(everyone[~explores], None), (everyone[explores], new.exploring)]


def newest_part(
    begin: NDArray[np.int64], end: NDArray[np.int64], share: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    if share >= 1:
        return begin, end
    return end - np.rint(share * (end - begin + 1)).astype(np.int64) + 1, end


def nonempty(probe_range: ProbeRange) -> Iterator[ProbeRange]:
    """The probe range without rows whose range is empty, which the probe would step over."""
    some = probe_range.high >= probe_range.low
    if some.all():
        yield probe_range
    elif some.any():
        kept = np.flatnonzero(some)
        rows = kept if probe_range.rows is None else probe_range.rows[kept]
        yield ProbeRange(
            rows, probe_range.low[kept], probe_range.high[kept], probe_range.age, probe_range.exploring
        )


def shares_by_age(order: Sequence[int], fraction: float, work: NDArray[np.float64]) -> tuple[float, ...]:
    """The part of each basic window, taken in this order, that adds up to this fraction of all work.

    Basic windows in which no work is expected get the fraction itself: that costs nothing if there is none,
    and its share of what there is otherwise.
    """
    shares = np.zeros(work.size)
    chosen = np.asarray(order, np.int64)
    if fraction >= 1:
        # Exactly 1: a sum of parts may miss it by rounding, and the plan would seem to skip something.
        shares[chosen] = 1.0
        return tuple(shares.tolist())
    ordered = work[chosen]
    left = fraction * work.sum() - (np.cumsum(ordered) - ordered)
    shares[chosen] = np.where(
        ordered > 0, np.clip(left / np.where(ordered > 0, ordered, 1.0), 0, 1), fraction
    )
    return tuple(shares.tolist())
