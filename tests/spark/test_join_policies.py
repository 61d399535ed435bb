"""The parameters of join policies, and policies of the user's own, from `tg.Shed` to the plan of a batch."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark.flows import start_bounded
from tests.spark.test_goals import UNREACHABLE, exact, home, joined, played

import tidegate as tg
from tidegate import policies
from tidegate.model.plan import Plan
from tidegate.state.checkpoint import Checkpoint

__all__ = ["home"]


def last_plan(home: Path, name: str, told: list[dict[str, Any]]) -> Plan:
    plan = Checkpoint(str(home / name)).plans.read(told[-1]["batch"])
    assert plan is not None
    return plan


def test_the_parameters_of_adaptive_reach_the_plan_and_the_state(spark: SparkSession, home: Path) -> None:
    chosen = policies.Adaptive(
        rate_period="100 milliseconds",
        correlation_period="100 milliseconds",
        explore_ratio=0.5,
        basic_window="500 milliseconds",
    )
    some, told = played(spark, home, "ck", goal=UNREACHABLE, shed=tg.Shed(join=chosen, rate="paper"))
    assert set(some.rows) < exact()
    skipping = last_plan(home, "ck", told).shed.skipping["near"]
    # Every batch is far too long, so the feedback of the paper lowers r again and again.
    assert 0.001 <= skipping.fraction < 0.3
    assert skipping.explore_share == pytest.approx(0.5 * skipping.fraction)
    # Two seconds in both directions, in basic windows of half a second.
    assert [len(shares) for shares in skipping.shares] == [9, 9]
    manifest = Checkpoint(str(home / "ck")).manifests.load_latest()
    assert manifest is not None
    assert manifest.control["rate"]["fraction"] <= skipping.fraction
    assert all(len(learnt["values"]) == 5 for learnt in manifest.control["policies"]["near"]["learnt"])


def test_a_checkpoint_keeps_the_basic_windows_that_it_began_with(spark: SparkSession, home: Path) -> None:
    goal = tg.Goal(latency="10 minutes")
    first = tg.Shed(join=policies.Adaptive(basic_window="500 milliseconds"))
    _, told = played(spark, home, "ck", goal=goal, shed=first)
    assert [len(one) for one in last_plan(home, "ck", told).shed.skipping["near"].shares] == [9, 9]
    for shed in (tg.Shed(), tg.Shed(join=policies.Adaptive(basic_window="100 milliseconds"))):
        query = start_bounded(
            joined(spark, home).select("n", "n_right").write_to(lambda frame, batch: None, name="near"),
            checkpoint=str(home / "ck"),
            goal=goal,
            shed=shed,
        )
        query.stop()
        assert last_plan(home, "ck", told).shed.skipping["near"].fraction == 1.0


def test_too_many_basic_windows_are_refused(spark: SparkSession, home: Path) -> None:
    shed = tg.Shed(join=policies.Adaptive(basic_window=timedelta(microseconds=10)))
    with pytest.raises(tg.FlowError, match="POLICY_BASIC_WINDOW_SHORT"):
        played(spark, home, "ck", goal=UNREACHABLE, shed=shed)


class OldestFirst:
    """A policy of one's own: the oldest part of both windows."""

    word = "oldest_first"

    def build(self, windows: policies.Shape, snapshot: Any) -> RunningOldest:
        return RunningOldest(windows, {"batches": 0} if snapshot is None else dict(snapshot))


class RunningOldest:
    def __init__(self, windows: policies.Shape, known: dict[str, int]) -> None:
        self._windows, self._known = windows, known

    def decide(self, ratio: float) -> policies.Decision:
        left, right = (policies.ProbeOrder(ratio, tuple(range(n))[::-1]) for n in self._windows.ages)
        return policies.Decision((left, right))

    def learn(self, telemetry: policies.Telemetry) -> None:
        self._known["batches"] += 1

    def snapshot(self) -> dict[str, int]:
        return self._known


def test_a_policy_of_ones_own_decides_and_is_in_the_manifest(spark: SparkSession, home: Path) -> None:
    shed = tg.Shed(join=OldestFirst(), rate=0.25)
    some, told = played(spark, home, "ck", goal=UNREACHABLE, shed=shed)
    assert set(some.rows) < exact()
    orders = told[-1]["shed"]["near"]["orders"]
    assert orders == [list(range(len(one)))[::-1] for one in orders]
    manifest = Checkpoint(str(home / "ck")).manifests.load_latest()
    assert manifest is not None
    with_rows = sum(progress["input_rows"] > 0 for progress in told)
    assert manifest.control["policies"]["near"]["own"]["batches"] == with_rows
