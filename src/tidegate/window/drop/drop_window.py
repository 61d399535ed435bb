"""The logical window of a drop: which rows it keeps or drops together, by the rules of table 2.

Paper: window drop, section 3.2. A drop placed somewhere in a plan divides the rows there into logical
windows of a size and a slide, keeps or drops each of them as a whole, and drops at most `max_gap` in a row.

- Behind the last window of a plan a result is one row: size 1, slide δ, the output's own `max_gap`.
- *Pipeline.* In front of a window of size ω the size grows by ω − 1, because the last row that is kept
  behind it depends on rows up to ω − 1 later. So k windows in a row give Σω − (k − 1) and the slide of the
  last.
- *Fan-out.* Where rows are shared, all children must begin a window at the same time: the slide is the
  least common multiple of theirs, and the size is this slide plus the largest extent, size − slide, of a
  child. One such window covers several windows of a child, so the child's gap is divided by their number.

    A₁ (3, 2)    [─────)                         lcm 6, extents 1 and 0: size 7, slide 6
                     [─────)
                         [─────)·  extent 1
    A₂ (3, 3)    [─────)
                       [─────)     extent 0
    drop (7, 6)  [─────────────)
                             [─────────────)

Guarantee: every row that a kept output window depends on lies in a kept logical window (`source_range.py`
has the exact range, which is never larger); the rules may be applied in any order.

Where we differ: the unit that the paper subtracts is a microsecond, the grain of time. A window below a
join also needs rows from before its start, which wait for partners: `lead_us` is how much earlier the
logical window begins. The paper has no joins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import lcm

from tidegate.errors import FlowError
from tidegate.window.spec import UNIT_US, WindowSpec


@dataclass(frozen=True)
class DropWindow:
    """Logical window k holds the times [k · slide − lead, k · slide − lead + size)."""

    size_us: int
    slide_us: int
    #: At most this many are dropped in a row; 0: this drop is impossible.
    max_gap: int
    lead_us: int = 0

    def __post_init__(self) -> None:
        if self.size_us <= 0 or self.slide_us <= 0 or self.lead_us < 0 or self.max_gap < 0:
            raise FlowError(
                "A logical window has a size and a slide above zero, a gap and a lead of zero or more",
                got=f"{self.size_us=}, {self.slide_us=}, {self.max_gap=}, {self.lead_us=}",
            )

    @property
    def drops_rows(self) -> bool:
        """Section 3.5: True if the longest gap leaves some rows in no kept window."""
        return self.max_gap >= max(1, self.size_us // self.slide_us)


def result(spec: WindowSpec, max_gap: int) -> DropWindow:
    """The drop behind the last window: its results, one row per group each."""
    if max_gap < 1:
        raise FlowError(
            "The longest gap of an output must be at least one window",
            got=f"max_gap {max_gap}",
            why="With none, no window could ever be dropped",
            do="Give max_gap=1 or more, or leave the output out of shedding",
        )
    return DropWindow(UNIT_US, spec.slide_us, max_gap)


def before(spec: WindowSpec, behind: DropWindow) -> DropWindow:
    """The pipeline rule: a drop behind a window, moved in front of it."""
    return replace(behind, size_us=behind.size_us + spec.size_us - UNIT_US)


def before_join(back_us: int, ahead_us: int, behind: DropWindow) -> DropWindow:
    """A drop in front of a join, on a side whose rows are needed earlier and later than their pairs."""
    return replace(behind, size_us=behind.size_us + back_us + ahead_us, lead_us=behind.lead_us + back_us)


def shared(children: Sequence[DropWindow]) -> DropWindow:
    """The fan-out rule: one drop for rows with several consumers."""
    slide = lcm(*(child.slide_us for child in children))
    lead = max(child.lead_us for child in children)
    extent = max(child.size_us - child.lead_us - child.slide_us for child in children)
    gap = min(child.max_gap * child.slide_us // slide for child in children)
    return DropWindow(slide + extent + lead, slide, gap, lead)
