"""Computes the drop ratio at which the work fits, and which outputs to shut off when no ratio is enough.

Paper: window drop, section 2.3: a 𝓑 bounds the loss of an output, p ≤ 𝓑 / (𝓑 + 1). Under heavy load no p
may be enough within all bounds; then the most costly queries whose bounds cannot be met are shut off as a
whole.

One p holds for all drops of a network, each limited by its own bound. The work of a node falls with the rows
that reach it: `window/drop/drop_cost.py`, for the logical window of the arrow that they come by.

Where we differ: a running query weighs these drops against all other shed options
(`control/goal/shed_options.py`). This is the paper's own rule, as a reference.

Guarantee: the least such p, and the fewest outputs shut off: the one with the most work of its own first,
and none once the rest fits. Outputs that allow no gap are never shut off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidegate.window.drop.drop_cost import dropped_rows
from tidegate.window.drop.network import Network, Node
from tidegate.window.drop.placement import DropPlacement, place
from tidegate.window.drop.window_drop import share_max

#: By name of a node: what it does in a second while nothing is dropped, in any unit; no entry: nothing.
NodeWork = Mapping[str, float]
#: Halvings of the range in which p is searched: far finer than any measured cost.
_HALVINGS = 30


@dataclass(frozen=True)
class Admission:
    """The remaining network, its drops with the p of each, and the outputs shut off, most costly first."""

    network: Network
    drops: tuple[tuple[DropPlacement, float], ...]
    shut: tuple[str, ...]
    #: The remaining work.
    work: float
    #: True if the remaining work fits; False where nothing more may be shut off.
    fits: bool


def admit(network: Network, work: NodeWork, capacity: float) -> Admission:
    """The least loss with which the work of a network fits into a capacity."""
    shut: tuple[str, ...] = ()
    while True:
        left = network.without(frozenset(shut))
        placements = place(left)
        most = max((share_max(drop.max_gap) for drop in placements), default=0.0)
        enough = work_left(left, work, placements, most) <= capacity
        may_go = [output.name for output in left.outputs if output.max_gap is not None]
        if enough or not may_go:
            p = _least_p(left, work, placements, most, capacity) if enough else most
            drops = tuple((drop, min(p, share_max(drop.max_gap))) for drop in placements)
            remaining = work_left(left, work, placements, p)
            return Admission(left, drops, shut, remaining, remaining <= capacity)
        shut = (*shut, max(may_go, key=lambda name: _own_work(left, work, name)))


def work_left(network: Network, work: NodeWork, placements: Sequence[DropPlacement], p: float) -> float:
    """The work of all nodes when every drop takes the share p, or as much as it may."""
    kept: dict[tuple[str, str], float] = {}
    for drop in placements:
        share = min(p, share_max(drop.max_gap))
        for point in drop.behind:
            grid = network.grid_us(point.parent)
            kept[point.parent, point.child] = 1 - share * min(1.0, dropped_rows(point.window, grid))
    return sum(work.get(node.name, 0.0) * _kept_of(node, kept) for node in network.nodes)


def _kept_of(node: Node, kept: dict[tuple[str, str], float]) -> float:
    if not node.parents:
        return 1.0
    return sum(kept.get((parent, node.name), 1.0) for parent in node.parents) / len(node.parents)


def _least_p(
    network: Network, work: NodeWork, placements: Sequence[DropPlacement], most: float, capacity: float
) -> float:
    if work_left(network, work, placements, 0.0) <= capacity:
        return 0.0
    too_little, enough = 0.0, most
    for _ in range(_HALVINGS):
        middle = (too_little + enough) / 2
        if work_left(network, work, placements, middle) <= capacity:
            enough = middle
        else:
            too_little = middle
    return enough


def _own_work(network: Network, work: NodeWork, output: str) -> float:
    """What is saved when an output is shut off: the work that is done for nobody else."""
    left = network.without(frozenset({output}))
    kept = {node.name for node in left.nodes}
    return sum(work.get(node.name, 0.0) for node in network.nodes if node.name not in kept)
