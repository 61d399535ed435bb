"""Which stored rows a new row looks at when work is skipped: time ranges, one per basic window.

Paper: selective join, tuple processing, algorithm 3; here for a join that works batch by batch.

The plan of a batch says, per window and age of basic window, how large a part new rows look at: none of it,
all of it, or its newest part. (Of a basic window that is still being filled nobody knows which part is the
newest: there a part of the new rows looks at all of it.) Ages are counted from the basic window that the
new row itself would lie in:

    stored basic windows   …|    5    |    6    |    7    |    8    |    9    |
    seen from a row in 8          3         2         1         0        -1       (ahead: it came late)
    share of the plan            0.0       1.0       0.4       1.0       1.0
                                      [▓▓▓▓▓▓▓▓▓]    [▓▓▓][▓▓▓▓▓▓▓▓▓|▓▓▓▓▓▓▓▓▓]

A few rows explore: of every basic window that others see in part they see a part too, each row elsewhere,
and with the same chance for every stored row (`chance_seen`): so what they find says what all others miss,
without bias (`control/receipts/recall.py`). Over the full history there are no basic windows: some rows look
at all of it.

Guarantee: a function of times, lots (from a row's identity), the plan and the batch alone. It does not ask
how many rows are stored or in which piece of which instance they lie, so a replay, a merge or a migration
changes nothing; and for rows of one basic window the ranges never move backwards in time, which is what the
probe relies on. (Those of rows that explore do, and the probe is told so.)

Where we differ: the paper gives each row a budget of r · |W| stored rows; the plan has turned that budget
into parts of basic windows already, by the number of rows that each of them holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidegate.join.selective.selection import lots
from tidegate.join.within import TimeCondition, Within
from tidegate.model.times import END_US

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Basic windows ahead of a row that are told apart; rows further ahead count as the furthest.
AHEAD_MAX = 10
#: Instead of an age: a look at all that is in reach.
ALL_AGES = -1
#: Who sees so much of a basic window sees all of it.
_ALMOST_ALL = 0.999


@dataclass(frozen=True)
class Ages:
    """How the basic windows of one stored side are numbered, seen from new rows of the other.

    Number `ahead` is the basic window that the new row itself would lie in, higher ones are older.
    """

    slot_us: int
    ahead: int
    count: int
    #: How far back, and how far ahead, a stored row of this side may lie.
    back_us: int
    ahead_us: int = 0

    def number(self, own: int, slot: int) -> int:
        return min(max(own - slot + self.ahead, 0), self.count - 1)

    def numbers(self, own: NDArray[np.int64], slot: NDArray[np.int64]) -> NDArray[np.int64]:
        """The same for many of them."""
        return np.asarray(np.clip(own - slot + self.ahead, 0, self.count - 1))

    def in_reach(self, own_us: NDArray[np.int64], slot: NDArray[np.int64]) -> NDArray[np.float64]:
        """The part of a basic window that a new row of this time may look at."""
        begin = np.maximum(slot * self.slot_us, own_us - self.back_us)
        end = np.minimum((slot + 1) * self.slot_us, own_us + self.ahead_us)
        return np.asarray(np.maximum(0, end - begin) / self.slot_us)


def ages_of(within: TimeCondition, side: int) -> Ages:
    """The basic windows of the stored rows of a side."""
    slot_us = within.slot_us(side)
    if not isinstance(within, Within):
        # A tumbling window is one basic window, and without a window there is nothing to cut.
        return Ages(slot_us, 0, 1, slot_us, slot_us)
    back_us, ahead_us = (within.left_us, within.right_us)[:: 1 if side == 0 else -1]
    ahead = min(AHEAD_MAX, -(-ahead_us // slot_us))
    return Ages(slot_us, ahead, ahead + 1 + -(-back_us // slot_us), back_us, ahead_us)


@dataclass(frozen=True)
class Look:
    """New rows (None: all of them) that look at stored rows from `low` to `high`, both included."""

    rows: NDArray[np.int64] | None
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    #: ALL_AGES: what is found has to be told apart.
    age: int
    exploring: bool
    #: All rows with their whole ranges: nothing was chosen or cut.
    uncut: bool = False


@dataclass(frozen=True)
class Exploring:
    """How many rows explore, and how much of a basic window they see."""

    share: float
    depth: float

    def parts(
        self, edges: tuple[int, int], share: float, places: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64] | int, NDArray[np.int64] | int]:
        """Begin and end of the part of a basic window that each row sees; places are numbers in [0, 1).

        A part may begin before the basic window, or end behind it: otherwise its edges would be seen less
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
    """The chance that a row that explores looks at a given stored row of a basic window.

    It sees no less than others do, on average, and not the newest part but any.
    """
    chance = max(share, depth)
    return chance if chance < _ALMOST_ALL else 1.0


