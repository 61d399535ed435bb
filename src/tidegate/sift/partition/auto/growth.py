"""Growth: a tree of many cuts, each of which separates much data from much worth.

`best_cut.py` chooses the cut of a part and computes its gain. Parts are cut in the order of their gain,
until there are enough or no cut gains. `pruning.py` decides afterwards which cuts to keep. Points are
sorted once per axis, and cutting preserves the order, so that a level of the tree costs one scan per axis.

Boxes are followed down the tree, to know the bounds of queries within each part. Where one box covers all
of a part, the part discards its boxes, because no cut can separate unasked space any more: wide queries do
not accumulate in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.kernels import compiled
from tidegate.sift.construct.covering import Bounds
from tidegate.sift.partition.auto.best_cut import best_cut

#: Gains up to this are rounding errors.
NO_GAIN = 1e-12


@dataclass(frozen=True, eq=False)
class Points:
    """The positions of data and worth; both add up to 1 (or to 0, where there is none)."""

    at: NDArray[np.float64]
    data: NDArray[np.float64]
    worth: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Grown:
    """Nodes of the tree, parents before children. A leaf has no children (−1) and no cut."""

    axis: NDArray[np.int32]
    at: NDArray[np.float64]
    children: NDArray[np.int32]
    data: NDArray[np.float64]
    worth: NDArray[np.float64]
    #: Whether some query intersects the part.
    asked: NDArray[np.bool_]


def grow(
    points: Points, extents: Bounds, walls: Bounds, whole: NDArray[np.bool_], parts: int, least: float
) -> Grown:
    """At most `parts` parts, each with at least `least` data unless no query intersects one of its halves.

    `extents` are the boxes of queries within the `walls` of the domain; `whole` marks integer axes.
    """
    # One array layout: another one would be compiled separately.
    at, low, high = (np.ascontiguousarray(array) for array in (points.at, *extents))
    orders = np.argsort(at.T, axis=1, kind="stable")
    return Grown(
        *_grow(at, points.data, points.worth, orders, (low, high), walls, whole, max(parts, 1), least)
    )


@compiled
def _grow(
    at: NDArray[np.float64],
    data: NDArray[np.float64],
    worth: NDArray[np.float64],
    orders: NDArray[np.int64],
    extents: Bounds,
    walls: Bounds,
    whole: NDArray[np.bool_],
    parts: int,
    least: float,
) -> tuple[
    NDArray[np.int32],
    NDArray[np.float64],
    NDArray[np.int32],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.bool_],
]:
    nodes = 2 * parts - 1
    axis, cut, children = np.zeros(nodes, np.int32), np.zeros(nodes), np.full((nodes, 2), -1, np.int32)
    node_data, node_worth, asked = np.zeros(nodes), np.zeros(nodes), np.zeros(nodes, np.bool_)
    gain = np.zeros(nodes)
    # Walls of each node, and its points: order[span[0] : span[1]] along every axis.
    span = np.zeros((nodes, 2), np.int64)
    low, high = np.empty((nodes, len(whole))), np.empty((nodes, len(whole)))
    buffer = np.empty(len(at), np.int64)
    # The boxes that intersect each node; none where one of them covers it, as no part of it is unasked then.
    touched = [np.arange(len(extents[0]))]
    low[0], high[0], span[0, 1] = walls[0], walls[1], len(at)
    count, parent = 1, -1
    while True:
        # The root first, then the two halves of the last cut.
        for node in range(max(0, count - 2), count):
            if parent >= 0:
                touched.append(
                    _touched(extents, touched[parent], axis[parent], cut[parent], node == count - 1)
                )
            inside = orders[:, span[node, 0] : span[node, 1]]
            for point in inside[0]:
                node_data[node] += data[point]
                node_worth[node] += worth[point]
            asked[node] = len(touched[node]) > 0 or (
                parent >= 0 and asked[parent] and len(touched[parent]) == 0
            )
            touched[node], reach = _reach(extents, touched[node], low[node], high[node])
            gain[node], axis[node], cut[node] = best_cut(
                (at, data, worth),
                inside,
                (node_data[node], node_worth[node]),
                reach,
                whole,
                least,
            )
        parent = int(np.argmax(gain[:count]))
        if gain[parent] <= NO_GAIN or count + 2 > nodes:
            break
        gain[parent] = 0.0
        k, middle = axis[parent], 0
        for other in range(len(whole)):
            middle = _part(orders[other], span[parent], at[:, k], cut[parent], buffer)
        children[parent] = count, count + 1
        low[count : count + 2], high[count : count + 2] = low[parent], high[parent]
        high[count, k] = low[count + 1, k] = cut[parent]
        span[count], span[count + 1] = (span[parent, 0], middle), (middle, span[parent, 1])
        count += 2
    return axis[:count], cut[:count], children[:count], node_data[:count], node_worth[:count], asked[:count]


@compiled
def _touched(
    extents: Bounds, boxes: NDArray[np.int64], axis: int, cut: float, above: bool
) -> NDArray[np.int64]:
    """The boxes that intersect one half of a part that was cut."""
    found, count = np.empty(len(boxes), np.int64), 0
    for box in boxes:
        if extents[1][box, axis] > cut if above else extents[0][box, axis] < cut:
            found[count] = box
            count += 1
    return found[:count]


@compiled
def _reach(
    extents: Bounds, boxes: NDArray[np.int64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> tuple[NDArray[np.int64], Bounds]:
    """The boxes and their lowest and highest bounds; no box and no bounds if one covers the whole part."""
    axes = len(low)
    lowest, highest = np.full(axes, np.inf), np.full(axes, -np.inf)
    for box in boxes:
        covers = True
        for k in range(axes):
            lowest[k], highest[k] = min(lowest[k], extents[0][box, k]), max(highest[k], extents[1][box, k])
            covers &= extents[0][box, k] <= low[k] and extents[1][box, k] >= high[k]
        if covers:
            return boxes[:0], (np.full(axes, np.inf), np.full(axes, -np.inf))
    return boxes, (lowest, highest)


@compiled
def _part(
    order: NDArray[np.int64],
    span: NDArray[np.int64],
    coordinates: NDArray[np.float64],
    cut: float,
    buffer: NDArray[np.int64],
) -> int:
    """Move the points below the cut to the front, preserving the order; return where the rest begins."""
    front, behind = span[0], 0
    for place in range(span[0], span[1]):
        point = order[place]
        if coordinates[point] < cut:
            order[front] = point
            front += 1
        else:
            buffer[behind] = point
            behind += 1
    order[front : span[1]] = buffer[:behind]
    return int(front)
