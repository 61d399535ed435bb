"""Spreading: turns a sample into a cloud of points where rows of the same stream could lie.

The best of thousands of cuts would be one that happens to exclude a few sample rows; later rows would not be
excluded, and the sifter would pass more than planned. So no cut is judged by the sample rows themselves. The
sample is divided along its widest axis (measured by the deviation of the whole sample there), at the widest
gap in its middle third, until about the cube root of the number of rows is left together. Each row then
becomes several points, spread evenly around it with the deviation of its neighbours on each axis. The cloud
is sharp where data is dense, wide where it is sparse, and empty between clusters, for any units of the axes.

The points follow a low-discrepancy sequence (multiples of irrational numbers), so the same sample gives the
same cloud, without random numbers. Cells of a category have no neighbours: on those axes points do not
move.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.kernels import compiled
from tidegate.sift.construct.covering import Bounds

#: Points of a cloud, unless the sample is larger; four times as many cut no better and cost more.
CLOUD = 2000
#: Most points per row. More would only sharpen the shape of the neighbourhood.
PER_ROW_MOST = 16
#: Twice as many neighbours are divided once more; fewer do not determine a deviation.
NEIGHBOURS_LEAST = 4
#: Largest distance of a point from its row, in deviations: a uniform distribution has the width √12.
REACH = np.sqrt(3.0)


@dataclass(frozen=True, eq=False)
class Cloud:
    """Points (rows · points per row, axes), and corners of the boxes that contain all possible points."""

    points: NDArray[np.float64]
    reach: Bounds


def spread(points: NDArray[np.float64], fixed: NDArray[np.bool_]) -> Cloud:
    """The cloud around these rows; points do not move along `fixed` axes."""
    rows, axes = points.shape
    per_row = max(1, min(PER_ROW_MOST, CLOUD // rows))
    together = max(NEIGHBOURS_LEAST, round(rows ** (1 / 3)))
    deviation, reach = neighbourhoods(points, fixed, together)
    offsets = (2 * _even(rows * per_row, axes) - 1) * REACH
    cloud = np.repeat(points, per_row, axis=0) + offsets * np.repeat(deviation, per_row, axis=0)
    return Cloud(cloud, reach)


def _even(count: int, axes: int) -> NDArray[np.float64]:
    """Points in [0, 1)ⁿ, any run of which fills it evenly: the golden ratio, generalised to n axes."""
    ratio = 2.0
    for _ in range(50):
        ratio = (1 + ratio) ** (1 / (axes + 1))
    steps = np.arange(1, count + 1)[:, None] / ratio ** np.arange(1, axes + 1)
    return np.asarray(steps % 1.0)


@compiled
def neighbourhoods(
    points: NDArray[np.float64], fixed: NDArray[np.bool_], together: int
) -> tuple[NDArray[np.float64], Bounds]:
    """The deviation of each row and axis among neighbours; corners of each neighbourhood with its cloud."""
    rows, axes = points.shape
    most = rows // max(1, 2 * together // 3) + 1
    low, high, count = np.empty((most, axes)), np.empty((most, axes)), 0
    deviation, order = np.zeros((rows, axes)), np.arange(rows)
    # A stack of parts, by their begin and end in `order`.
    waiting, depth = np.empty((most, 2), np.int64), 1
    waiting[0] = 0, rows
    whole = np.array([_extent(points, order, k)[2] for k in range(axes)])
    while depth > 0:
        depth -= 1
        begin, end = waiting[depth]
        part = order[begin:end]
        if end - begin >= 2 * together:
            middle = begin + _parted(points, part, whole)
            waiting[depth], waiting[depth + 1] = (begin, middle), (middle, end)
            depth += 2
            continue
        for k in range(axes):
            least, greatest, apart = _extent(points, part, k)
            apart = 0.0 if fixed[k] else apart
            low[count, k], high[count, k] = least - REACH * apart, greatest + REACH * apart
            for row in part:
                deviation[row, k] = apart
        count += 1
    return deviation, (low[:count], high[:count])


@compiled
def _extent(points: NDArray[np.float64], part: NDArray[np.int64], k: int) -> tuple[float, float, float]:
    """Least and greatest value of these rows along an axis, and their deviation."""
    least = greatest = points[part[0], k]
    mean = squares = 0.0
    for i in range(len(part)):
        value = points[part[i], k]
        least, greatest = min(least, value), max(greatest, value)
        # Welford's update avoids subtracting large sums.
        off = value - mean
        mean += off / (i + 1)
        squares += off * (value - mean)
    return least, greatest, np.sqrt(squares / len(part))


@compiled
def _parted(points: NDArray[np.float64], part: NDArray[np.int64], whole: NDArray[np.float64]) -> int:
    """Sort these rows along their widest axis; return the widest gap in the middle third."""
    widest, width = 0, -1.0
    for k in range(len(whole)):
        least, greatest, _ = _extent(points, part, k)
        if greatest - least > width * whole[k]:
            widest, width = k, (greatest - least) / whole[k]
    values = np.empty(len(part))
    for i in range(len(part)):
        values[i] = points[part[i], widest]
    by_value = np.argsort(values)
    part[:] = part[by_value]
    third = len(part) // 3
    middle, gap = third, -1.0
    for i in range(third, len(part) - third + 1):
        if values[by_value[i]] - values[by_value[i - 1]] > gap:
            middle, gap = i, values[by_value[i]] - values[by_value[i - 1]]
    return middle
