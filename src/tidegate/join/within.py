"""The time condition of a join: the range of partner times of a row, and when a row can no longer match.

`Within(lower_us, upper_us)`: a pair matches when lower_us <= right.ts - left.ts <= upper_us, both ends
included. Both bounds may have the same sign:

    time          ──────────────────────────────────────────────────────────────▶
    a left row                          L
    its partners               [ lower ─┼──── upper ]                -5 … +10: before and after it
    its partners                        ┊     [ lower ─── upper ]    +5 … +15: some time after it

A left row is kept until the watermark passes its last possible partner, L + upper_us; a right row until it
passes R - lower_us. With bounds of the same sign one of these lies before the row itself. The rows of that
side are kept only until the watermark passes them, and usually all their partners are there when they arrive
(`complete_before`).

`Tumbling(size_us)`: both rows lie in the same window of the epoch; windows begin at multiples of the size:

    time          ──|── size ──|──────────|──────────|──────────▶   -1 belongs to the window [-size, 0)
                         L  R       L         R                     first two match, last two do not

`Unbounded()`: every pair of equal keys matches; rows never expire.

The slot (basic window) is the unit in which stored rows are kept and discarded: a tenth of the time that rows
are kept, so that at most about a tenth more is kept than is needed. Where partners lie in a range that is
narrower than that, slots are narrower too, or parts of the range could not be told apart.

All results are exact at the ends of int64, which lie outside of event time: they stop there and never wrap.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate.model.json_values import Json
from tidegate.model.times import BEGINNING_US, END_US, LEFT
from tidegate.quantities import duration_text

#: More slots mean more pieces to probe; fewer slots keep expired rows longer.
SLOTS_PER_WINDOW = 10
#: Most slots of a side where partners lie in a range that is narrow and far away.
SLOTS_MAX = 50
#: Most slots that a user may set.
BASIC_WINDOWS_MAX = 500
#: Slot length where rows must have equal times, so that there is no window to take a tenth of.
SLOT_OF_NO_WINDOW_US = 1_000_000


@dataclass(frozen=True)
class Within:
    """lower_us <= right.ts - left.ts <= upper_us."""

    waits_for_rows: ClassVar[bool] = False

    lower_us: int
    upper_us: int
    #: Length of a slot as the user set it; None: as `slot_us` says.
    basic_us: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name, bound_us in (("lower", self.lower_us), ("upper", self.upper_us)):
            if not -END_US <= bound_us <= END_US:
                raise FlowError(
                    f"The {name} bound of a join's time condition does not fit into 64 bits",
                    code="JOIN_WITHIN_TOO_LONG",
                    got=f"{bound_us} microseconds",
                    do="Give a duration such as '20 seconds', or tg.UNBOUNDED for the full history",
                )
        if self.lower_us > self.upper_us:
            raise FlowError(
                "The lower bound of a join's time condition lies above the upper one",
                code="JOIN_WITHIN_EMPTY",
                got=f"lower {duration_text(self.lower_us)}, upper {duration_text(self.upper_us)}",
                why="No pair can satisfy lower <= right.time - left.time <= upper",
                do='Give the smaller bound first: tg.between("-5 minutes", "1 minute")',
            )

    def partner_range(
        self, side: int, times: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Per row of `side`: earliest and latest time of a partner, both included."""
        first, last = self._partners_us(side)
        return _shifted(times, first), _shifted(times, last)

    def dead_before(self, side: int, watermark_us: int) -> int:
        """Rows of `side` before this time have no partner among rows from `watermark_us` on.

        Never above the watermark: the rows that arrive are not below it, so none is dead on arrival.
        """
        if watermark_us == END_US:
            return END_US
        return max(BEGINNING_US, watermark_us - self.kept_us[side])

    def late_before(self, watermark_us: int) -> int:
        """Rows before this time are late by this watermark."""
        return watermark_us

    def complete_before(self, side: int, watermark_us: int) -> int:
        """Rows of `side` before this time have all their partners below `watermark_us`.

        Above the watermark where the partners of a row lie before it: then rows may be complete on arrival.
        """
        if watermark_us in (BEGINNING_US, END_US):
            return watermark_us
        return min(max(BEGINNING_US, watermark_us - self._partners_us(side)[1]), END_US)

    def slot_us(self, side: int) -> int:
        """Length of a slot of `side`, the unit in which its stored rows are kept."""
        if self.basic_us is not None:
            return self.basic_us
        kept_us = self.kept_us[side] or max(self.kept_us)
        width_us = min(kept_us, self.upper_us - self.lower_us)
        return max(_part(width_us, SLOTS_PER_WINDOW), _part(kept_us, SLOTS_MAX)) or SLOT_OF_NO_WINDOW_US

    @property
    def kept_us(self) -> tuple[int, int]:
        """By side: how long a row is kept for partners that come after it."""
        return max(0, self.upper_us), max(0, -self.lower_us)

    @property
    def probed_us(self) -> tuple[int, int]:
        """By side: the length of time in which stored rows match a new row, if rows come in order."""
        return (
            max(0, self.upper_us) - max(0, self.lower_us),
            max(0, -self.lower_us) - max(0, -self.upper_us),
        )

    @property
    def bounds_us(self) -> tuple[int, int]:
        """The least and the greatest time from a left row to a right one."""
        return self.lower_us, self.upper_us

    def to_json(self) -> Json:
        return {"kind": "within", **{name: us for name, us in asdict(self).items() if us is not None}}

    def in_basic_windows(self, basic_us: int) -> Within:
        """The same condition with slots of this length."""
        if max(self.kept_us) > BASIC_WINDOWS_MAX * basic_us:
            raise FlowError(
                "basic_window of Adaptive is too short for a join",
                code="POLICY_BASIC_WINDOW_SHORT",
                got=f"{duration_text(basic_us)} of a window of {duration_text(max(self.kept_us))}",
                why="Each basic window is stored and probed by itself; more than "
                f"{BASIC_WINDOWS_MAX} cost more than they save",
                do=f"Give at least {duration_text(_part(max(self.kept_us), BASIC_WINDOWS_MAX))}, or "
                "None for a tenth of the window",
            )
        return replace(self, basic_us=basic_us)

    def _partners_us(self, side: int) -> tuple[int, int]:
        """From a row of `side` to its first and its last possible partner."""
        return (self.lower_us, self.upper_us) if side == LEFT else (-self.upper_us, -self.lower_us)


