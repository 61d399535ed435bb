"""Queries with a goal: work is left out when a batch takes too long, never without one."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import EPOCH_US, PATIENCE_SECONDS, Sink, add_files, read_files, start_bounded

import tidegate as tg
from tidegate.api.goal import JoinPolicyName
from tidegate.api.joins.join_node import How
from tidegate.control import planning
from tidegate.model.plan import Plan
from tidegate.state.checkpoint import Checkpoint

SCHEMA = "ts timestamp, n long, k long"
#: More than a run needs to warm up, before which it learns nothing.
FILES, ROWS = 7, 300
WINDOW = timedelta(seconds=2)
#: No batch of Spark's is over in this time, so everything that may be left out is.
UNREACHABLE = tg.Goal(latency="20 milliseconds")


def tables(seed: int) -> list[pa.Table]:
    random = np.random.default_rng(seed)
    times = np.sort(random.integers(0, FILES * 10**6, FILES * ROWS)).reshape(FILES, ROWS)
    return [
        pa.table(
            {
                "ts": pa.array(EPOCH_US + times[part], pa.timestamp("us", tz="UTC")),
                "n": pa.array(np.arange(part * ROWS, (part + 1) * ROWS)),
                "k": pa.array(random.integers(0, 20, ROWS)),
            }
        )
        for part in range(FILES)
    ]


@cache
def exact() -> set[tuple[int, int]]:
    """The pairs of equal keys."""
    return exact_pairs(lambda one, other: one == other)


def exact_pairs(match: Callable[[int, int], bool]) -> set[tuple[int, int]]:
    """The pairs of the two streams whose keys match, by their definition."""
    left, right = (pa.concat_tables(tables(seed)).to_pydict() for seed in (0, 1))
    by_key: dict[int, list[tuple[Any, int]]] = {}
    for at, n, k in zip(right["ts"], right["n"], right["k"], strict=True):
        by_key.setdefault(k, []).append((at, n))
    return {
        (n, other)
        for at, n, k in zip(left["ts"], left["n"], left["k"], strict=True)
        for theirs in by_key
        if match(k, theirs)
        for then, other in by_key[theirs]
        if abs(at - then) <= WINDOW
    }


def joined(spark: SparkSession, home: Path, how: How = "inner") -> tg.Stream:
    left, right = (
        tg.stream(read_files(spark, home / name, SCHEMA), time="ts", name=name, lateness="0 seconds")
        for name in ("a", "b")
    )
    return left.join(right, on="k", within=WINDOW, how=how, name="near")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for seed, name in enumerate(("a", "b")):
        add_files(tmp_path / name, tables(seed))
    return tmp_path


def played(spark: SparkSession, home: Path, name: str, **settings: Any) -> tuple[Sink, list[dict[str, Any]]]:
    sink = Sink()
    query = start_bounded(
        joined(spark, home).select("n", "n_right").write_to(sink),
        checkpoint=str(home / name),
        **settings,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    return sink, query.telemetry


@pytest.mark.parametrize("policy", ["auto", "selective", "adaptive", "random_drop"])
def test_a_goal_out_of_reach_leaves_a_subset_and_says_what_is_missing(
    spark: SparkSession, home: Path, policy: JoinPolicyName
) -> None:
    some, told = played(spark, home, policy, goal=UNREACHABLE, shed=tg.Shed(join=policy))
    assert set(some.rows) < exact()
    assert len(some.rows) == len(set(some.rows))
    first, last = told[0]["shed"]["near"], told[-1]["shed"]["near"]
    assert first["fraction"] == 1.0
    assert first["windows"][1]["skipped"] == 0
    assert last["fraction"] < 1.0
    plans = Checkpoint(str(home / policy)).plans
    plan = plans.read(told[-1]["batch"])
    assert plan is not None
    assert plan.shed.skipping["near"].fraction == last["fraction"]
    assert [list(order) for order in plan.shed.skipping["near"].orders] == last["orders"]
    assert len(last["fractions"]) == 2
    # Equal keys alone decide here, so `auto` drops rows.
    if policy in ("auto", "random_drop"):
        assert sum(sum(progress["shed"]["near"]["dropped"]) for progress in told) > 0
    else:
        assert sum(sum(progress["shed"]["near"]["dropped"]) for progress in told) == 0


def test_sets_choose_by_content_what_they_look_at_and_a_replay_chooses_the_same(
    spark: SparkSession, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = planning.next_plan
    # Said by the plan, not by a clock: what is found then follows from the rows.
    monkeypatch.setattr(planning, "next_plan", lambda *given, **named: choosing(plans(*given, **named)))
    # Two items that rows share with all of their key, and two that rows of the first keys share.
    items = "array(k, k + 100, if(k < 3, 200, n + {own}), if(k < 3, 201, n + 10 * {own}))"

    def run(name: str) -> tuple[Sink, list[dict[str, Any]]]:
        left, right = (
            tg.stream(
                read_files(spark, home / side, SCHEMA), time="ts", name=side, lateness="0 seconds"
            ).with_column("items", F.expr(items.format(own=own)))
            for side, own in (("a", 10_000), ("b", 20_000))
        )
        pairs, sink = (
            left.join(right, on=tg.overlap("items", at_least=2, index="none"), within=WINDOW, name="near"),
            Sink(),
        )
        query = start_bounded(
            pairs.select("n", "n_right").write_to(sink),
            checkpoint=str(home / name),
            goal=tg.Goal(latency="1 hour"),
            instances=1,
        )
        assert query.await_termination(PATIENCE_SECONDS)
        return sink, query.telemetry

    found, told = run("first")
    assert sorted(found.rows) == sorted(run("again")[0].rows)
    windows = [window for progress in told for window in progress["shed"]["near"]["windows"]]
    looked, candidates = (sum(window[name] for window in windows) for name in ("looked_at", "in_reach"))
    whole = exact_pairs(lambda one, other: one == other or max(one, other) < 3)
    assert set(found.rows) < whole
    # Basic windows are small here, so half of what rows may spend goes into estimates.
    assert 0.05 < looked / candidates < 0.5
    assert len(found.rows) / len(whole) > 1.5 * looked / candidates


def choosing(plan: Plan) -> Plan:
    """The plan with rows that choose by content, but for a few that explore."""
    chosen = {}
    for name, skipping in plan.shed.skipping.items():
        left, right = ((0.0,) * len(shares) for shares in skipping.shares)
        chosen[name] = replace(
            skipping, shares=(left, right), content=0.5, explore_share=0.05, explore_depth=0.3
        )
    return replace(plan, shed=replace(plan.shed, skipping=chosen))


def test_a_utility_says_what_is_worth_finding(spark: SparkSession, home: Path) -> None:
    shed = tg.Shed(utility="if(n = 7, null, cast(n - n_right as double))")
    some, told = played(spark, home, "ck", goal=UNREACHABLE, shed=shed)
    assert set(some.rows) < exact()
    assert some.columns == ["n", "n_right"]
    manifest = Checkpoint(str(home / "ck")).manifests.load_latest()
    assert manifest is not None
    evidence = manifest.control["policies"]["near"]["evidence"]
    assert sum(sum(window["matches"]) for window in evidence) > 0
    assert told[0]["timings"]["utility"] > 0


@pytest.mark.parametrize(
    ("utility", "said"),
    [("gone + 1", "SHED_UTILITY_INVALID.*gone"), ("string(n)", "SHED_UTILITY_INVALID.*number")],
)
def test_a_utility_that_cannot_be_computed_is_refused(
    spark: SparkSession, home: Path, utility: str, said: str
) -> None:
    with pytest.raises(tg.FlowError, match=said):
        played(spark, home, "ck", goal=UNREACHABLE, shed=tg.Shed(utility=utility))


def test_a_goal_that_is_met_leaves_out_nothing(spark: SparkSession, home: Path) -> None:
    all_of_it, told = played(spark, home, "easy", goal=tg.Goal(latency="10 minutes"))
    assert sorted(all_of_it.rows) == sorted(exact())
    for progress in told:
        shed = progress["shed"]["near"]
        assert shed["fraction"] == 1.0
        assert [window["skipped"] for window in shed["windows"]] == [0, 0]


def test_state_beyond_its_most_is_given_up_and_told(spark: SparkSession, home: Path) -> None:
    all_of_it, free = played(spark, home, "free", goal=tg.Goal(latency="10 minutes"))
    assert set(all_of_it.rows) == exact()
    most = 2 * max(progress["state_bytes"] for progress in free) // 3
    bounded = tg.Goal(latency="10 minutes", max_state=f"{most} B")
    some, told = played(spark, home, "bounded", goal=bounded)
    assert max(progress["state_bytes"] for progress in told) <= most
    codes = {one["code"] for progress in told for one in progress["warnings"]}
    assert "STATE_LIMIT_EXCEEDED" not in codes
    assert 0 < len(some.rows) == len(set(some.rows))
    assert set(some.rows) < exact()
    (written,) = (home / "bounded/receipts").glob("*.json")
    receipts = [json.loads(line) for line in written.read_text().splitlines()]
    rows = [row for receipt in receipts for row in receipt["rows"]]
    assert sum(row["rows_evicted"] for row in rows if row["kind"] == "stream") > 0
    assert "window_reduction" in rows[-1]["loss_reasons"]


def test_a_state_that_no_batch_fits_into_is_warned_of(spark: SparkSession, home: Path) -> None:
    _, told = played(spark, home, "tiny", goal=tg.Goal(latency="10 minutes", max_state="1 KB"))
    (warning,) = (one for one in told[-1]["warnings"] if one["code"] == "STATE_LIMIT_EXCEEDED")
    assert warning["since_batch_id"] == 0
    assert f"{told[-1]['state_bytes']:,} of 1,000 bytes" in warning["message"]


def test_shed_none_means_nothing_is_left_out(spark: SparkSession, home: Path) -> None:
    _, told = played(spark, home, "none", goal=UNREACHABLE, shed=tg.Shed(join="none"))
    assert all(progress["shed"] == {} for progress in told)


def test_what_was_learnt_outlives_the_run(spark: SparkSession, home: Path) -> None:
    played(spark, home, "ck", goal=UNREACHABLE)
    add_files(home / "a", tables(3)[:1])
    _, again = played(spark, home, "ck", goal=UNREACHABLE)
    assert again[0]["shed"]["near"]["fraction"] < 1.0
    manifest = Checkpoint(str(home / "ck")).manifests.load_latest()
    assert manifest is not None
    json.dumps(manifest.control)


@pytest.mark.parametrize(
    ("settings", "how", "said"),
    [
        (
            {"goal": tg.Goal(latency="1 second"), "trigger": "1 second"},
            "inner",
            "batches begin further apart",
        ),
        ({"goal": tg.Goal(latency="1 second")}, "left", "GOAL_NOTHING_TO_SHED"),
    ],
)
def test_a_goal_that_can_never_be_kept_is_refused(
    spark: SparkSession, home: Path, settings: dict[str, Any], how: How, said: str
) -> None:
    with pytest.raises(tg.FlowError, match=said):
        tg.start(joined(spark, home, how).write_to(Sink()), checkpoint=str(home / "ck"), **settings)


def test_stopping_waits_for_the_batch_that_runs(spark: SparkSession, home: Path) -> None:
    entered, stopping = threading.Event(), threading.Event()
    seen: list[int] = []

    def slow(frame: DataFrame, batch: int) -> None:
        entered.set()
        stopping.wait(PATIENCE_SECONDS)
        seen.append(frame.count())

    query = tg.start(joined(spark, home).write_to(slow), checkpoint=str(home / "ck"))
    assert entered.wait(PATIENCE_SECONDS)
    stopper = threading.Thread(target=query.stop)
    stopper.start()
    assert query._stopping.wait(PATIENCE_SECONDS)
    stopping.set()
    stopper.join(PATIENCE_SECONDS)
    assert not query.is_active
    assert query.exception() is None
    assert len(seen) == len(query.telemetry) == 1
