"""Windows of a number of rows: which are complete, and which rows wait for the rest of their window.

Rows of a group are ordered by event time, then by a hash of the row, so that the order does not depend on
arrival. Only rows below the watermark have their final position: no row can come before them any more.

    size 4, slide 2        ──── below the watermark ────│── above ──
    rows of a group        1   2   3   4   5   6   7    │  8   9
    complete              [─────────────)               │
                                  [─────────────)       │
    kept                                  5   6   7        8   9       the next window begins with row 5

A slide is never longer than the size, so the kept rows begin with the first row of the next window. Nothing
else about a group has to be remembered: no counters, no panes. A group without kept rows starts again.

Guarantee: for any division of the rows into batches the windows are the same, each is complete exactly
once, and a group keeps fewer than `size` rows below the watermark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.window.aggregate.closing import Stretches
from tidegate.window.kernel_types import INTEGERS, NUMBER, kernel

if TYPE_CHECKING:
    from tidegate.window.aggregate.merge_runs import Merged
    from tidegate.window.spec import RowsSpec


class CountWindows(NamedTuple):
    """Complete windows, each at the time of its first row; and the rows kept for later windows."""

    complete: Stretches
    kept: NDArray[np.bool_]


def count_windows(merged: Merged, spec: RowsSpec, watermark: int) -> CountWindows:
    """The windows of new rows and rows kept so far, in one order (`merge_runs` with ties)."""
    begin, kept = _complete(merged.group, merged.at, spec.size, spec.slide, watermark)
    return CountWindows(Stretches(merged.at[begin], begin, begin + spec.size), kept)


@kernel(INTEGERS, INTEGERS, NUMBER, NUMBER, NUMBER)
def _complete(group: Any, time: Any, size: Any, slide: Any, watermark: Any) -> Any:
    """The first row of every complete window, and whether each row is kept."""
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
