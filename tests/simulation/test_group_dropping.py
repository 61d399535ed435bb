"""The goal over windows much longer than a batch: kept by groups, out of reach with all groups alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tests.simulation.test_window_dropping import SECOND, Engine

from tidegate.api.goal import Shed
from tidegate.control.actuators import window_dropping
from tidegate.control.actuators.window_dropping import DropSettings
from tidegate.model.manifest import StreamClock
from tidegate.model.plan import LateRows, Plan, ShedPlan
from tidegate.model.reports import SideRows, TaskReport, TaskSeconds
from tidegate.window.drop.intervals import NOTHING
from tidegate.window.drop.network import DropOutputNode, DropSourceNode, DropWindowNode, Network
from tidegate.window.spec import WindowSpec

#: Batches of a second: normal ones, those in which the load is learnt, and those that are judged.
BEFORE, LEARNING, JUDGED = 30, 150, 180
ROWS, OVERLOAD_ROWS = 20_000, 80_000


class LongWindows(Engine):
    """Windows of a minute over rows of many groups, a batch a second; batches may take a second."""

    def __init__(self, groups: str | None):
        spec = WindowSpec(60 * SECOND, 60 * SECOND)
        nodes = DropSourceNode("s"), DropWindowNode("w", "s", spec, ("k",), groups)
        super().__init__(DropSettings(Shed(), Network((*nodes, DropOutputNode("out", "w", 3))), seed=3))
        self.lost: list[float] = []

    def batch(self, rows: int) -> None:
        clock_us = self.manifest.clocks["s"].watermark_us
        decided = window_dropping.decide(self.settings, self.manifest)
        shed = ShedPlan(dropping=decided)
        batch = self.manifest.batch + 1
        plan = Plan(batch, self.now_us, LateRows({"s": clock_us}), {"w": clock_us}, {}, shed=shed)
        times = self.now_us + np.linspace(0, SECOND, rows, endpoint=False).astype(np.int64)
        cohorts = self.settings.network.cohorts
        if cohorts is not None:
            times = cohorts.of(np.random.default_rng(batch).integers(0, 640, rows).astype(np.uint64), times)
        gaps = window_dropping.arrows(self.settings, plan).get(("s", "w"), NOTHING)
        dropped = int(gaps.contain(times).sum())
        noise = float(np.random.default_rng(batch).lognormal(0, 0.05))
        busy = (self.fixed_seconds + self.row_seconds * (rows - dropped)) * noise
        newest = self.now_us + SECOND - 1
        clocks = {"s": StreamClock(newest, newest, self.now_us)}
        after = replace(self.manifest, batch=batch, clocks=clocks, settled_us=plan.settle_us)
        counts = SideRows(offered=(rows, 0), dropped=(dropped, 0))
        report = TaskReport("w", 0, counts, seconds=TaskSeconds(0.1))
        learnt = self.learnt(plan, report, after, busy)
        self.manifest = replace(after, control={**learnt, **window_dropping.remembered(plan)})
        self.busy.append(busy)
        self.lost.append(dropped / rows)
        self.now_us += SECOND


def judged(groups: str | None) -> tuple[float, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """The share of batches on time, and what each of them lost."""
    engine = LongWindows(groups)
    engine.run([ROWS] * BEFORE + [OVERLOAD_ROWS] * (LEARNING + JUDGED))
    on_time = float(np.mean(np.array(engine.busy[-JUDGED:]) <= 1.0))
    return on_time, np.array(engine.lost[-JUDGED:])


def test_by_groups_every_batch_of_a_long_window_loses_the_same_and_is_on_time() -> None:
    on_time, lost = judged("k of s")
    assert on_time > 0.9
    # Half is needed; the rest is the safety margin.
    assert 0.5 < lost.mean() < 0.62
    assert lost.std() < 0.06


def test_with_all_groups_alike_minutes_of_everything_are_late() -> None:
    on_time, lost = judged(None)
    assert on_time < 0.8
    assert set(lost.tolist()) <= {0.0, 1.0}
