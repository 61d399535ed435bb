"""Growth: a tree of many cuts, each of which parts much data from much worth.

Data and worth are two distributions over the same space, each with a total of 1. A sifter can gain from a cut
exactly if their ratio differs between its two sides, so a part is cut where this grows most,

    (data − worth)² / (data + worth),      summed over parts (triangular discrimination)

a bounded divergence that is zero where data and worth go together and 1 where they are apart. Unlike the
gain of the finished sifter it rewards every step in the right direction, also those that pay only with the
next cut; which cuts do pay is decided afterwards (`pruning.py`).

Parts that no query meets are dropped entirely, beyond what fairness allows elsewhere: they count more by half
of their data. Such a cut lies exactly at the outermost edge of the boxes within its part. All others lie
halfway between two points, on whole axes at a whole number.

Parts are cut in the order of their gain. Points are sorted once per axis; cutting keeps the order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.sift.compiled import compiled
from tidegate.sift.covering import Bounds

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: What the data of a part that no query meets counts more; between a quarter and 1 it hardly matters.
UNASKED = 0.5
#: Gains up to here are rounding.
NO_GAIN = 1e-12


@dataclass(frozen=True, eq=False)
class Points:
    """Where data and worth lie; both add up to 1 (or to 0, where there is none)."""

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
    #: Whether some query meets the part.
    asked: NDArray[np.bool_]


def grow(
    points: Points, extents: Bounds, walls: Bounds, whole: NDArray[np.bool_], parts: int, least: float
) -> Grown:
    """At most so many parts, each with at least this much data unless no query meets one of its halves.

    `extents` are the boxes of queries within the `walls` of the domain; `whole` tells axes of whole numbers.
    """
    orders = np.argsort(points.at.T, axis=1, kind="stable")
    return Grown(
        *_grow(points.at, points.data, points.worth, orders, extents, walls, whole, max(parts, 1), least)
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
    gain, begin, end = np.zeros(nodes), np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    low, high = np.empty((nodes, len(whole))), np.empty((nodes, len(whole)))
    buffer = np.empty(len(at), np.int64)
    #: The boxes that meet each node; none where one of them covers it, as no part of it is unasked then.
    met = [np.arange(len(extents[0]))]
    low[0], high[0], end[0], count = walls[0], walls[1], len(at), 1
    parent = -1
    while True:
        # The root at first, then the two halves of what was cut.
        for node in range(max(0, count - 2), count):
            if parent >= 0:
                met.append(_met(extents, met[parent], axis[parent], cut[parent], node == count - 1))
            for point in orders[0, begin[node] : end[node]]:
                node_data[node] += data[point]
                node_worth[node] += worth[point]
            asked[node] = len(met[node]) > 0 or (parent >= 0 and asked[parent] and len(met[parent]) == 0)
            met[node], lowest, highest = _reach(extents, met[node], low[node], high[node])
            gain[node], axis[node], cut[node] = _best_cut(
                at, data, worth, orders[:, begin[node] : end[node]], lowest, highest, whole, least
            )
        parent = int(np.argmax(gain[:count]))
        if gain[parent] <= NO_GAIN or count + 2 > nodes:
            break
        gain[parent] = 0.0
        k, middle = axis[parent], 0
        for other in range(len(whole)):
            middle = _part(orders[other], begin[parent], end[parent], at[:, k], cut[parent], buffer)
        children[parent] = count, count + 1
        low[count : count + 2], high[count : count + 2] = low[parent], high[parent]
        high[count, k] = low[count + 1, k] = cut[parent]
        begin[count], end[count], begin[count + 1], end[count + 1] = begin[parent], middle, middle, end[parent]
        count += 2
    return axis[:count], cut[:count], children[:count], node_data[:count], node_worth[:count], asked[:count]


@compiled
def _met(
    extents: Bounds, boxes: NDArray[np.int64], axis: int, cut: float, above: bool
) -> NDArray[np.int64]:
    """Which of these boxes meet one half of what was cut."""
    return boxes[extents[1][boxes, axis] > cut] if above else boxes[extents[0][boxes, axis] < cut]


@compiled
def _reach(
    extents: Bounds, boxes: NDArray[np.int64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """The boxes, and how far down and up they reach; no box, and no reach, if one covers the whole part."""
    axes = len(low)
    lowest, highest = np.full(axes, np.inf), np.full(axes, -np.inf)
    for box in boxes:
        covers = True
        for k in range(axes):
            lowest[k], highest[k] = min(lowest[k], extents[0][box, k]), max(highest[k], extents[1][box, k])
            covers &= extents[0][box, k] <= low[k] and extents[1][box, k] >= high[k]
        if covers:
            return boxes[:0], np.full(axes, np.inf), np.full(axes, -np.inf)
    return boxes, lowest, highest


@compiled
def _part(
    order: NDArray[np.int64],
    begin: int,
    end: int,
    coordinates: NDArray[np.float64],
    cut: float,
    buffer: NDArray[np.int64],
) -> int:
    """Bring what lies below the cut to the front, in the same order; where the rest begins."""
    front, behind = begin, 0
    for place in range(begin, end):
        point = order[place]
        if coordinates[point] < cut:
            order[front] = point
            front += 1
        else:
            buffer[behind] = point
            behind += 1
    order[front:end] = buffer[:behind]
    return front


@compiled
def _best_cut(
    at: NDArray[np.float64],
    data: NDArray[np.float64],
    worth: NDArray[np.float64],
    orders: NDArray[np.int64],
    lowest: NDArray[np.float64],
    highest: NDArray[np.float64],
    whole: NDArray[np.bool_],
    least: float,
) -> tuple[float, int, float]:
    """Gain, axis and place of the best cut of a part; gain 0 where none is worth while."""
    all_data = all_worth = 0.0
    for point in orders[0]:
        all_data += data[point]
        all_worth += worth[point]
    before = _discrimination(all_data, all_worth)
    best_gain, best_axis, best_cut, cut = 0.0, 0, 0.0, 0.0
    for k in range(len(whole)):
        data_below = worth_below = 0.0
        for place in range(orders.shape[1] - 1):
            point = orders[k, place]
            data_below += data[point]
            worth_below += worth[point]
            below, above = at[point, k], at[orders[k, place + 1], k]
            if below == above:
                continue
            unasked = 0.0
            if below < lowest[k] <= above:
                cut, unasked = lowest[k], data_below
            elif below < highest[k] <= above:
                cut, unasked = highest[k], all_data - data_below
            if unasked < least:
                if min(data_below, all_data - data_below) < least:
                    continue
                cut = _between(below, above, whole[k])
                unasked = 0.0
            gain = (
                _discrimination(data_below, worth_below)
                + _discrimination(all_data - data_below, all_worth - worth_below)
                + UNASKED * unasked
                - before
            )
            if gain > best_gain:
                best_gain, best_axis, best_cut = gain, k, cut
    return best_gain, best_axis, best_cut


@compiled
def _between(below: float, above: float, whole: bool) -> float:
    """As `cut_points.between`: halfway, above the one and at most the other."""
    middle = below + (above - below) / 2
    if whole:
        return np.ceil(middle)
    return middle if middle > below else above


@compiled
def _discrimination(data: float, worth: float) -> float:
    total = data + worth
    return (data - worth) ** 2 / total if total > 0 else 0.0
