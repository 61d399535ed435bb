"""How long pane partials are needed, in the terms in which planning asks joins (`join/within.py`).

A pane is needed as long as a window that holds it is open. A window closes when the watermark reaches its
end: no row can fall into it any more. Rows of a window of rows are needed until that many have come, however
long it takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tidegate.model.times import BEGINNING_US
from tidegate.window.spec import WindowSpec

#: Into so many slots a window is cut, so that what expires, expires in whole pieces.
SLOTS_PER_WINDOW = 10


@dataclass(frozen=True)
class Lifetime:
    """Of the partials of one kind of window."""

    waits_for_rows: ClassVar[bool] = False

    spec: WindowSpec

    def dead_before(self, side: int, watermark_us: int) -> int:
        """Start of the first window that is still open: older partials are needed by nobody."""
        first = (watermark_us - self.spec.size_us) // self.spec.slide_us + 1
        return max(first * self.spec.slide_us, -(2**63))

    def slot_us(self, side: int) -> int:
        return max(self.spec.slide_us, self.spec.size_us // SLOTS_PER_WINDOW)

    def closed(self, watermark_us: int) -> int:
        """The first window that is still open; all before it are closed."""
        return (watermark_us - self.spec.size_us) // self.spec.slide_us + 1


@dataclass(frozen=True)
class RowsLifetime:
    """Of rows that wait for the rest of their windows: they leave when windows have consumed them."""

    waits_for_rows: ClassVar[bool] = True

    def dead_before(self, side: int, watermark_us: int) -> int:
        """Time alone makes no row needless."""
        return BEGINNING_US

    def slot_us(self, side: int) -> int:
        """0: one slot for all time, because nothing expires by time."""
        return 0
