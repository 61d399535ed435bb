"""The controller of window drops under a simulated clock: rows cost time, load comes and goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tidegate.api.goal import Shed
from tidegate.control.actuators import window_dropping
from tidegate.control.actuators.window_dropping import SHUT_AFTER_BATCHES, DropSettings
from tidegate.control.goal import goal_loop
from tidegate.control.goal.goal_step import KeepSettings, Ran
from tidegate.control.goal.goal_values import GoalSettings
from tidegate.control.levels import CONTROL
from tidegate.model.manifest import Manifest, StreamClock
from tidegate.model.plan import LateRows, Plan, ShedPlan
from tidegate.model.reports import SideRows, TaskReport, TaskSeconds
from tidegate.model.times import BEGINNING_US
from tidegate.window.drop.intervals import NOTHING
from tidegate.window.drop.network import DropOutputNode, DropSourceNode, DropWindowNode, Network
from tidegate.window.spec import WindowSpec

SECOND = 1_000_000


@dataclass
class Engine:
    """One window over one stream, a batch a second; a row that passes costs time, and so does the batch."""

    settings: DropSettings
    row_seconds: float = 20e-6
    fixed_seconds: float = 0.2
    now_us: int = 1_700_000_000 * SECOND
    manifest: Manifest = field(init=False)
    busy: list[float] = field(default_factory=list)
    #: Starts of windows that rows were seen of, and those that were dropped.
    seen: set[int] = field(default_factory=set)
    dropped: set[int] = field(default_factory=set)
    #: Those of which a plan says so when they close.
    missing: set[int] = field(default_factory=set)
    #: Seconds that the goal of a query foresees for the next batch, were nothing dropped.
    told: list[float] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)

    def __post_init__(self) -> None:
        clock = StreamClock(BEGINNING_US, BEGINNING_US, self.now_us)
        self.manifest = Manifest(-1, {}, {"s": clock}, {"w": BEGINNING_US}, {})

    def batch(self, rows: int) -> None:
        plan = Plan(
            self.manifest.batch + 1,
            self.now_us,
            LateRows({"s": self.manifest.clocks["s"].watermark_us}),
            {"w": self.manifest.clocks["s"].watermark_us},
            {},
            shed=ShedPlan(dropping=window_dropping.decide(self.settings, self.manifest)),
        )
        times = self.now_us + np.linspace(0, SECOND, rows, endpoint=False).astype(np.int64)
        gaps = window_dropping.arrows(self.settings, plan)
        kept = ~gaps.get(("s", "w"), NOTHING).contain(times)
        gone = gaps.get(("w", "out"), NOTHING)
        busy = self.fixed_seconds + self.row_seconds * int(kept.sum())
        slide_us = 2 * SECOND
        starts = np.unique(times // slide_us * slide_us)
        self.seen |= set(starts.tolist())
        self.dropped |= set(starts[gone.contain(starts)].tolist())
        newest = int(times[-1]) if rows else self.manifest.clocks["s"].seen_us
        after = replace(
            self.manifest,
            batch=plan.batch,
            clocks={"s": StreamClock(newest, newest, self.now_us)},
            settled_us=plan.settle_us,
        )
        report = _report(rows, rows - int(kept.sum()))
        learnt = self.learnt(plan, report, after, busy)
        for runs in window_dropping.missing(self.settings, plan, self.manifest, after).values():
            self.missing |= {at for low, high, _ in runs for at in range(low, high + 1, 2 * SECOND)}
        self.manifest = replace(after, control={**learnt, **window_dropping.remembered(self.settings, plan)})
        self.busy.append(busy)
        self.told.append(learnt.get(CONTROL, {}).get("told", {}).get("full", 0.0))
        self.plans.append(plan)
        self.now_us += SECOND

    def learnt(self, plan: Plan, report: TaskReport, after: Manifest, busy: float) -> dict[str, Any]:
        goal = GoalSettings(1.0, trigger_seconds=1.0)
        keep = KeepSettings(goal, 1.0, self.settings.network, dropping=self.settings)
        ran = Ran([report], [], {}, busy, cold=False)
        return goal_loop.learn(keep, self.manifest, plan, ran, after, {})

    def run(self, rows: Sequence[int]) -> Engine:
        for each in rows:
            self.batch(each)
        return self


def _report(rows: int, dropped: int) -> TaskReport:
    taken = SideRows(offered=(rows, 0), dropped=(dropped, 0))
    return TaskReport("w", 0, taken, seconds=TaskSeconds(0.1))


def drops_of(plan: Plan) -> dict[str, Any]:
    """What a plan says of each drop."""
    drops: dict[str, Any] = plan.shed.dropping.get("drops", {})
    return drops


def engine(max_gap: int = 10) -> Engine:
    spec = WindowSpec(2 * SECOND, 2 * SECOND)
    network = Network(
        (DropSourceNode("s"), DropWindowNode("w", "s", spec), DropOutputNode("out", "w", max_gap))
    )
    return Engine(DropSettings(Shed(), network, seed=3))


def runs(starts: set[int], slide: int) -> Iterator[int]:
    """Lengths of runs of neighbours."""
    ordered, length = sorted(starts), 1
    for before, after in pairwise(ordered):
        if after == before + slide:
            length += 1
        else:
            yield length
            length = 1
    if ordered:
        yield length


def test_nothing_is_dropped_while_there_is_time_for_all() -> None:
    calm = engine().run([20_000] * 60)
    assert not calm.dropped
    assert all(not plan.shed.dropping for plan in calm.plans)


def test_overload_drops_as_many_windows_as_it_takes_and_no_more() -> None:
    rushed = engine().run([20_000] * 20 + [60_000] * 400)
    # 0.2 s and 20 µs a row: 40,000 rows fill a second, 0.9 of which is the aim: 35,000 of 60,000 fit.
    late = np.array(rushed.busy[-300:])
    assert late.mean() < 1.0
    share = len(rushed.dropped) / len([s for s in rushed.seen if s > 1_700_000_060 * SECOND])
    assert 0.35 < share < 0.55
    assert max(runs(rushed.dropped, 2 * SECOND)) <= 10
    closed = {start for start in rushed.dropped if start < rushed.now_us - 6 * SECOND}
    assert closed
    assert closed == {start for start in rushed.missing if start < rushed.now_us - 6 * SECOND}


def test_when_the_rush_is_over_windows_come_again() -> None:
    story = engine().run([20_000] * 10 + [80_000] * 200 + [20_000] * 100)
    last = {start for start in story.seen if start > story.now_us - 40 * SECOND}
    assert last
    assert not last & story.dropped


def test_a_restart_decides_the_same() -> None:
    first = engine().run([20_000] * 10 + [70_000] * 60)
    again = engine()
    again.manifest, again.now_us = first.manifest, first.now_us
    assert window_dropping.decide(again.settings, again.manifest) == window_dropping.decide(
        first.settings, first.manifest
    )


def test_what_no_share_can_save_is_shut_off_after_some_patience_and_opens_again() -> None:
    story = engine(max_gap=1).run([20_000] * 10 + [500_000] * 40)
    shut = [plan for plan in story.plans if any(drop["shut"] for drop in drops_of(plan).values())]
    assert len(shut) > 20
    assert shut[0].batch >= 10 + SHUT_AFTER_BATCHES
    assert max(runs(story.dropped, 2 * SECOND)) > 1, "shut, and windows still come"
    story.run([20_000] * 60)
    assert not any(drop["shut"] for drop in drops_of(story.plans[-1]).values())
    last = {start for start in story.seen if start > story.now_us - 20 * SECOND}
    assert last
    assert not last & story.dropped


#: A gap in the controller, not in the test: for single batches the goal of the query goes deeper than it
#: settles (`level_controller.py`), so p alternates between two values that are 0.19 apart.
SWINGS = pytest.mark.xfail(reason="the goal goes deeper for single batches", strict=True)


@pytest.mark.parametrize(
    "rows", [45_000, pytest.param(60_000, marks=SWINGS), pytest.param(120_000, marks=SWINGS)]
)
def test_on_steady_input_the_share_settles(rows: int) -> None:
    story = engine().run([rows] * 300)
    shares = [next(iter(drops_of(plan).values()))["p"] for plan in story.plans[-150:] if drops_of(plan)]
    assert np.ptp(shares) < 0.15, "the share swings"


def test_the_goal_of_a_query_counts_rows_that_came_and_not_those_that_were_let_in() -> None:
    story = engine().run([60_000] * 120)
    assert max(runs(story.dropped, 2 * SECOND)) <= 10
    # Whether windows were dropped or not: as many rows came in every batch, and no more are foreseen.
    full = [20e-6 * 60_000 + 0.2] * 40
    foreseen = story.told[-40:]
    assert foreseen == pytest.approx(full, rel=0.35)


def test_a_goal_goes_on_with_other_outputs_and_another_gap() -> None:
    story = engine(max_gap=10).run([20_000] * 10 + [90_000] * 40)
    spec, before = WindowSpec(2 * SECOND, 2 * SECOND), set(story.dropped)
    outputs = DropOutputNode("renamed", "w", 2), DropOutputNode("out", "w", 4)
    network = Network((DropSourceNode("s"), DropWindowNode("w", "s", spec), *outputs))
    story.settings = DropSettings(Shed(), network, seed=4)
    began_us = story.now_us + 10 * SECOND
    story.run([90_000] * 100)
    assert before <= story.dropped
    since = {start for start in story.dropped if start > began_us}
    assert len(since) > 10
    assert max(runs(since, 2 * SECOND)) <= 2
