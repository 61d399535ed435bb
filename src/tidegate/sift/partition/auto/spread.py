"""Spreading: a sample as the cloud of places where rows of the same stream would also have been.

A partitioner that looks for the best of thousands of cuts finds those that happen to leave out a few sample
rows, and the rows that come later are not left out: the sifter passes more than it promised. So no cut is
judged by the sample rows themselves. The sample is parted along its widest axis (measured by the deviation of
the whole sample there), at the widest gap in its middle third, until about as many rows are left together as
the cube root of their number. Each row then becomes several points, spread evenly around it with the
deviation that its neighbours have on each axis. Where data is dense the cloud is sharp, where it is thin the
cloud is wide, and between heaps of data there is none, whatever the units of the axes.

The points follow a low-discrepancy sequence (multiples of irrational numbers), so the same sample gives the
same cloud, without random numbers. Cells of a category have no neighbours: on those axes nothing moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.kernels import compiled
from tidegate.sift.construct.covering import Bounds

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Points of a cloud, if the sample is not larger; four times as many cut no better and cost more.
CLOUD = 2000
#: Points that one row may become. More would only draw the shape of the neighbourhood more sharply.
PER_ROW_MOST = 16
#: Twice as many neighbours are parted once more; fewer tell nothing about a deviation.
NEIGHBOURS_LEAST = 4
#: How far from its row a point may be, in deviations: a uniform distribution has the width √12.
REACH = np.sqrt(3.0)


@dataclass(frozen=True, eq=False)
class Cloud:
    """Points (rows · points per row, axes), and corners of the boxes that hold all such points there are."""

    points: NDArray[np.float64]
    reach: Bounds


def spread(points: NDArray[np.float64], fixed: NDArray[np.bool_]) -> Cloud:
    """The cloud around these rows; nothing moves along `fixed` axes."""
    rows, axes = points.shape
    per_row = max(1, min(PER_ROW_MOST, CLOUD // rows))
    together = max(NEIGHBOURS_LEAST, round(rows ** (1 / 3)))
    deviation, reach = neighbourhoods(points, fixed, together)
    offsets = (2 * _even(rows * per_row, axes) - 1) * REACH
    cloud = np.repeat(points, per_row, axis=0) + offsets * np.repeat(deviation, per_row, axis=0)
    return Cloud(cloud, reach)


def _even(count: int, axes: int) -> NDArray[np.float64]:
    """So many points in [0, 1)ⁿ, any run of which fills it evenly: the golden ratio, for n axes."""
    ratio = 2.0
    for _ in range(50):
        ratio = (1 + ratio) ** (1 / (axes + 1))
    steps = np.arange(1, count + 1)[:, None] / ratio ** np.arange(1, axes + 1)
    return np.asarray(steps % 1.0)


@compiled
def neighbourhoods(
    points: NDArray[np.float64], fixed: NDArray[np.bool_], together: int
) -> tuple[NDArray[np.float64], Bounds]:
    """The deviation of each row and axis among neighbours; corners of each neighbourhood, with its cloud."""
    rows, axes = points.shape
    most = rows // max(1, 2 * together // 3) + 1
    low, high, count = np.empty((most, axes)), np.empty((most, axes)), 0
    deviation, order = np.zeros((rows, axes)), np.arange(rows)
    # Parts that wait, by where they begin and end in `order`.
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
        # Welford's update: no large sums to subtract.
        off = value - mean
        mean += off / (i + 1)
        squares += off * (value - mean)
    return least, greatest, np.sqrt(squares / len(part))


@compiled
def _parted(points: NDArray[np.float64], part: NDArray[np.int64], whole: NDArray[np.float64]) -> int:
    """Sort these rows along their widest axis; where the widest gap in the middle third is."""
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
