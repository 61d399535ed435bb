"""The logical window of a drop: which rows it keeps or drops together, by the rules of table 2.

Paper: window drop, section 3.2. A drop placed somewhere in a plan divides the rows there into logical
windows of a size and a slide, keeps or drops each of them as a whole, and drops at most `max_gap` in a row.

- Behind the last window of a plan a result is one row: size 1, slide δ, the output's own `max_gap`.
- *Pipeline.* In front of a window of size ω the size grows by ω − 1, because the last row that is kept
  behind it depends on rows up to ω − 1 later. So k windows in a row give Σω − (k − 1) and the slide of the
  last.
- *Fan-out.* Where rows are shared, the slide is the least common multiple of the children's slides: a window
  of this slide covers the same number of windows of a child wherever it lies. Its size is this slide plus the
  largest extent, size − slide, of a child. The child's gap is divided by the number of its windows in one.

    A₁ (3, 2)    [─────)                         lcm 6, extents 1 and 0: size 7, slide 6
                     [─────)
                         [─────)·  extent 1
    A₂ (3, 3)    [─────)
                       [─────)     extent 0
    drop (7, 6)  [─────────────)
                             [─────────────)

Guarantee: every row that a kept output window depends on lies in a kept logical window (`source_range.py`
has the exact range, which is never larger); the rules may be applied in any order if offsets agree.

Where we differ: the unit that the paper subtracts is a microsecond, the grain of time. A window below a
join also needs rows from before its start, which wait for partners: `lead_us` is how much earlier the
logical window begins. The paper has no joins. It has no offsets either: where children begin their windows at
different times, the extent of a child grows by the distance from the common start to its own first start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import lcm

from tidegate.errors import FlowError
from tidegate.window.spec import UNIT_US, WindowSpec


@dataclass(frozen=True)
class DropWindow:
    """Logical window k holds the times [begin, begin + size), begin = k · slide + offset − lead."""

    size_us: int
    slide_us: int
    #: At most this many are dropped in a row; 0: this drop is impossible.
    max_gap: int
    lead_us: int = 0
    offset_us: int = 0

    def __post_init__(self) -> None:
        if self.size_us <= 0 or self.slide_us <= 0 or self.lead_us < 0 or self.max_gap < 0:
            raise FlowError(
                "A logical window needs a size and a slide above zero, and a gap and a lead of zero or more",
                code="DROP_WINDOW_INVALID",
                got=f"{self.size_us=}, {self.slide_us=}, {self.max_gap=}, {self.lead_us=}",
            )

    @property
    def drops_rows(self) -> bool:
        """Section 3.5: True if the longest gap leaves some rows in no kept window."""
        return self.max_gap >= max(1, self.size_us // self.slide_us)

    def extent_in(self, offset_us: int) -> int:
        """How far the windows that start inside of a common window of this offset reach beyond it."""
        return self.size_us - self.lead_us - self.slide_us + (self.offset_us - offset_us) % self.slide_us

    def size_in(self, common: DropWindow) -> int:
        """The size that holds all windows that start inside of a common window; without a lead."""
        return common.slide_us + self.extent_in(common.offset_us)


def result(spec: WindowSpec, max_gap: int) -> DropWindow:
    """The drop behind the last window: its results, one row per group each."""
    if max_gap < 1:
        raise FlowError(
            "max_gap of an output must be at least one window",
            code="OUTPUT_MAX_GAP_RANGE",
            got=f"max_gap {max_gap}",
            why="With a max_gap of zero, no window can be dropped",
            do="Give max_gap=1 or more, or leave it out so that no window is dropped",
        )
    return DropWindow(UNIT_US, spec.slide_us, max_gap, offset_us=spec.offset_us)


def before(spec: WindowSpec, behind: DropWindow) -> DropWindow:
    """The pipeline rule: a drop behind a window, moved in front of it."""
    return replace(behind, size_us=behind.size_us + spec.size_us - UNIT_US)


def before_join(back_us: int, ahead_us: int, behind: DropWindow) -> DropWindow:
    """A drop in front of a join, on a side whose rows are needed earlier and later than their pairs."""
    return replace(behind, size_us=behind.size_us + back_us + ahead_us, lead_us=behind.lead_us + back_us)


def shared(children: Sequence[DropWindow]) -> DropWindow:
    """The fan-out rule: one drop for rows with several consumers.

    Its offset is that of a child: the one that gives the smallest size.
    """
    slide = lcm(*(child.slide_us for child in children))
    lead = max(child.lead_us for child in children)
    gap = min(child.max_gap * child.slide_us // slide for child in children)
    extents = {
        offset: max(child.extent_in(offset) for child in children)
        for offset in dict.fromkeys(child.offset_us for child in children)
    }
    offset = min(extents, key=extents.__getitem__)
    return DropWindow(slide + extents[offset] + lead, slide, gap, lead, offset)