@dataclass(frozen=True)
class NewRows:
    """New rows of one side that came in one batch: their times, and where their partners may lie."""

    times: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    first_us: int
    last_us: int
    #: A number in [0, 1) per row, from its identity; the lowest ones explore. None: nobody has to be chosen.
    lots: NDArray[np.float64] | None = None
    exploring: Exploring | None = None

    # Both are asked for once per stored run, and the answer is the same for all of them.
    @cached_property
    def extent(self) -> tuple[int, int]:
        """The earliest and the latest time that any of the rows may look at."""
        return int(self.low.min()), int(self.high.max())

    @cached_property
    def middle(self) -> tuple[float, float]:
        """The range of a row, on average."""
        return float(self.low.mean()), float(self.high.mean())


class Groups(NamedTuple):
    """New rows by the basic window that they lie in: how many, and where their partners are on average."""

    own: NDArray[np.int64]
    rows: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    #: Of each row: the number of its group.
    which: NDArray[np.int64]

    @classmethod
    def of(cls, new: NewRows, slot_us: int) -> Groups:
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
    """Runs of stored rows: first and last time, and how many."""

    first_us: int
    last_us: int
    rows: int


def pairs_in_reach(ages: Ages, new: Groups, stored: Sequence[Stored]) -> NDArray[np.float64]:
    """By age: pairs of new rows with those of runs, as if a run's rows lay evenly between its times."""
    runs = np.array(stored, np.int64).reshape(-1, 3)
    first, last, rows = runs[:, 0, None, None], runs[:, 1, None, None], runs[:, 2]
    # By run, group and age.
    low, high = np.maximum(new.low[:, None], first), np.minimum(new.high[:, None], last)
    begins = (new.own[:, None] + ages.ahead - np.arange(ages.count)) * ages.slot_us
    begin, end = np.maximum(begins, low), np.minimum(begins + (ages.slot_us - 1), high)
    # What lies still further ahead, or back, counts as the furthest.
    end[..., :1], begin[..., -1:] = high, low
    density = rows / (runs[:, 1] - runs[:, 0] + 1)
    seen: NDArray[np.float64] = np.einsum("rga,g,r->a", np.maximum(0.0, end - begin + 1), new.rows, density)
    return seen


def cell_number(window: int, exploring: bool, age: int) -> int:
    """One number for the part of a window that a look goes to; `cell_of` is the way back."""
    return (2 * window + int(exploring)) << 16 | age


def cell_of(number: int) -> tuple[int, bool, int]:
    """Window, exploring or not, age."""
    return number >> 17, bool(number >> 16 & 1), number & 0xFFFF


def looks(
    ages: Ages, shares: Sequence[float], new: NewRows, stored: tuple[int, int], filled_us: int = END_US
) -> Iterator[Look]:
    """What new rows look at among stored rows of these first and last times.

    Basic windows that end behind `filled_us` were not complete when the plan was made.
    """
    if not ages.slot_us:
        yield from _some_rows(new, shares[0])
        return
    for sight in in_sight(ages, new, stored):
        share = shares[sight.age]
        # Of a run that lies in one basic window all may be seen: there is nothing to cut.
        cut = not sight.alone or share < 1
        yield from _looks(new, sight, share, cut=cut, filled=sight.end_us <= filled_us)


class Sight(NamedTuple):
    """New rows of one basic window (None: all of them), and a basic window of stored rows in their reach."""

    rows: NDArray[np.int64] | None
    age: int
    #: First and last time of the basic window of stored rows.
    begin_us: int
    end_us: int
    #: The run of stored rows lies in no other.
    alone: bool


