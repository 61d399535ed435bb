"""Worth: the value of rows at a place to all queries together, as weighted points.

Dropping all rows of a query costs α·w, wherever in the query they lie, so each row costs its part of that:

    worth of a row = Σ over the queries that contain it of α·w / (rows in that query)

Sample rows inside a query carry its worth in equal parts. A query without sample rows is small (or missed
by chance), and its place is known exactly: its centre carries its worth, and several boxes of such a query
share it by volume. A box that is also outside of the cloud around the sample (`spread.py`) has no data, as
far as the sample shows. Such a query is complete whatever is dropped, so its worth is zero.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegate.kernels import compiled
from tidegate.sift.construct.covering import Bounds


def worth_points(
    rows: NDArray[np.float64],
    extents: Bounds,
    owner: NDArray[np.int32],
    gain: NDArray[np.float64],
    widths: NDArray[np.float64],
    reach: Bounds,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points and their worth. `gain` is α·w per query; boxes and rows lie within the domain of `widths`."""
    low, high = extents
    sides = (high - low) / widths
    # Rows are searched along the axis on which queries are narrowest: few candidates are left.
    axis = int(np.argmin(sides.mean(axis=0)))
    rows = rows[np.argsort(rows[:, axis], kind="stable")]
    by_owner = np.argsort(owner, kind="stable")
    ends = np.cumsum(np.bincount(owner, minlength=len(gain)))
    on_rows, on_boxes = _worth(rows, axis, extents, by_owner, ends, gain, sides.prod(axis=1), reach)
    carrying, alone = on_rows > 0, on_boxes > 0
    centres = low[alone] + (high[alone] - low[alone]) / 2
    return np.concatenate((rows[carrying], centres)), np.concatenate((on_rows[carrying], on_boxes[alone]))


@compiled
def _worth(
    rows: NDArray[np.float64],
    axis: int,
    extents: Bounds,
    by_owner: NDArray[np.int64],
    ends: NDArray[np.int64],
    gain: NDArray[np.float64],
    volumes: NDArray[np.float64],
    reach: Bounds,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Worth on each row and on each box; rows are sorted along `axis`."""
    low, high = extents
    on_rows, on_boxes = np.zeros(len(rows)), np.zeros(len(low))
    sorted_by = rows[:, axis].copy()
    inside = np.empty(len(rows), np.int64)
    begin = 0
    for query in range(len(ends)):
        boxes = by_owner[begin : ends[query]]
        begin = ends[query]
        found = 0
        for box in boxes:
            first = np.searchsorted(sorted_by, low[box, axis])
            last = np.searchsorted(sorted_by, high[box, axis])
            for row in range(first, last):
                if _contains(low, high, box, rows, row):
                    inside[found] = row
                    found += 1
        for row in inside[:found]:
            on_rows[row] += gain[query] / found
        if found == 0:
            near = boxes[_near(extents, boxes, reach)]
            volume = volumes[near].sum()
            for box in near:
                on_boxes[box] = gain[query] * (volumes[box] / volume if volume > 0 else 1 / len(near))
    return on_rows, on_boxes


@compiled
def _contains(
    low: NDArray[np.float64], high: NDArray[np.float64], box: int, rows: NDArray[np.float64], row: int
) -> bool:
    inside = True
    for k in range(rows.shape[1]):
        inside &= low[box, k] <= rows[row, k] < high[box, k]
    return inside


@compiled
def _near(extents: Bounds, boxes: NDArray[np.int64], reach: Bounds) -> NDArray[np.bool_]:
    """The boxes that intersect a box of the cloud."""
    near = np.zeros(len(boxes), np.bool_)
    for i, box in enumerate(boxes):
        for other in range(len(reach[0])):
            meet = True
            for k in range(len(reach[0][other])):
                meet &= extents[0][box, k] <= reach[1][other, k] and extents[1][box, k] > reach[0][other, k]
            if meet:
                near[i] = True
                break
    return near
