"""Approximate windows under a goal and a simulated clock: kept rows cost time, load comes and goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from tidegate.control.actuators import sampling
from tidegate.control.actuators.sampling import EstimateSettings
from tidegate.control.goal import goal_loop
from tidegate.control.goal.goal_step import KeepSettings, Ran
from tidegate.control.goal.goal_values import GoalSettings
from tidegate.control.levels import CONTROL
from tidegate.control.receipts.receipts import ESTIMATED, EXACT
from tidegate.model.graph import OperatorTraits
from tidegate.model.manifest import Manifest, StreamClock
from tidegate.model.plan import LateRows, Plan, ShedPlan
from tidegate.model.reports import SideRows, TaskReport, TaskSeconds
from tidegate.model.times import BEGINNING_US
from tidegate.window.drop.network import DropOutputNode, DropSourceNode, DropWindowNode, Network
from tidegate.window.estimate.strata import STRATA
from tidegate.window.lifetime import Lifetime
from tidegate.window.spec import WindowSpec

SECOND = 1_000_000
SPEC = WindowSpec(4 * SECOND, 4 * SECOND)
NETWORK = Network((DropSourceNode("s"), DropWindowNode("w", "s", SPEC), DropOutputNode("out", "w")))
OPERATORS = {"w": OperatorTraits("w", ("s", "s"), Lifetime(SPEC), (True, False), (True, False))}
#: A few strata have most of the rows, as groups do.
POPULAR = 1 / np.arange(1, STRATA + 1)


@dataclass
class Engine:
    """One approximate window over one stream, a batch a second; rows cost time, kept ones more."""

    settings: EstimateSettings
    #: None: there is no goal.
    max_loss: float | None = 1.0
    look_seconds: float = 1e-6
    row_seconds: float = 20e-6
    fixed_seconds: float = 0.2
    now_us: int = 1_700_000_000 * SECOND
    manifest: Manifest = field(init=False)
    busy: list[float] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    modes: list[str] = field(default_factory=list)
    #: Per window and stratum: were rows left out, and what was said of it when it closed.
    sampled: dict[tuple[int, int], bool] = field(default_factory=dict)
    said: dict[tuple[int, int], bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        clock = StreamClock(BEGINNING_US, BEGINNING_US, self.now_us)
        self.manifest = Manifest(-1, {}, {"s": clock}, {"w": BEGINNING_US}, {})

    def batch(self, rows: int) -> None:
        watermark = self.manifest.clocks["s"].watermark_us
        settle = max(self.manifest.settled_us["w"], watermark)
        planned = sampling.decide(self.settings, self.manifest, OPERATORS)
        plan = Plan(
            self.manifest.batch + 1,
            self.now_us,
            LateRows({"s": watermark}),
            {"w": settle},
            {},
            shed=ShedPlan(estimating=planned),
        )
        self._close(plan)
        shares = np.array(planned["w"]["shares"])
        counts = np.round(rows * POPULAR / POPULAR.sum())
        kept = np.random.default_rng(plan.batch).binomial(counts.astype(int), shares)
        newest = self.now_us + SECOND - 1
        for start in {time // SPEC.slide_us * SPEC.slide_us for time in (self.now_us, newest)}:
            for stratum in np.flatnonzero(counts > 0).tolist():
                at = (start, stratum)
                self.sampled[at] = self.sampled.get(at, False) or bool(shares[stratum] < 1)
        busy = self.fixed_seconds + self.look_seconds * rows + self.row_seconds * int(kept.sum())
        report = _report(int(counts.sum()), kept, newest if rows else None)
        clock = StreamClock(newest, newest - SECOND, self.now_us) if rows else self.manifest.clocks["s"]
        after = replace(self.manifest, batch=plan.batch, clocks={"s": clock}, settled_us=dict(plan.settle_us))
        after = replace(after, control=self._learnt(plan, report, after, busy))
        self.modes.append(sampling.mode(self.settings, plan, self.manifest, after)["w"])
        self.manifest = after
        self.busy.append(busy)
        self.plans.append(plan)
        self.now_us += SECOND

    def _learnt(self, plan: Plan, report: TaskReport, after: Manifest, busy: float) -> dict[str, Any]:
        """As the engine does it: the goal first, then what follows for strata."""
        learnt: dict[str, Any] = {}
        if self.max_loss is not None:
            goal = GoalSettings(1.0, max_loss={"out": self.max_loss}, trigger_seconds=1.0)
            keep = KeepSettings(goal, 1.0, NETWORK, estimating=self.settings)
            ran = Ran([report], [], {}, busy, cold=False)
            learnt = goal_loop.learn(keep, self.manifest, plan, ran, after, OPERATORS)
        levels = learnt.get(CONTROL, {}).get("levels", {})
        strata = sampling.learn(self.settings, self.manifest, plan, [report], after, levels)
        return {**learnt, sampling.CONTROL: strata}

    def _close(self, plan: Plan) -> None:
        """What a task says of the windows that this batch closes."""
        closed = [at for at in self.sampled if at[0] + SPEC.size_us <= plan.settle_us["w"]]
        open_ones = [at for at in closed if at not in self.said]
        if open_ones:
            starts, strata = (np.array(column) for column in zip(*open_ones, strict=True))
            left_out = sampling.left_out(plan.shed.estimating["w"])
            touched = left_out.touches(starts, starts + SPEC.size_us, strata)
            self.said.update(zip(open_ones, touched.tolist(), strict=True))

    def run(self, rows: Sequence[int]) -> Engine:
        for each in rows:
            self.batch(each)
        return self


def _report(offered: int, kept: Any, seen_us: int | None) -> TaskReport:
    rows = SideRows(offered=(offered, 0), dropped=(offered - int(kept.sum()), 0), seen_us=(seen_us, None))
    return TaskReport("w", 0, rows, seconds=TaskSeconds(0.1), strata=tuple(kept.tolist()))


def engine(fixed: float | None = None, max_loss: float | None = 1.0) -> Engine:
    return Engine(EstimateSettings({"w": SPEC}, fixed), max_loss)


def shares_of(plan: Plan) -> Any:
    return np.array(plan.shed.estimating["w"]["shares"])


def test_all_rows_are_kept_while_there_is_time_for_all() -> None:
    calm = engine().run([20_000] * 40)
    assert all((shares_of(plan) == 1).all() for plan in calm.plans)
    assert set(calm.modes) == {EXACT}
    assert not any(calm.said.values())


def test_overload_keeps_as_many_rows_as_there_is_time_for_and_rare_groups_whole() -> None:
    rushed = engine().run([20_000] * 20 + [120_000] * 100)
    assert max(rushed.busy[-60:]) < 1.0
    assert np.mean(rushed.busy[-60:]) > 0.7, "more was left out than had to be"
    shares = shares_of(rushed.plans[-1])
    assert shares[0] < 0.3
    assert shares[-1] > 2 * shares[0]
    assert rushed.modes[-40:].count(ESTIMATED) == 10, "in every fourth batch a window closes"


def test_no_more_rows_are_left_out_than_results_may_lose() -> None:
    rushed = engine(max_loss=0.4).run([120_000] * 60)
    counts = POPULAR / POPULAR.sum()
    kept = [float((shares_of(plan) * counts).sum()) for plan in rushed.plans]
    assert min(kept) > 0.58
    assert kept[-1] < 0.65
    warnings = rushed.manifest.control[CONTROL]["told"]["warnings"]
    assert any("max_loss" in warning["message"] for warning in warnings)


def test_every_window_is_said_to_be_sampled_just_if_rows_were_left_out() -> None:
    rush = [20_000] * 12 + [70_000] * 30 + [20_000] * 30 + [45_000] * 20 + [20_000] * 30
    story = engine().run(rush)
    assert len(story.said) > 20 * STRATA
    wrong = [at for at, said in story.said.items() if story.sampled[at] and not said]
    assert not wrong, "a window that rows were left out of passed for exact"
    assert any(story.said.values())
    careful = [at for at, said in story.said.items() if said and not story.sampled[at]]
    assert len(careful) < 0.25 * len(story.said), "too many exact windows pass for sampled"
    assert story.modes[-1] == EXACT
    assert not story.manifest.control[sampling.CONTROL]["left_out"]["w"], "old times are not forgotten"


@pytest.mark.parametrize("rows", [50_000, 100_000, 400_000])
def test_on_steady_input_shares_come_to_rest(rows: int) -> None:
    story = engine().run([rows] * 150)
    last = [shares_of(plan) for plan in story.plans[-60:]]
    changes = sum(not np.array_equal(one, other) for one, other in zip(last[1:], last, strict=False))
    assert changes < 12, "rows of unlike weights say less"


def test_a_restart_decides_the_same() -> None:
    first = engine().run([20_000] * 10 + [90_000] * 30)
    again = engine()
    again.manifest = first.manifest
    assert sampling.decide(again.settings, again.manifest, OPERATORS) == sampling.decide(
        first.settings, first.manifest, OPERATORS
    )


def test_without_a_goal_windows_of_the_last_run_are_still_known_to_be_sampled() -> None:
    story = engine(0.5).run([20_000] * 9)
    story.settings, story.max_loss = engine(1.0).settings, None
    story.run([20_000] * 9)
    assert (shares_of(story.plans[-1]) == 1).all()
    assert all(story.said[at] for at, sampled in story.sampled.items() if sampled and at in story.said)
    assert story.modes[-1] == EXACT


def test_a_fixed_share_holds_for_all_strata_from_the_first_batch_on() -> None:
    story = engine(0.3).run([20_000] * 5)
    assert all(shares_of(plan) == pytest.approx(np.full(STRATA, 0.3)) for plan in story.plans)
