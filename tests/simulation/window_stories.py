"""Random networks of windows, what they compute, rows for them, and decisions: for tests of window drop.

All from one seed: a failure is a number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tidegate.window.drop.decisions import Decisions
from tidegate.window.drop.network import (
    DropJoinNode,
    DropOutputNode,
    DropSourceNode,
    DropStepNode,
    DropWindowNode,
    Network,
    Node,
)
from tidegate.window.drop.placement import DropPlacement, place
from tidegate.window.drop.window_drop import DropState, WindowDrop, share_max
from tidegate.window.spec import WindowSpec
from tidegate_lab.simulate.windows.window_network import COUNT, Aggregate, Program, Row

#: Marks need times above zero.
BEGIN, LENGTH = 1_000, 150

SUM = Aggregate(lambda: 0, lambda total, value: total + value, lambda total: total)
MOST = Aggregate(lambda: -1, max, lambda most: most)
#: A user's own: the median, which no partial result of a part of the rows could give.
MEDIAN = Aggregate(list, lambda seen, value: [*seen, value], lambda seen: sorted(seen)[len(seen) // 2])
AGGREGATES = (COUNT, SUM, MOST, MEDIAN)


@dataclass(frozen=True)
class Story:
    """A program, rows in order of arrival, and what was decided about its windows, call by call."""

    program: Program
    arrivals: dict[str, list[Row]]
    told: dict[DropPlacement, list[DropState]]

    @property
    def network(self) -> Network:
        return self.program.network

    @property
    def drops(self) -> dict[DropPlacement, Decisions]:
        return self.decided(-1)

    def decided(self, call: int) -> dict[DropPlacement, Decisions]:
        return {drop: states[call].decisions for drop, states in self.told.items()}


def story(seed: int, *, calls: int = 4, offsets: bool = False) -> Story:
    """One source, windows up to four deep, up to three over one."""
    rng = np.random.default_rng(seed)
    grower = _Grower(rng, offsets)
    grower.window(grower.filtered(grower.add(DropSourceNode("rows"))), 1)
    return _story(rng, grower.program(), calls, rows=60, keys=3)


def joined_story(seed: int, *, offsets: bool = False) -> Story:
    """Windows over the pairs of two sources, and perhaps over one source alone."""
    rng = np.random.default_rng(seed)
    grower = _Grower(rng, offsets)
    left, right = grower.add(DropSourceNode("left")), grower.add(DropSourceNode("right"))
    (lower, upper), inner = sorted((grower.number(-9, 9), grower.number(-9, 9))), grower.one_in(2)
    grower.add(DropJoinNode("join", grower.filtered(left), right, lower, upper, inner=inner))
    grower.window("join", 3)
    if grower.one_in(2):
        grower.window(left, 3)
    return _story(rng, grower.program(), 4, rows=130, keys=2)


def rejecting(modulus: int, rest: int) -> Callable[[Row], bool]:
    return lambda row: row.value % modulus != rest


def grouping(groups: int) -> Callable[[int], int]:
    return lambda key: key % groups


class _Grower:
    """Grows a network downwards from its sources, drawing what it computes on the way."""

    def __init__(self, rng: np.random.Generator, offsets: bool) -> None:
        self.rng, self.offsets = rng, offsets
        self.nodes: list[Node] = []
        self.passes: dict[str, Callable[[Row], bool]] = {}
        self.aggregates: dict[str, Aggregate] = {}
        self.groups: dict[str, Callable[[int], int]] = {}

    def program(self) -> Program:
        return Program(Network(tuple(self.nodes)), self.passes, self.aggregates, self.groups)

    def number(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def one_in(self, times: int) -> bool:
        return self.number(1, times) == 1

    def add(self, node: Node) -> str:
        self.nodes.append(node)
        return node.name

    def filtered(self, parent: str) -> str:
        if self.one_in(2):
            return parent
        box = self.add(DropStepNode(f"box {len(self.nodes)}", parent))
        modulus = self.number(2, 5)
        self.passes[box] = rejecting(modulus, self.number(0, modulus - 1))
        return box

    def window(self, parent: str, depth: int) -> None:
        slide = (1, 2, 3, 4, 6)[self.number(0, 4)]
        spec = WindowSpec(slide + self.number(0, 6), slide, self.number(-9, 9) if self.offsets else 0)
        above = self.filtered(parent)
        window = self.add(DropWindowNode(f"window {len(self.nodes)}", above, spec))
        self.aggregates[window] = AGGREGATES[self.number(0, 3)]
        if self.one_in(2):
            self.groups[window] = grouping(self.number(1, 3))
        children = self.number(0, 3 if depth == 1 else 2) if depth < 4 else 0
        for _ in range(children):
            self.window(window, depth + 1)
        if not children or self.one_in(4):
            behind = self.filtered(window)
            self.add(DropOutputNode(f"out {len(self.nodes)}", behind, self.number(1, 40)))


def _story(rng: np.random.Generator, program: Program, calls: int, *, rows: int, keys: int) -> Story:
    sources = [node.name for node in program.network.nodes if isinstance(node, DropSourceNode)]
    arrivals = {name: _arrivals(rng, rows, keys) for name in sources}
    return Story(program, arrivals, {drop: _told(rng, drop, calls) for drop in place(program.network)})


def _arrivals(rng: np.random.Generator, rows: int, keys: int) -> list[Row]:
    """Rows of a few keys, mostly in order; some stretches of time are empty."""
    times = np.sort(rng.integers(BEGIN, BEGIN + LENGTH, rng.integers(0, rows + 1)))
    times = times[(times // 10) % 7 != rng.integers(0, 14)]
    order = np.argsort(times + rng.integers(0, rng.integers(1, 30), times.size), kind="stable")
    columns = times, rng.integers(0, keys, times.size), rng.integers(0, 10, times.size)
    return [Row(*(int(column[k]) for column in columns)) for k in order]


def _told(rng: np.random.Generator, drop: DropPlacement, calls: int) -> list[DropState]:
    """A drop, decided from near the first row on to near the last, with another p in each call."""
    machine = WindowDrop(drop.slide_us, drop.max_gap, int(rng.integers(0, 1_000)), offset_us=drop.offset_us)
    states = [machine.begin(BEGIN + int(rng.integers(-40, 20)))]
    for call in range(1, calls + 1):
        p = float(rng.random()) * share_max(drop.max_gap)
        states.append(machine.decide(states[-1], BEGIN + LENGTH * call // calls, p))
    return states
