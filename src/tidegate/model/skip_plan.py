"""Which parts of basic windows a join probes in one batch."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.model.times import BEGINNING_US, END_US


@dataclass(frozen=True)
class Skipping:
    """What one join skips in one batch. With all shares at 1 it skips nothing and only counts."""

    #: The probe ratio (the paper's r): the part of all work that is done.
    fraction: float
    #: Per window (left, right) and age of basic window: the newest part of it that new rows of the other
    #: side probe; see join/selective/reach.py.
    shares: tuple[tuple[float, ...], tuple[float, ...]]
    #: Share of rows that probe a part of every basic window, to learn what others miss; and that part.
    explore_share: float = 0.0
    explore_depth: float = 1.0
    #: Rows that enter the join at all; Spark drops the others in front of it.
    keep_share: float = 1.0
    #: Per side: new rows below this time are stale and do not enter.
    fresh_us: tuple[int, int] = (BEGINNING_US, BEGINNING_US)
    #: Per side: stored rows below this time are dropped before their window ends.
    forget_us: tuple[int, int] = (BEGINNING_US, BEGINNING_US)
    #: Per side: the newest stored row when the plan was made; basic windows that end later are still filled.
    filled_us: tuple[int, int] = (END_US, END_US)
    #: The part of all work that rows that do not explore spend by content-aware probes
    #: (join/selective/content_choice.py); the shares are 0 then. None: the shares say what is probed.
    content: float | None = None
    #: For reports only: probe ratio of the left and the right window, and the order of their ages.
    fractions: tuple[float, float] = (1.0, 1.0)
    orders: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
