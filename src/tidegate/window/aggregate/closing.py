"""Determines the rows of each closing window: a stretch of merged partials, per group and window.

Merged partials are sorted by (group, pane), and the panes of a window are neighbours, so a window of a
group is one stretch of rows. From one window of the group to the next, the stretch advances at both ends:

    group        0 0 0 0 0 0 0 │ 1 1
    pane         3 4 4 5 7 8 8 │ 4 9          windows of three panes, a new one with every pane
    window 3    [───────)      │              panes 3, 4, 5; pane 4 came in two runs
    window 4      [─────)      │[─)
    window 5          [───)    │
    window 6 …          [─────)│              (window 6 of group 1 has no row and is not listed)

Guarantee: every window of the range that contains a row of a group is listed once for this group, and no
other. The first and the last row of stretches never decrease from one stretch to the next, over all groups.
Sliding aggregation (`sliding.py`) relies on this alone. Leaving out stretches preserves it, so windows that
are to be dropped are removed here, before anything is computed for them.

Cost: rows + windows found, independent of size/slide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tidegate.window.kernel_types import INTEGERS, NEW_INTEGERS, NUMBER, inlined, kernel

if TYPE_CHECKING:
    from tidegate.window.aggregate.merge_runs import Merged
    from tidegate.window.panes import Panes

Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Stretches:
    """Stretch k consists of the merged rows begin[k] … end[k] − 1 and represents `at[k]`.

    That is the number of a window or of a pane. All rows of a stretch belong to one group: `begin` gives
    the group's key.
    """

    at: Integers
    begin: Integers
    end: Integers

    @property
    def count(self) -> int:
        return self.at.size

    def only(self, kept: NDArray[np.bool_]) -> Stretches:
        return Stretches(self.at[kept], self.begin[kept], self.end[kept])


def closing_windows(merged: Merged, panes: Panes, first: int, stop: int) -> Stretches:
    """The windows `first` to `stop` − 1 of every group that has a row in them."""
    asked = (merged.group, merged.at, first, stop, panes.per_slide, panes.per_window)
    at, begin, end = np.empty((3, _count(*asked)), np.int64)
    _fill(*asked, at, begin, end)
    return Stretches(at, begin, end)


def cells(merged: Merged) -> Stretches:
    """Every (group, pane) once: merges runs into one run with a single row for each."""
    if not merged.at.size:
        return Stretches(*np.zeros((3, 0), np.int64))
    new = (merged.group[1:] != merged.group[:-1]) | (merged.at[1:] != merged.at[:-1])
    edges = np.concatenate(([0], np.flatnonzero(new) + 1, [merged.at.size]))
    return Stretches(merged.at[edges[:-1]], edges[:-1], edges[1:])


def panes_needed(panes: Panes, first: int, stop: int) -> tuple[int, int]:
    """The panes of these windows: the first, and the first beyond."""
    return first * panes.per_slide, (stop - 1) * panes.per_slide + panes.per_window


@inlined
def _ceiling(pane: Any, per_slide: Any) -> Any:
    """pane / per_slide, rounded up; a slide has one pane or two, so a shift replaces the division."""
    return (pane + per_slide - 1) >> (per_slide - 1)


@kernel(INTEGERS, INTEGERS, NUMBER, NUMBER, NUMBER, NUMBER)
def _count(group: Any, pane: Any, first: Any, stop: Any, per_slide: Any, per_window: Any) -> Any:
    """The number of stretches: per row, the windows that contain it and no earlier row."""
    found, following = 0, first
    for row in range(group.size):
        if row > 0 and group[row] != group[row - 1]:
            following = first
        begin = max(following, _ceiling(pane[row] - per_window + 1, per_slide))
        following = max(following, min(stop, (pane[row] >> (per_slide - 1)) + 1))
        found += max(0, following - begin)
    return found


@kernel(INTEGERS, INTEGERS, NUMBER, NUMBER, NUMBER, NUMBER, NEW_INTEGERS, NEW_INTEGERS, NEW_INTEGERS)
def _fill(
    group: Any,
    pane: Any,
    first: Any,
    stop: Any,
    per_slide: Any,
    per_window: Any,
    windows: Any,
    begins: Any,
    ends: Any,
) -> None:
    found, head = 0, 0
    while head < group.size:
        tail = head + 1
        while tail < group.size and group[tail] == group[head]:
            tail += 1
        begin, end, window = head, head, first
        while window < stop:
            low = window * per_slide
            high = low + per_window
            while begin < tail and pane[begin] < low:
                begin += 1
            if begin == tail:
                break
            if pane[begin] >= high:
                # An empty window: continue with the first window that contains the next row.
                window = _ceiling(pane[begin] - per_window + 1, per_slide)
                continue
            end = max(begin, end)
            while end < tail and pane[end] < high:
                end += 1
            windows[found], begins[found], ends[found] = window, begin, end
            found += 1
            window += 1
        head = tail
