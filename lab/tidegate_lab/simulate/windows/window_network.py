"""A network of windows, evaluated directly: its outputs with all rows, or with some dropped on the way.

This is the exact answer for tests of every way of shedding: rows are Python values, windows are filled by
testing every window for every row, joins compare every pair. It is slow, but simple enough to verify by
reading.

With `kept` (`window/drop/kept_arrows.py`) the same evaluator drops windows as the engine does: decisions are
looked up by time on every arrow, and no row carries one.

A row that arrives behind the watermark is late and dropped first (`on_time`), whatever is shed. The random
drop is the paper's baseline: after the windows it gives a subset of the exact answer, before them it does not
(section 2.4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tidegate.errors import FlowError
from tidegate.model.times import BEGINNING_US
from tidegate.window.drop.decisions import Decisions
from tidegate.window.drop.intervals import Intervals
from tidegate.window.drop.kept_arrows import Arrow, kept_for
from tidegate.window.drop.network import DropJoinNode, DropWindowNode, Network, Node
from tidegate.window.drop.placement import DropPlacement
from tidegate.window.spec import WindowSpec


class Row(NamedTuple):
    """A row; that of a window has the window's start as its time."""

    time: int
    key: int
    value: int


@dataclass(frozen=True)
class Aggregate:
    """F(init, incr, final) of the paper: any function of the rows of a window, in any order."""

    init: Callable[[], Any]
    incr: Callable[[Any, int], Any]
    final: Callable[[Any], int]

    def over(self, values: Iterable[int]) -> int:
        state = self.init()
        for value in values:
            state = self.incr(state, value)
        return self.final(state)


COUNT = Aggregate(lambda: 0, lambda count, value: count + 1, lambda count: count)


def _nothing_dropped(row: Row) -> bool:
    return True


@dataclass(frozen=True)
class Program:
    """A network with what its boxes compute: boxes let rows pass, windows aggregate them by a key."""

    network: Network
    passes: Mapping[str, Callable[[Row], bool]] = field(default_factory=dict)
    aggregates: Mapping[str, Aggregate] = field(default_factory=dict)
    #: The group of a row, from its key; without one, all rows of a window are one group.
    groups: Mapping[str, Callable[[int], int]] = field(default_factory=dict)

    def passing(self, name: str) -> Callable[[Row], bool]:
        return self.passes.get(name, _nothing_dropped)

    def group(self, name: str, key: int) -> int:
        return self.groups[name](key) if name in self.groups else 0

    def results(self, node: DropWindowNode, start: int, members: Iterable[Row]) -> list[Row]:
        """The rows of one window, one per group."""
        by_group: dict[int, list[int]] = {}
        for row in members:
            by_group.setdefault(self.group(node.name, row.key), []).append(row.value)
        aggregate = self.aggregates.get(node.name, COUNT)
        return [Row(start, key, aggregate.over(values)) for key, values in sorted(by_group.items())]


def evaluate(
    program: Program, sources: Mapping[str, Sequence[Row]], kept: Mapping[Arrow, Intervals] | None = None
) -> dict[str, set[Row]]:
    """The rows of every output, with those left out that arrows do not let through."""
    rows: dict[str, list[Row]] = {}
    for node in program.network.nodes:
        given = [_through(rows[parent], (kept or {}).get((parent, node.name))) for parent in node.parents]
        rows[node.name] = _made(program, node, given) if given else list(sources[node.name])
    return {output.name: set(rows[output.name]) for output in program.network.outputs}


def on_time(arrivals: Iterable[Row], lateness: int) -> list[Row]:
    """Rows in order of arrival, without those that came behind the newest time less the lateness."""
    found: list[Row] = []
    watermark = BEGINNING_US
    for row in arrivals:
        if row.time >= watermark:
            found.append(row)
        watermark = max(watermark, row.time - lateness)
    return found


def drop_at_random(rows: Iterable[Row], share: float, seed: int) -> list[Row]:
    """The baseline: every row by its own coin."""
    rng = np.random.default_rng(seed)
    return [row for row in rows if rng.random() >= share]


def _through(rows: Sequence[Row], kept: Intervals | None) -> list[Row]:
    if kept is None:
        return list(rows)
    mask = kept.contain(np.array([row.time for row in rows], np.int64))
    return [row for row, passes in zip(rows, mask.tolist(), strict=True) if passes]


def _made(program: Program, node: Node, given: list[list[Row]]) -> list[Row]:
    if isinstance(node, DropWindowNode):
        return all_windows(program, node, given[0])
    if isinstance(node, DropJoinNode):
        return _joined(node, *given)
    return [row for row in given[0] if program.passing(node.name)(row)]


def _joined(node: DropJoinNode, left: list[Row], right: list[Row]) -> list[Row]:
    """Pairs of equal keys within the time; unless the join is inner, also the rows that found nobody."""
    pairs = [
        (one, other)
        for one in left
        for other in right
        if one.key == other.key and node.lower_us <= other.time - one.time <= node.upper_us
    ]
    joined = [Row(max(one.time, other.time), one.key, one.value + other.value) for one, other in pairs]
    met = {id(row) for pair in pairs for row in pair}
    return joined if node.inner else joined + [row for row in left + right if id(row) not in met]


def all_windows(program: Program, node: DropWindowNode, given: Iterable[Row]) -> list[Row]:
    """The rows of an aggregate that drops nothing, in order of time."""
    spec = time_spec(node)
    members: dict[int, list[Row]] = {}
    for row in given:
        newest = row.time - (row.time - spec.offset_us) % spec.slide_us
        for start in range(newest, row.time - spec.size_us, -spec.slide_us):
            members.setdefault(start, []).append(row)
    return [row for start, held in sorted(members.items()) for row in program.results(node, start, held)]


def time_spec(node: DropWindowNode) -> WindowSpec:
    if not isinstance(node.spec, WindowSpec):
        raise FlowError(
            "Windows of so many rows are not simulated", code="LAB_ROW_WINDOW_UNSUPPORTED", got=node.name
        )
    return node.spec


def kept_on_arrows(network: Network, drops: Mapping[DropPlacement, Decisions]) -> dict[Arrow, Intervals]:
    """The times that pass, per arrow that drops rows. All rows pass on arrows that are not listed."""
    kept: dict[Arrow, Intervals] = {}
    for drop, decisions in drops.items():
        kept |= kept_for(network, drop, dict.fromkeys(drop.outputs, Intervals(*decisions.dropped_times)))
    return kept