@dataclass(frozen=True)
class Tumbling:
    """Both rows in the same epoch-aligned window of `size_us`."""

    waits_for_rows: ClassVar[bool] = False

    size_us: int

    def __post_init__(self) -> None:
        if not 0 < self.size_us <= END_US:
            raise FlowError(
                "A tumbling window must be longer than zero and fit into 64 bits",
                code="JOIN_WINDOW_SIZE",
                got=f"{self.size_us} microseconds",
                why="Rows are joined with the rows of their own window",
                do="Give a duration such as '10 seconds'",
            )

    def partner_range(
        self, side: int, times: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Per row of either side: first and last time of its window."""
        low = times // self.size_us * self.size_us
        high = low + (self.size_us - 1)
        # numpy wraps where a window crosses an end of int64; that end is then on the wrong side.
        return np.where(low > times, BEGINNING_US, low), np.where(high < times, END_US, high)

    def dead_before(self, side: int, watermark_us: int) -> int:
        """Rows of windows that end before `watermark_us` have no partner among later rows."""
        if watermark_us == END_US:
            return END_US
        return max(BEGINNING_US, watermark_us // self.size_us * self.size_us)

    def late_before(self, watermark_us: int) -> int:
        """Rows of windows that are over are late, as in Spark; others still find their partners."""
        return self.dead_before(LEFT, watermark_us)

    def complete_before(self, side: int, watermark_us: int) -> int:
        return self.dead_before(side, watermark_us)

    def slot_us(self, side: int) -> int:
        """A slot is a window: it expires as a whole, and rows of different windows never match."""
        return self.size_us

    @property
    def bounds_us(self) -> tuple[int, int]:
        return -self.size_us, self.size_us

    def to_json(self) -> Json:
        return {"kind": "tumbling", **asdict(self)}


@dataclass(frozen=True, repr=False)
class Unbounded:
    """Any two times: rows are joined with the full history."""

    waits_for_rows: ClassVar[bool] = False

    def __repr__(self) -> str:
        return "tg.UNBOUNDED"

    def partner_range(
        self, side: int, times: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return np.full(times.size, BEGINNING_US, np.int64), np.full(times.size, END_US, np.int64)

    def dead_before(self, side: int, watermark_us: int) -> int:
        return END_US if watermark_us == END_US else BEGINNING_US

    def late_before(self, watermark_us: int) -> int:
        return watermark_us

    def complete_before(self, side: int, watermark_us: int) -> int:
        return self.dead_before(side, watermark_us)

    def slot_us(self, side: int) -> int:
        """0: one slot for all time."""
        return 0

    @property
    def bounds_us(self) -> tuple[int, int]:
        return -END_US, END_US

    def to_json(self) -> Json:
        return {"kind": "unbounded"}


TimeCondition = Within | Tumbling | Unbounded


def slots_of(times: NDArray[np.int64], slot_us: int) -> NDArray[np.int64]:
    """Number of the slot of each time; slot 0 begins at the epoch, earlier ones are negative."""
    if slot_us == 0:
        return np.zeros(times.size, np.int64)
    return times // slot_us


def _shifted(times: NDArray[np.int64], by_us: int) -> NDArray[np.int64]:
    """The times plus a duration, stopped at the ends of int64."""
    # Clip first, then shift: the sum can no longer leave int64.
    if by_us < 0:
        return np.maximum(times, BEGINNING_US - by_us) + by_us
    return np.minimum(times, END_US - by_us) + by_us


def _part(length_us: int, parts: int) -> int:
    """The length of one of so many parts, rounded up."""
    return -(-length_us // parts)
