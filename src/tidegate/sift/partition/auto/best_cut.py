"""The best cut of a part: where the distributions of data and worth differ most.

Data and worth are two distributions over the same space, each with a total of 1. A sifter gains from a cut
if and only if their ratio differs between its two sides, so a part is cut where this grows most,

    (data − worth)² / (data + worth),      summed over parts (triangular discrimination)

a bounded divergence that is zero where data and worth are proportional and, over the whole space, 2 where
they are disjoint. Unlike the gain of the finished sifter it rewards every step in the right direction,
including those that gain only with the next cut.

A part that no query intersects is dropped entirely, beyond what fairness allows elsewhere: it gets a bonus
of half of its data. Such a cut lies exactly at the outermost edge of the boxes within its part. All others
lie halfway between two points, on integer axes at an integer, and leave enough data on both sides.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegate.kernels import compiled
from tidegate.sift.construct.covering import Bounds

#: Bonus for the data of a part that no query intersects; any value from a quarter to 1 works about as well.
UNASKED = 0.5


@compiled
def best_cut(
    points: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
    orders: NDArray[np.int64],
    totals: tuple[float, float],
    reach: Bounds,
    whole: NDArray[np.bool_],
    least: float,
) -> tuple[float, int, float]:
    """Gain, axis and place of the best cut; gain 0 where there is none.

    `points` are places, data and worth of all points; `orders` those of the part, sorted along each axis;
    `totals` its data and worth; `reach` the lowest and highest bounds of its boxes; `least` the data that a
    side needs.
    """
    at, data, worth = points
    all_data, all_worth = totals
    before = _discrimination(all_data, all_worth)
    best_gain, best_axis, best_place, place = 0.0, 0, 0.0, 0.0
    for k in range(len(whole)):
        lowest, highest = reach[0][k], reach[1][k]
        data_below = worth_below = 0.0
        for rank in range(orders.shape[1] - 1):
            point = orders[k, rank]
            data_below += data[point]
            worth_below += worth[point]
            below, above = at[point, k], at[orders[k, rank + 1], k]
            if below == above:
                continue
            data_above, unasked = all_data - data_below, 0.0
            if below < lowest <= above:
                place, unasked = lowest, data_below
            elif below < highest <= above:
                place, unasked = highest, data_above
            if unasked == 0 or unasked < least:
                if min(data_below, data_above) < least:
                    continue
                place, unasked = _between(below, above, whole[k]), 0.0
            gain = (
                _discrimination(data_below, worth_below)
                + _discrimination(data_above, all_worth - worth_below)
                + UNASKED * unasked
                - before
            )
            if gain > best_gain:
                best_gain, best_axis, best_place = gain, k, place
    return best_gain, best_axis, best_place


@compiled
def _between(below: float, above: float, whole: bool) -> float:
    """As `cut_tree.between`: halfway, greater than `below` and at most `above`."""
    middle = below + (above - below) / 2
    if whole:
        return float(np.ceil(middle))
    return middle if middle > below else above


@compiled
def _discrimination(data: float, worth: float) -> float:
    total = data + worth
    return (data - worth) ** 2 / total if total > 0 else 0.0
