"""A network whose windows are dropped as the paper does it, with marks on rows; and what these let through.

Paper: window drop, section 3. The operator stands at the points of each drop (`window/drop/placement.py`),
and every box and aggregate behind it handles marked rows (`window_marks.py`).

Guarantee: on every arrow, exactly the rows come along that `let_through` names. For a kept logical window T
that is [T, T + size) behind the operator, and shorter by ω − 1 behind each aggregate; each of these rows is
the exact one. So looking decisions up by time gives the same results, and needs no marks. Where several
outputs share a drop, the paper's size is that of the longest branch, and another one may let a few windows
more through than were decided to be kept; `window/drop/kept_arrows.py` keeps to the decisions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tidegate.model.times import BEGINNING_US, END_US
from tidegate.window.drop.decisions import Decisions
from tidegate.window.drop.intervals import Intervals, always, merged
from tidegate.window.drop.kept_arrows import Arrow
from tidegate.window.drop.network import DropSourceNode, DropWindowNode, Network, Node
from tidegate.window.drop.placement import DropPlacement
from tidegate_lab.simulate.windows.window_marks import Marked, aggregate, drop_windows, pass_box
from tidegate_lab.simulate.windows.window_network import Program, Row, all_windows, time_spec


def evaluate_marked(
    program: Program,
    sources: Mapping[str, Sequence[Row]],
    drops: Mapping[DropPlacement, Decisions],
    *,
    as_printed: bool = False,
) -> dict[str, set[Row]]:
    """The rows of every output, with windows dropped at the points of these drops. Joins know no marks."""
    at = {
        (point.parent, point.child): (point.window, decisions)
        for drop, decisions in drops.items()
        for point in drop.points
    }
    behind = {(point.parent, point.child) for drop in drops for point in drop.behind}
    rows: dict[str, list[Marked]] = {}
    for node in program.network.nodes:
        if isinstance(node, DropSourceNode):
            rows[node.name] = [Marked(row.time, row) for row in sorted(sources[node.name])]
            continue
        arrow = (node.parents[0], node.name)
        given = rows[arrow[0]]
        if arrow in at:
            given = drop_windows(_real(given), *at[arrow])
        if not isinstance(node, DropWindowNode):
            rows[node.name] = list(pass_box(given, program, node.name))
        elif arrow in behind:
            rows[node.name] = aggregate(given, program, node, as_printed=as_printed)
        else:
            rows[node.name] = [Marked(row.time, row) for row in all_windows(program, node, _real(given))]
    return {output.name: set(_real(rows[output.name])) for output in program.network.outputs}


def let_through(network: Network, drops: Mapping[DropPlacement, Decisions]) -> dict[Arrow, Intervals]:
    """Per arrow with fewer rows: the times that pass by the paper's marks."""
    found: dict[Arrow, Intervals] = {}
    for drop, decisions in drops.items():
        for point in drop.points:
            child = network.by_name[point.child]
            _spread(network, point.parent, child, point.window.size_us, decisions, found)
    return found


def _spread(
    network: Network, parent: str, child: Node, size: int, decisions: Decisions, found: dict[Arrow, Intervals]
) -> None:
    found[parent, child.name] = _ranges(decisions, size)
    size -= time_spec(child).size_us - 1 if isinstance(child, DropWindowNode) else 0
    for behind in network.children[child.name]:
        _spread(network, child.name, behind, size, decisions, found)


def _ranges(decisions: Decisions, size: int) -> Intervals:
    """[T, T + size) of all kept windows T.

    Behind the last aggregate a size may be less than a slide; then no row lies between two kept windows.
    """
    first, end = decisions.dropped_times
    if not first.size:
        return always()
    low = np.concatenate(([BEGINNING_US], end))
    high = np.concatenate((first - decisions.slide_us + size, [END_US]))
    return merged(low, high)


def _real(rows: Sequence[Marked]) -> list[Row]:
    return [each.row for each in rows if each.row is not None]
