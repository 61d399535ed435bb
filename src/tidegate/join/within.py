"""The time condition of a join: the range of partner times of a row, and when a row can no longer match.

`Within(left_us, right_us)`: a left row stays joinable for `left_us`, a right row for `right_us`. A pair
matches when -left_us <= left.ts - right.ts <= right_us, both ends included:

    time          ──────────────────────────────────────────────────────────────▶
    a left row                          L
    its partners         [ right_us ────┼──── left_us ]         L - right_us … L + left_us
                         R stayed until L came        L stays until R comes

`Tumbling(size_us)`: both rows lie in the same window of the epoch; windows begin at multiples of the size:

    time          ──|── size ──|──────────|──────────|──────────▶   -1 belongs to the window [-size, 0)
                         L  R       L         R                     first two match, last two do not

`Unbounded()`: every pair of equal keys matches; rows never expire.

The slot (basic window) is the unit in which stored rows are kept and discarded: a tenth of the window, so
that at most about a tenth more is kept than is needed. All results are exact at the ends of int64: they
stop there and never wrap.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tidegate.errors import FlowError
from tidegate.model.json_values import Json
from tidegate.model.times import BEGINNING_US, END_US, LEFT

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: More slots mean more pieces to probe; fewer slots keep expired rows longer.
SLOTS_PER_WINDOW = 10
#: Slot length where rows must have equal times, so that there is no window to take a tenth of.
SLOT_OF_NO_WINDOW_US = 1_000_000


@dataclass(frozen=True)
class Within:
    """-left_us <= left.ts - right.ts <= right_us."""

    waits_for_rows: ClassVar[bool] = False

    left_us: int
    right_us: int

    def __post_init__(self) -> None:
        for side, window_us in (("left", self.left_us), ("right", self.right_us)):
            if not 0 <= window_us <= END_US:
                raise FlowError(
                    f"The {side} window of a join must be zero or more and fit into 64 bits",
                    got=f"{window_us} microseconds",
                    why="It is how long a row stays joinable",
                    do="Give a duration such as '20 seconds'; the two sides may differ",
                )

    def partner_range(
        self, side: int, times: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Per row of `side`: earliest and latest time of a partner, both included."""
        back, ahead = (self.right_us, self.left_us) if side == LEFT else (self.left_us, self.right_us)
        # Clip first, then shift: the sum can no longer leave int64.
        low = np.maximum(times, BEGINNING_US + back) - back
        high = np.minimum(times, END_US - ahead) + ahead
        return low, high

    def dead_before(self, side: int, watermark_us: int) -> int:
        """Rows of `side` before this time have no partner among rows from `watermark_us` on."""
        if watermark_us == END_US:
            return END_US
        return max(BEGINNING_US, watermark_us - self._window_us(side))

    def slot_us(self, side: int) -> int:
        """Length of a slot of `side`, the unit in which its stored rows are kept."""
        window_us = self._window_us(side) or self.left_us or self.right_us
        return -(-window_us // SLOTS_PER_WINDOW) or SLOT_OF_NO_WINDOW_US

    @property
    def reaches_us(self) -> tuple[int, int]:
        """How far a left row may lie before a right one, and a right row before a left one."""
        return self.left_us, self.right_us

    def to_json(self) -> Json:
        return {"kind": "within", **asdict(self)}

    def _window_us(self, side: int) -> int:
        return self.left_us if side == LEFT else self.right_us


@dataclass(frozen=True)
class Tumbling:
    """Both rows in the same epoch-aligned window of `size_us`."""

    waits_for_rows: ClassVar[bool] = False

    size_us: int

    def __post_init__(self) -> None:
        if not 0 < self.size_us <= END_US:
            raise FlowError(
                "A tumbling window must be longer than zero and fit into 64 bits",
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

    def slot_us(self, side: int) -> int:
        """A slot is a window: it expires as a whole, and rows of different windows never match."""
        return self.size_us

    @property
    def reaches_us(self) -> tuple[int, int]:
        return self.size_us, self.size_us

    def to_json(self) -> Json:
        return {"kind": "tumbling", **asdict(self)}


@dataclass(frozen=True)
class Unbounded:
    """Any two times: rows are joined with the full history."""

    waits_for_rows: ClassVar[bool] = False

    def partner_range(
        self, side: int, times: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return np.full(times.size, BEGINNING_US, np.int64), np.full(times.size, END_US, np.int64)

    def dead_before(self, side: int, watermark_us: int) -> int:
        return END_US if watermark_us == END_US else BEGINNING_US

    def slot_us(self, side: int) -> int:
        """0: one slot for all time."""
        return 0

    @property
    def reaches_us(self) -> tuple[int, int]:
        return END_US, END_US

    def to_json(self) -> Json:
        return {"kind": "unbounded"}


TimeCondition = Within | Tumbling | Unbounded


def slots_of(times: NDArray[np.int64], slot_us: int) -> NDArray[np.int64]:
    """Number of the slot of each time; slot 0 begins at the epoch, earlier ones are negative."""
    if slot_us == 0:
        return np.zeros(times.size, np.int64)
    return times // slot_us
