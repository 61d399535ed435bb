"""Placement: where in a network rows are dropped, and which outputs decide together.

Paper: window drop, sections 3.2 and 3.5: a drop belongs at the earliest point where it saves work without
breaking a 𝓑. From each output upwards, a drop crosses a node as long as no kept window needs some of the
rows that leave the node: 𝓑 ≥ ⌊ω / δ⌋ for the logical window of table 2 at that place. There the node has
less work; further up it would not.

    source ─────▶ step ────▶ window ─┬─▶ window ─▶ output a          one decision for a and b
         ▲                           └─▶ window ─▶ output b          (their slides' least common multiple)
         └ rows are dropped here

- Outputs that show the same windows decide together, so a decision is one about windows of an operator.
- At a split, the drops of all children become one if that one still drops rows there, and then these
  outputs share every decision. Otherwise each child has its own drop behind the split.
- A drop does not cross count windows: their contents depend on rows that would be missing. Nor does it
  cross a split to an output that must be complete.
- A join is crossed to both sides. A row is dropped in front of it only if no pair that it can form falls
  into a kept window.
- A drop by groups crosses only windows with the same groups, and shares decisions only with drops of these.

Guarantee: every output is decided by one drop, whatever it shares, and that drop never leaves out more
windows in a row than the output's own `max_gap`.

Where we differ: decisions that go by time alone hold for all groups, so windows that group differently are
homogeneous for them. An output without a time window above it (or with a join in between) has no windows that
could go missing; it has no drop, and is only ever shut off (`control/goal/shed_options.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tidegate.window.drop.drop_window import DropWindow, before, before_join, result, shared
from tidegate.window.drop.network import (
    DropJoinNode,
    DropOutputNode,
    DropSourceNode,
    DropWindowNode,
    Network,
    Node,
    time_window,
)


@dataclass(frozen=True)
class Point:
    """Rows that leave `parent` for `child` are dropped, in logical windows of this shape."""

    parent: str
    child: str
    window: DropWindow


@dataclass(frozen=True)
class DropPlacement:
    """One drop: the outputs it decides for, its slide and gap, and where it drops rows."""

    outputs: tuple[str, ...]
    slide_us: int
    max_gap: int
    #: The earliest points, where rows that no output needs are dropped.
    points: tuple[Point, ...]
    #: These and all arrows behind them: each has fewer rows.
    behind: tuple[Point, ...]
    offset_us: int = 0
    #: Which groups it decides about by themselves; None: about all alike.
    groups: str | None = None


def place(network: Network) -> tuple[DropPlacement, ...]:
    """The drops of a network, in the order of its outputs; outputs that cannot be shed have no drop."""
    own = {output.name: result_window(network, output) for output in network.outputs}
    shown: dict[str, set[str]] = {}
    for name, window in own.items():
        if window is not None:
            shown.setdefault(network.shown_by(name).name, set()).add(name)
    groups = [frozenset(names) for names in shown.values()]
    while True:
        climb = _Climb(network, [_common(network, own, group) for group in groups])
        if climb.joining is None:
            return climb.placements()
        groups = [group for group in groups if not group <= climb.joining] + [climb.joining]


def result_window(network: Network, output: DropOutputNode) -> DropWindow | None:
    """The results of an output, as windows that may be dropped; None where there are none."""
    if output.max_gap is None:
        return None
    spec = network.result_spec(output.name)
    return None if spec is None else result(spec, output.max_gap)


@dataclass(frozen=True)
class _Want:
    """What a child needs of its input rows: the outputs behind it, and the logical window."""

    child: str
    group: frozenset[str]
    window: DropWindow
    #: Which groups its drop distinguishes; None: none.
    groups: str | None


def _common(
    network: Network, own: Mapping[str, DropWindow | None], group: frozenset[str]
) -> dict[str, _Want]:
    """The results of outputs that decide together, each in the windows common to all of them."""
    windows = {name: window for name, window in own.items() if window is not None and name in group}
    common = shared(list(windows.values()))
    return {
        name: _Want(name, group, replace(common, size_us=window.size_in(common)), network.groups_of(name))
        for name, window in windows.items()
    }


class _Climb:
    """One pass up through a network: where drops end, or which outputs should decide together."""

    def __init__(self, network: Network, groups: Sequence[Mapping[str, _Want]]) -> None:
        self.network = network
        self.joining: frozenset[str] | None = None
        #: All arrows that a drop reached, and whether it ended there.
        self._reached: list[tuple[frozenset[str], Point, bool]] = []
        self._results = {name: want for group in groups for name, want in group.items()}
        #: Per node, what each of its children needs; None for a child that needs all rows.
        self._wants: dict[str, list[_Want | None]] = {node.name: [] for node in network.nodes}
        for node in reversed(network.nodes):
            self._visit(node)

    def placements(self) -> tuple[DropPlacement, ...]:
        order = [output.name for output in self.network.outputs]
        drops = []
        for group in {group for group, _, _ in self._reached}:
            reached = [(point, ended) for owner, point, ended in reversed(self._reached) if owner == group]
            window, outputs = reached[0][0].window, tuple(sorted(group, key=order.index))
            ends = tuple(point for point, ended in reached if ended)
            behind = tuple(point for point, _ in reached)
            shape, groups = (window.slide_us, window.max_gap), self.network.groups_of(outputs[0])
            drops.append(DropPlacement(outputs, *shape, ends, behind, window.offset_us, groups))
        return tuple(sorted(drops, key=lambda drop: order.index(drop.outputs[0])))

    def _visit(self, node: Node) -> None:
        """Move the drops behind a node in front of it, or end them there."""
        if isinstance(node, DropOutputNode):
            self._wants[node.parent].append(self._results.get(node.name))
            return
        wants = [want for want in self._wants[node.name] if want is not None]
        crossing = self._together(node, wants) if len(wants) == len(self._wants[node.name]) else None
        ends = crossing is None or not _crossed(node, crossing.groups) or not crossing.window.drops_rows
        for want in wants:
            window = want.window if crossing is None else crossing.window
            self._reached.append((want.group, Point(node.name, want.child, window), ends))
        crossing = None if ends else crossing
        for side, parent in enumerate(node.parents):
            in_front = crossing and replace(crossing, window=_in_front_of(node, side, crossing.window))
            self._wants[parent].append(in_front)

    def _together(self, node: Node, wants: Sequence[_Want]) -> _Want | None:
        """The common need of all children, if one drop can serve them."""
        if len({want.groups for want in wants}) != 1:
            return None
        groups = {want.group for want in wants}
        common = shared([want.window for want in wants])
        if len(groups) == 1:
            return _Want(node.name, wants[0].group, common, wants[0].groups)
        if common.drops_rows and self.joining is None:
            self.joining = frozenset[str]().union(*groups)
        return None


def _crossed(node: Node, groups: str | None) -> bool:
    """True if a drop (by these groups) in front of this node has the same effect as behind it."""
    if groups is not None and isinstance(node, DropWindowNode | DropJoinNode):
        return isinstance(node, DropWindowNode) and node.groups == groups
    counts_rows = isinstance(node, DropWindowNode) and time_window(node) is None
    return not isinstance(node, DropSourceNode) and not counts_rows


def _in_front_of(node: Node, side: int, behind: DropWindow) -> DropWindow:
    if isinstance(node, DropJoinNode):
        reach = node.reach(side)
        return before_join(reach.back_us, reach.ahead_us, behind)
    spec = time_window(node)
    return behind if spec is None else before(spec, behind)
