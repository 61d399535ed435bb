"""A network of delays: what a query costs when windows are dropped, counted and not timed.

Paper: window drop, section 4: boxes that do nothing but keep the processor busy for a fixed time per row. One
source brings a row per unit of time, windows make a row per slide, and all other boxes pass what they get:

    work = Σ over arrows: rows that pass × cost of the node they go to

A rate of (1 + excess) times what the processor can do undropped fits once the work per row has fallen to
1 / (1 + excess) of the full one. The least drop with which it does is what the paper's figures show.

Guarantee: rows are counted exactly, by the decisions and stretches of time of `window/`; the same seed gives
the same count.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tidegate.window.drop.decisions import Decisions
from tidegate.window.drop.intervals import Intervals
from tidegate.window.drop.kept_arrows import Arrow
from tidegate.window.drop.network import DropWindowNode, Network
from tidegate.window.drop.placement import DropPlacement
from tidegate.window.drop.window_drop import WindowDrop, share_max
from tidegate_lab.simulate.windows.window_network import kept_on_arrows

#: Halvings of the range in which p is searched.
_HALVINGS = 16


@dataclass(frozen=True)
class Delays:
    """A network, what each of its nodes costs per row, and for how long rows come."""

    network: Network
    costs: Mapping[str, float]
    length: int

    @cached_property
    def arrows(self) -> tuple[Arrow, ...]:
        return tuple((parent, node.name) for node in self.network.nodes for parent in node.parents)

    @cached_property
    def full(self) -> float:
        return self.work({})

    def rows(self, arrow: Arrow, kept: Mapping[Arrow, Intervals]) -> int:
        """Rows that come by an arrow: times are multiples of what lies between two of them."""
        grid = self.network.grid_us(arrow[0])
        if arrow not in kept:
            return -(-self.length // grid)
        part = kept[arrow].overlap(0, self.length)
        return int((-(-part.high // grid) - -(-part.low // grid)).sum())

    def work(self, kept: Mapping[Arrow, Intervals]) -> float:
        return sum(self.rows(arrow, kept) * self.costs.get(arrow[1], 0.0) for arrow in self.arrows)

    def missing(self, kept: Mapping[Arrow, Intervals]) -> float:
        """The share of results that does not come out, on average over the outputs."""
        ends = [(output.parent, output.name) for output in self.network.outputs]
        return float(np.mean([1 - self.rows(arrow, kept) / self.rows(arrow, {}) for arrow in ends]))

    def behind_windows(self) -> float:
        """The work behind the last windows, all that a random drop there could save."""
        return sum(self.rows(a, {}) * self.costs.get(a[1], 0.0) for a in self.arrows if self._last(a[0]))

    def _last(self, name: str) -> bool:
        """Whether rows that leave this node go through no window any more, and have been through one."""
        below = [n for n in self.network.nodes if name in self.network.above(n.name) and n.name != name]
        above = self.network.above(name)
        return not any(isinstance(n, DropWindowNode) for n in below) and any(
            isinstance(self.network.by_name[n], DropWindowNode) for n in above
        )


@dataclass(frozen=True)
class Loss:
    """The least drop that is enough: its p, and the share of results that are missing with it."""

    p: float
    missing: float


def least_window_drop(
    delays: Delays, drops: Mapping[DropPlacement, Collection[Arrow]], excess: float, seed: int
) -> Loss | None:
    """The least p, for all drops alike, that makes room for an excess; None where the gaps allow none.

    Each drop works on the arrows that are given with it: those behind the place where it was put.
    """
    decide = _deciding(delays, drops, seed)
    room = delays.full / (1 + excess)
    too_little, enough = 0.0, max(share_max(drop.max_gap) for drop in drops)
    if delays.work(decide(enough)) > room:
        return None
    if excess <= 0:
        return Loss(0.0, 0.0)
    for _ in range(_HALVINGS):
        p = (too_little + enough) / 2
        if delays.work(decide(p)) <= room:
            enough = p
        else:
            too_little = p
    return Loss(enough, delays.missing(decide(enough)))


def least_random_drop(delays: Delays, excess: float) -> Loss | None:
    """The same with results dropped at random behind the windows."""
    p = (delays.full - delays.full / (1 + excess)) / delays.behind_windows()
    return Loss(p, p) if p <= 1 else None


def _deciding(
    delays: Delays, drops: Mapping[DropPlacement, Collection[Arrow]], seed: int
) -> Callable[[float], dict[Arrow, Intervals]]:
    def kept(p: float) -> dict[Arrow, Intervals]:
        found: dict[Arrow, Intervals] = {}
        for number, (drop, arrows) in enumerate(drops.items()):
            decisions = _decisions(drop, delays.length, min(p, share_max(drop.max_gap)), seed + 1000 * number)
            on_all = kept_on_arrows(delays.network, {drop: decisions})
            found |= {arrow: on_all[arrow] for arrow in arrows}
        return found

    return kept


def _decisions(drop: DropPlacement, length: int, p: float, seed: int) -> Decisions:
    machine = WindowDrop(drop.slide_us, drop.max_gap, seed, offset_us=drop.offset_us)
    return machine.decide(machine.begin(0), length, p).decisions


def all_arrows(drop: DropPlacement) -> frozenset[Arrow]:
    """Where a drop works that stands where placement put it."""
    return frozenset((point.parent, point.child) for point in drop.behind)


def arrows_behind(network: Network, drop: DropPlacement, node: str) -> frozenset[Arrow]:
    """Where it works if it is put further down, behind a node."""
    return frozenset(arrow for arrow in all_arrows(drop) if node in network.above(arrow[0]))
