"""Whatever changes between two runs: every window that comes out is exact, every other one is reported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.simulation.restarting import Operators, Restarting, Row, cell_of

from tidegate.api.goal import Shed
from tidegate.control.actuators import window_dropping
from tidegate.control.actuators.window_dropping import DropSettings, drop_point
from tidegate.control.watermarks import ClockSettings
from tidegate.window.drop.network import DropJoinNode, DropOutputNode, DropSourceNode, DropWindowNode, Network
from tidegate.window.drop.placement import result_window
from tidegate.window.spec import WindowSpec

#: Event time that a batch brings, and its rows.
PACE_US, ROWS = 40, 25


def flow(rng: np.random.Generator) -> Operators:
    """Windows over a stream, beside and behind each other, or over the pairs of two streams."""

    def window(name: str, parent: str, least: int = 0) -> DropWindowNode:
        slide = int(rng.choice([5, 10, 12, 30]))
        size = max(least, slide + int(rng.choice([0, 0, 5, 30])))
        spec = WindowSpec(size, slide, int(rng.integers(-9, 9)))
        return DropWindowNode(
            name, parent, spec, tuple(rng.permutation(["cell", "half"])[: rng.integers(0, 2)])
        )

    kind = int(rng.integers(0, 4))
    rows = DropSourceNode("rows")
    if kind == 0:
        return [rows, window("w", "rows")]
    if kind == 1:
        # Every window of windows holds one: those that never can count as missing beside one that is.
        return [rows, window("w", "rows"), window("outer", "w", least=30)]
    if kind == 2:
        return [rows, window("w", "rows"), window("beside", "rows")]
    lower = int(rng.integers(-15, 10))
    join = DropJoinNode(
        "join", "rows", "more", lower, lower + int(rng.integers(0, 20)), bool(rng.integers(2))
    )
    return [rows, DropSourceNode("more"), join, window("w", "join")]


@dataclass(frozen=True)
class Run:
    """The settings of one run, and how many batches it has."""

    dropping: DropSettings
    clocks: Mapping[str, ClockSettings]
    batches: int


def with_groups(rng: np.random.Generator, nodes: Operators) -> Operators:
    """The same flow, in which some windows may be dropped by groups."""
    return [
        replace(node, groups=node.by[0])
        if isinstance(node, DropWindowNode) and node.by and rng.random() < 0.6
        else node
        for node in nodes
    ]


def run_of(rng: np.random.Generator, nodes: Operators) -> Run:
    nodes = with_groups(rng, nodes)
    windows = [node.name for node in nodes if isinstance(node, DropWindowNode)]
    innermost = [name for name in windows if all(name not in node.parents for node in nodes)]
    outputs = []
    for name in windows:
        # What nothing else reads has an output.
        for number in range(int(rng.integers(name in innermost, 3))):
            gap = None if rng.random() < 0.25 else int(rng.choice([1, 2, 3, 8, 20]))
            outputs.append(DropOutputNode(f"{rng.choice(['a', 'b', 'c'])}{number} {name}", name, gap))
    shed = [None, *(Shed(window=share) for share in (0.3, 0.9, 1.0)), Shed(), Shed()][rng.integers(0, 6)]
    if shed is not None and all(one.max_gap is None for one in outputs):
        shed = None
    dropping = DropSettings(shed, Network((*nodes, *outputs)), int(rng.integers(0, 9)))
    clock = ClockSettings(int(rng.choice([0, 5, 60])), None)
    clocks = {node.name: clock for node in nodes if isinstance(node, DropSourceNode)}
    return Run(dropping, clocks, int(rng.integers(1, 7)))


def arriving(rng: np.random.Generator, nodes: Operators, batch: int) -> dict[str, list[Row]]:
    found = {}
    for node in nodes:
        if isinstance(node, DropSourceNode):
            count = int(rng.integers(0, ROWS))
            times = 1_000 + PACE_US * batch + rng.integers(0, PACE_US, count) - rng.integers(0, 12, count)
            found[node.name] = [
                Row(int(at), int(rng.integers(1, 99)), int(rng.integers(0, 5))) for at in times
            ]
    return found


def levels_of(rng: np.random.Generator, dropping: DropSettings) -> dict[str, float]:
    """What a goal might ask: some share of every drop, and some outputs off."""
    drops = {drop_point(name): float(rng.random() ** 0.5) for name in dropping.drops}
    return drops | {one.name: float(rng.random() < 0.2) for one in dropping.network.outputs}


def longest_gap(missing: set[tuple[int, int]], slide_us: int) -> int:
    """The longest run of missing windows of any cohort."""
    longest = length = 0
    for cohort, start in sorted((cohort, start) for start, cohort in missing):
        length = length + 1 if (start - slide_us, cohort) in missing else 1
        longest = max(longest, length)
    return longest


class Story:
    """A random checkpoint, run after run; every batch is judged."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.nodes = flow(self.rng)
        self.query = Restarting(self.nodes)
        self.dropped = self.written = self.number = 0

    def tell(self) -> None:
        before: Run | None = None
        for _ in range(int(self.rng.integers(2, 6))):
            run = run_of(self.rng, self.nodes)
            # Sometimes the last run had written the plan of its next batch, and did not finish it.
            plan = None if before is None or self.rng.random() < 0.6 else self.query.plan(before.dropping)
            decided_us = self._decided_us()
            missing: dict[str, set[tuple[int, int]]] = {}
            may_shut = bool(self._shut())
            for _ in range(run.batches):
                levels = levels_of(self.rng, run.dropping)
                rows = arriving(self.rng, self.nodes, self.number)
                results = self.query.run(run.dropping, rows, run.clocks, levels, plan)
                may_shut |= plan is not None or bool(self._shut())
                plan = None
                self.number += 1
                network = run.dropping.network
                for output, (came, should, gone) in results.items():
                    groups = network.groups_of(output)
                    left = [row for row in should if (row.time, cell_of(row, groups)) not in gone]
                    assert came == left, output
                    missing.setdefault(output, set()).update(gone)
                    self.written += len(came)
                    self.dropped += len(gone)
            if not may_shut:
                self._judge_gaps(run, missing, decided_us)
            before = run

    def _shut(self) -> list[str]:
        return list(self.query.manifest.control.get(window_dropping.CONTROL, {}).get("shut", ()))

    def _decided_us(self) -> int:
        """From here on no window lacks anything because of earlier runs."""
        known = self.query.manifest.control.get("dropped", {})
        decided = [int(one["until_us"]) for one in known.get("windows", {}).values()]
        gaps = [
            int(high) * one.get("unit_us", 1) + one.get("from_us", 0)
            for some in known.get("gaps", {}).values()
            for one in some.values()
            for high in one["high"]
        ]
        return int(max([0, *decided, *gaps])) + 100

    def _judge_gaps(self, run: Run, missing: Mapping[str, set[tuple[int, int]]], decided_us: int) -> None:
        for output in run.dropping.network.outputs:
            window = result_window(run.dropping.network, output)
            mine = {one for one in missing.get(output.name, ()) if one[0] >= decided_us}
            if output.max_gap is None or window is None:
                assert not mine, "an output that must be complete lacks windows of this run"
            else:
                assert longest_gap(mine, window.slide_us) <= output.max_gap


@given(st.integers(0, 2**32 - 1))
@example(0)
@settings(max_examples=250)
def test_every_window_is_exact_or_reported_through_restarts_with_other_settings(seed: int) -> None:
    with patch.object(window_dropping, "SHUT_AFTER_BATCHES", 1):
        Story(seed).tell()


def test_stories_of_restarts_drop_many_windows_and_write_many() -> None:
    stories = [Story(seed) for seed in range(40)]
    with patch.object(window_dropping, "SHUT_AFTER_BATCHES", 1):
        for one in stories:
            one.tell()
    assert sum(one.dropped for one in stories) > 500
    assert sum(one.written for one in stories) > 500


@pytest.mark.soak
def test_hundreds_of_checkpoints_are_exact_through_restarts() -> None:
    for seed in range(1_000_000, 1_002_000):
        with patch.object(window_dropping, "SHUT_AFTER_BATCHES", 1):
            Story(seed).tell()
