"""Spreading: a sample as the cloud of places where rows of the same stream would also have been.

A partitioner that looks for the best of thousands of cuts finds those that happen to leave out a few sample
rows, and the rows that come later are not left out: the sifter passes more than it promised. So no cut is
judged by the sample rows themselves. The sample is halved along its relatively widest axis until about as
many rows are left together as the cube root of their number; each row then becomes several points, spread
evenly around it with the deviation that its neighbours have on each axis. Where data is dense the cloud is
sharp, where it is thin the cloud is wide, whatever the units of the axes.

The points follow a low-discrepancy sequence (multiples of irrational numbers), so the same sample gives the
same cloud, without random numbers. Cells of a category have no neighbours: on those axes nothing moves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidegate.sift.compiled import compiled

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Points of a cloud, if the sample is not larger: enough for smooth counts, few enough for milliseconds.
CLOUD = 4000
#: Points that one row may become. More would only draw the shape of the neighbourhood more sharply.
PER_ROW_MOST = 16
#: Neighbours that are halved no further; fewer tell nothing about a deviation.
NEIGHBOURS_LEAST = 4


def spread(
    points: NDArray[np.float64], widths: NDArray[np.float64], fixed: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """The cloud, as (rows · points per row, axes); `widths` are the domain's, `fixed` axes stay."""
    rows, axes = points.shape
    per_row = max(1, min(PER_ROW_MOST, CLOUD // rows))
    together = max(NEIGHBOURS_LEAST, round(rows ** (1 / 3)))
    deviation = np.where(fixed, 0.0, neighbour_deviation(points, points / widths, together))
    # A uniform distribution of width w has the deviation w / √12.
    offsets = (_even(rows * per_row, axes) - 0.5) * np.sqrt(12.0)
    return np.repeat(points, per_row, axis=0) + offsets * np.repeat(deviation, per_row, axis=0)


def _even(count: int, axes: int) -> NDArray[np.float64]:
    """So many points in [0, 1)ⁿ, any run of which fills it evenly: the golden ratio, for n axes."""
    ratio = 2.0
    for _ in range(50):
        ratio = (1 + ratio) ** (1 / (axes + 1))
    steps = np.arange(1, count + 1)[:, None] / ratio ** np.arange(1, axes + 1)
    return np.asarray(steps % 1.0)


@compiled
def neighbour_deviation(
    points: NDArray[np.float64], scaled: NDArray[np.float64], together: int
) -> NDArray[np.float64]:
    """For each row and axis the standard deviation among the row and its neighbours."""
    rows, axes = points.shape
    deviation = np.empty((rows, axes))
    order = np.arange(rows)
    waiting = [(0, rows)]
    while waiting:
        begin, end = waiting.pop()
        part = order[begin:end]
        if end - begin < 2 * together:
            for k in range(axes):
                deviation[part, k] = np.std(points[part, k])
            continue
        widest, width = 0, -1.0
        for k in range(axes):
            values = scaled[part, k]
            if np.ptp(values) > width:
                widest, width = k, np.ptp(values)
        order[begin:end] = part[np.argsort(scaled[part, widest])]
        middle = (begin + end) // 2
        waiting.append((begin, middle))
        waiting.append((middle, end))
    return deviation
