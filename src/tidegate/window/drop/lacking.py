"""Which results lack rows, wherever rows were dropped: carried forward from arrow to arrow of a network.

`source_range.py` goes from wanted results up to the rows that they need. This is the way back:

    rows dropped            ▓▓▓▓▓▓
    windows that lack   [───────)[───────)[───────)          every window that touches them
    their starts        ████████████████████                 dropped on every arrow behind the window

Guarantee: a result that is in no gap of its arrow has all its rows, in any network with these operators; it
does not matter which outputs there are, and which windows were wanted when rows were dropped. Where other
groups are told apart behind a window than in it, what some groups lack counts as missing for all. Limit:
between two windows that lack rows, one too short to hold any result of its parent counts as lacking, too.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tidegate.model.times import BEGINNING_US, END_US, LEFT, RIGHT
from tidegate.window.drop.cohorts import as_missing
from tidegate.window.drop.intervals import NOTHING, Intervals, merged, union
from tidegate.window.drop.kept_arrows import Arrow
from tidegate.window.drop.network import DropJoinNode, DropWindowNode, Network, Node, time_window
from tidegate.window.spec import WindowSpec


def closed_over(network: Network, gaps: Mapping[Arrow, Intervals]) -> dict[Arrow, Intervals]:
    """These gaps, and on every arrow the results of its parent that lack rows because of them.

    Behind a window, a gap goes from the first start in it to the last, so that it touches no window which
    contains none of them.
    """
    found: dict[Arrow, Intervals] = {}
    for node in network.nodes:
        lacking, spec = _lacking(node, found), network.result_spec(node.name)
        groups = network.groups_of(node.name)
        for child in network.children[node.name]:
            arrow = node.name, child.name
            same = network.groups_on(*arrow) == groups
            cohorts = network.cohorts_of(node.name), network.cohorts_on(*arrow)
            mine = lacking if same or not lacking.low.size else as_missing(lacking, *cohorts)
            gap = union([mine, gaps.get(arrow, NOTHING)])
            if spec is not None:
                first, beyond = starts_in(spec, gap)
                gap = merged(spec.start(first), spec.start(beyond - 1) + 1)
            if gap.low.size:
                found[arrow] = gap
    return found


def starts_in(spec: WindowSpec, times: Intervals) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """By interval in which some window starts: the first of them, and the first one beyond."""
    first, beyond = spec.starting(_within(times.low), _within(times.high))
    return first[first < beyond], beyond[first < beyond]


def reach_us(node: DropJoinNode) -> int:
    """How far a row and the results that need it are apart at the most."""
    sides = [node.reach(side) for side in (LEFT, RIGHT)]
    return max(max(abs(one.back_us), abs(one.ahead_us)) for one in sides)


def _lacking(node: Node, gaps: Mapping[Arrow, Intervals]) -> Intervals:
    """Times of the results of a node that lack rows."""
    sides = [
        _touched(node, side, gaps[parent, node.name])
        for side, parent in enumerate(node.parents)
        if (parent, node.name) in gaps
    ]
    return union(sides) if sides else NOTHING


def _touched(node: Node, side: int, gaps: Intervals) -> Intervals:
    low, high = gaps.low, gaps.high
    spec = time_window(node)
    if spec is not None:
        return merged(_within(low) - (spec.size_us - 1), high)
    if isinstance(node, DropJoinNode):
        # Where a result at t needs rows from t - back to t + ahead.
        reach = node.reach(side)
        return merged(_within(low) - reach.ahead_us, _within(high) + reach.back_us)
    if isinstance(node, DropWindowNode):
        # One row less moves all later rows of a group into other windows of rows.
        return Intervals(low[:1], np.full(1, END_US))
    return gaps


def _within(times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Times to which the size of a window or the reach of a join can be added."""
    return np.clip(times, BEGINNING_US // 2, END_US // 2)
