"""Determines which rows pass along each arrow of a network: decisions as intervals of time.

A drop applies at its points and on every arrow behind them (`placement.py`). Each arrow passes exactly the
rows that kept windows of the outputs behind it need. In front of the first window that is the early drop;
between two windows it selects the inner windows to compute; at an output it selects the results.

    rows ──▶ window ──▶ window ──▶ output
         ▲           ▲          ▲
         needed times, by source_range.py, of one set of decisions

Guarantee: the results are exactly those results of the exact answer whose windows are kept.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.window.drop.early_drop import kept_beside
from tidegate.window.drop.intervals import Intervals, union
from tidegate.window.drop.network import Network
from tidegate.window.drop.placement import DropPlacement

#: Parent and child.
Arrow = tuple[str, str]


def kept_for(
    network: Network, drop: DropPlacement, dropped: Mapping[str, Intervals]
) -> dict[Arrow, Intervals]:
    """The times that pass, per arrow of a drop. `dropped`: by output, the starts of windows that it drops."""
    kept: dict[Arrow, Intervals] = {}
    for point in drop.behind:
        arrow = point.parent, point.child
        paths = {output: list(network.paths_by(output, *arrow)) for output in drop.outputs}
        needed = [kept_beside(dropped[one], some, drop.slide_us) for one, some in paths.items() if some]
        kept[arrow] = union(needed)
    return kept