def in_sight(ages: Ages, new: NewRows, stored: tuple[int, int]) -> Iterator[Sight]:
    """Which basic windows of stored rows, of these first and last times, which new rows have in reach."""
    slots = new.times // ages.slot_us if new.first_us // ages.slot_us < new.last_us // ages.slot_us else None
    owns = [new.first_us // ages.slot_us] if slots is None else np.unique(slots).tolist()
    first, last = stored[0] // ages.slot_us, stored[1] // ages.slot_us
    # A run of rows that catch up on hours spans more basic windows than anybody has in reach.
    earliest, latest = new.extent
    near, far = max(first, earliest // ages.slot_us), min(last, latest // ages.slot_us)
    for own in owns:
        rows = None if slots is None else np.flatnonzero(slots == own)
        for slot in range(near, far + 1):
            begin_us = slot * ages.slot_us
            yield Sight(rows, ages.number(own, slot), begin_us, begin_us + ages.slot_us - 1, first == last)


def _looks(new: NewRows, sight: Sight, share: float, *, cut: bool, filled: bool) -> Iterator[Look]:
    """The looks of new rows at one basic window."""
    age, edges = sight.age, (sight.begin_us, sight.end_us)
    for group, explores in groups(new, sight.rows):
        part = share
        if draws(new, share, explores, filled):
            group, part = drawn(new, group, share), 1.0
        if group is None and explores is None and not cut:
            yield Look(None, new.low, new.high, age, False, uncut=True)
            continue
        if group is not None and not group.size:
            continue
        low, high = (new.low, new.high) if group is None else (new.low[group], new.high[group])
        if explores is not None and share < 1:
            begin, end = explored_part(new, group, explores, sight, share)
            low = np.maximum(np.maximum(low, edges[0]), begin)
            high = np.minimum(np.minimum(high, edges[1]), end)
        elif cut:
            low, high = newest_part(np.maximum(low, edges[0]), np.minimum(high, edges[1]), part)
        yield from nonempty(Look(group, low, high, age, explores is not None))


def explored_part(
    new: NewRows, rows: NDArray[np.int64] | None, explores: Exploring, sight: Sight, share: float
) -> tuple[NDArray[np.int64] | int, NDArray[np.int64] | int]:
    """Begin and end of the part of a basic window that each of the rows that explore sees."""
    edges = sight.begin_us, sight.end_us
    slot = sight.begin_us // (sight.end_us - sight.begin_us + 1)
    return explores.parts(edges, share, _places(new, rows, slot))


def draws(new: NewRows, share: float, explores: Exploring | None, filled: bool) -> bool:
    """Is it by lot whether a row looks at all of a basic window or at nothing, because it is still filled?"""
    return not filled and 0 < share < 1 and explores is None and new.lots is not None


def _places(new: NewRows, rows: NDArray[np.int64] | None, slot: int) -> NDArray[np.float64]:
    """Where in a basic window each of the rows looks: lots drawn out of their lots, others in every slot."""
    if new.lots is None:
        return np.zeros(0)
    return lots((new.lots if rows is None else new.lots[rows]).view(np.uint64), slot)


def drawn(new: NewRows, rows: NDArray[np.int64] | None, share: float) -> NDArray[np.int64]:
    """So large a part of the rows. Not the same ones as explore: other digits of the same lot decide."""
    if new.lots is None:
        return np.zeros(0, np.int64)
    everyone = np.arange(new.lots.size) if rows is None else rows
    return everyone[np.modf(new.lots[everyone] * 4093.0)[0] < share]


def _some_rows(new: NewRows, share: float) -> Iterator[Look]:
    """Without basic windows there is no time to cut at: a part of the rows looks at everything."""
    if share >= 1 or new.lots is None:
        yield Look(None, new.low, new.high, 0, False)
        return
    rows = np.flatnonzero(new.lots < share)
    if rows.size:
        yield Look(rows, new.low[rows], new.high[rows], 0, False)


def groups(
    new: NewRows, rows: NDArray[np.int64] | None
) -> list[tuple[NDArray[np.int64] | None, Exploring | None]]:
    """Those who look as the plan says, and those who explore."""
    if new.exploring is None or new.lots is None:
        return [(rows, None)]
    everyone = np.arange(new.times.size) if rows is None else rows
    explores = new.lots[everyone] < new.exploring.share
    return [(everyone[~explores], None), (everyone[explores], new.exploring)]


def newest_part(
    begin: NDArray[np.int64], end: NDArray[np.int64], share: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    if share >= 1:
        return begin, end
    return end - np.rint(share * (end - begin + 1)).astype(np.int64) + 1, end


def nonempty(look: Look) -> Iterator[Look]:
    """Rows whose range holds nothing are left out: the probe need not step over them."""
    some = look.high >= look.low
    if some.all():
        yield look
    elif some.any():
        kept = np.flatnonzero(some)
        rows = kept if look.rows is None else look.rows[kept]
        yield Look(rows, look.low[kept], look.high[kept], look.age, look.exploring)


def shares_by_age(order: Sequence[int], fraction: float, work: NDArray[np.float64]) -> tuple[float, ...]:
    """The part of each basic window, taken in this order, that makes up so large a fraction of all work.

    Basic windows without work cost nothing and are taken whole if the order names them.
    """
    shares = np.zeros(work.size)
    chosen = np.asarray(order, np.int64)
    if fraction >= 1:
        # Exactly: a sum of parts may miss one by a rounding, and then something would seem to be left out.
        shares[chosen] = 1.0
        return tuple(shares.tolist())
    ordered = work[chosen]
    left = fraction * work.sum() - (np.cumsum(ordered) - ordered)
    shares[chosen] = np.where(ordered > 0, np.clip(left / np.where(ordered > 0, ordered, 1.0), 0, 1), 1.0)
    return tuple(shares.tolist())
