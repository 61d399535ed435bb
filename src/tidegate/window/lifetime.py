"""How long pane partials are needed, with the interface of a join's time condition (`join/within.py`).

A pane is needed as long as a window that contains it is open. A window closes when the watermark reaches
its end: no row can fall into it any more. Rows of a count window are needed until the window is full,
however long that takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tidegate.model.times import BEGINNING_US
from tidegate.window.spec import WindowSpec

#: Slots per window, so that partials expire in whole pieces.
SLOTS_PER_WINDOW = 10


@dataclass(frozen=True)
class Lifetime:
    """The lifetime of the partials of one window."""

    waits_for_rows: ClassVar[bool] = False

    spec: WindowSpec

    def dead_before(self, side: int, watermark_us: int) -> int:
        """Start of the first window that is still open: older partials are not needed."""
        return max(self.spec.start(self.spec.first_open(watermark_us)), -(2**63))

    def late_before(self, watermark_us: int) -> int:
        """Rows whose windows are all closed are late, as in Spark."""
        return self.dead_before(0, watermark_us)

    def slot_us(self, side: int) -> int:
        return max(self.spec.slide_us, self.spec.size_us // SLOTS_PER_WINDOW)

    def closed(self, watermark_us: int) -> int:
        """The first window that is still open; all before it are closed."""
        return self.spec.first_open(watermark_us)

    def begins_after(self, seen_us: int) -> int:
        """Start of the first window that begins after this time."""
        return self.spec.start(self.spec.begun(seen_us) + 1)


@dataclass(frozen=True)
class RowsLifetime:
    """The lifetime of rows of count windows: they are needed until windows have consumed them."""

    waits_for_rows: ClassVar[bool] = True

    def dead_before(self, side: int, watermark_us: int) -> int:
        """The earliest time: no row expires by time."""
        return BEGINNING_US

    def late_before(self, watermark_us: int) -> int:
        """Rows below the watermark have their final position, so no row may come before them."""
        return watermark_us

    def slot_us(self, side: int) -> int:
        """0: one slot for all time, because nothing expires by time."""
        return 0
