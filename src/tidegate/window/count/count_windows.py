"""Windows of so many rows: which are complete, and which rows must wait for the rest of theirs.

Rows of a group are ordered by event time, then by a hash of the row, so that the order does not depend on how
rows came. Only rows below the watermark have their final place in it: nothing can come before them any more.

    size 4, slide 2        ──── below the watermark ────│── above ──
    rows of a group        1   2   3   4   5   6   7    │  8   9
    complete              [─────────────)               │
                                  [─────────────)       │
    kept                                  5   6   7        8   9       the next window begins with row 5

A slide is never longer than the size, so what is kept begins with the first row of the next window, and
nothing else about a group has to be remembered: no counters, no panes. A group of which nothing is kept
begins anew.

Guarantee: for any cut of the rows into batches the windows are the same, each is complete exactly once, and a
group keeps less than `size` rows below the watermark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tidegate.window.aggregate.closing import Stretches
from tidegate.window.kernel_types import INTEGERS, NUMBER, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tidegate.window.aggregate.merge_runs import Merged
    from tidegate.window.spec import RowsSpec


class CountWindows(NamedTuple):
    """Complete windows, each standing for the time of its first row; and the rows kept for later ones."""

    complete: Stretches
    kept: NDArray[np.bool_]


def count_windows(merged: Merged, spec: RowsSpec, watermark: int) -> CountWindows:
    """Of new rows and those kept so far, in one order (`merge_runs` with ties), at their times."""
    begin, kept = _complete(merged.group, merged.at, spec.size, spec.slide, watermark)
    return CountWindows(Stretches(merged.at[begin], begin, begin + spec.size), kept)


@kernel(INTEGERS, INTEGERS, NUMBER, NUMBER, NUMBER)
def _complete(group: Any, time: Any, size: Any, slide: Any, watermark: Any) -> Any:
    """First row of every complete window, and whether each row is kept."""
    begins, found = np.empty(group.size, np.int64), 0
    kept = np.ones(group.size, np.bool_)
    head = 0
    while head < group.size:
        settled = head
        while settled < group.size and group[settled] == group[head] and time[settled] < watermark:
            settled += 1
        tail = settled
        while tail < group.size and group[tail] == group[head]:
            tail += 1
        begin = head
        while begin + size <= settled:
            begins[found] = begin
            found += 1
            begin += slide
        kept[head:begin] = False
        head = tail
    return begins[:found].copy(), kept
