"""Which rows pass along each arrow of a network: decisions, turned into stretches of time.

A drop works at its points and on every arrow behind them (`placement.py`). Each arrow lets the rows through
that kept windows of the outputs behind it need, and no others: in front of the first window that is the early
drop, between two windows it says which inner windows are computed, and at an output which results come out.

    rows ──▶ window ──▶ window ──▶ output
         ▲           ▲          ▲
         needed times, by source_range.py, of one set of decisions

Guarantee: results are those of the exact answer whose windows are kept, all of them and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.window.drop.decisions import Decisions
from tidegate.window.drop.early_drop import kept_times
from tidegate.window.drop.intervals import Intervals
from tidegate.window.drop.network import Network
from tidegate.window.drop.placement import DropPlacement

#: Parent and child.
Arrow = tuple[str, str]


def kept_on_arrows(network: Network, drops: Mapping[DropPlacement, Decisions]) -> dict[Arrow, Intervals]:
    """Per arrow with fewer rows: the times that pass. On arrows that are not named, all do."""
    kept: dict[Arrow, Intervals] = {}
    for drop, decisions in drops.items():
        for point in drop.behind:
            arrow = point.parent, point.child
            paths = [path for output in drop.outputs for path in network.paths_by(output, *arrow)]
            kept[arrow] = kept_times(decisions, paths)
    return kept
