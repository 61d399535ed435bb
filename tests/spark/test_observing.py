"""Goals that only observe, and goals of running queries: exact where nothing is shed, with true receipts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession
from tests.spark.flows import PATIENCE_SECONDS, Sink, add_files, read_files, start_bounded
from tests.spark.test_goals import FILES, SCHEMA, UNREACHABLE, WINDOW, exact, joined, tables
from tests.unit.messages.expecting import expect

import tidegate as tg
from tidegate.model.receipts import Receipt
from tidegate.state.checkpoint import Checkpoint

OBSERVED = tg.Goal(latency="20 milliseconds", observe=True)


def fill(home: Path, first: int = 0, last: int = FILES) -> None:
    for seed, name in enumerate(("a", "b")):
        add_files(home / name, tables(seed)[first:last])


def test_an_observed_join_is_exact_and_says_what_it_would_have_lost(
    spark: SparkSession, tmp_path: Path
) -> None:
    fill(tmp_path)
    sink, checkpoint = Sink(), str(tmp_path / "ck")
    out = joined(spark, tmp_path).select("n", "n_right").write_to(sink, name="out")
    query = start_bounded(out, checkpoint=checkpoint, goal=OBSERVED)
    assert query.await_termination(PATIENCE_SECONDS)
    assert len(sink.rows) == len(exact())
    assert set(sink.rows) == exact()
    last = query.recent_progress[FILES - 1]
    assert last.would_shed is not None
    join, output = last.would_shed.operators["near"], last.would_shed.outputs["out"]
    assert join.probe_ratio is not None
    assert 0 < join.probe_ratio < 1
    assert join.pairs_skipped
    assert 0 < output.loss_ratio < 1
    assert output.recall == 1 - output.loss_ratio
    assert (last.outputs["out"].mode, last.outputs["out"].complete) == ("EXACT", True)
    assert last.operators["near"].probe_ratio == 1.0
    assert json.loads(last.json)["would_shed"]["outputs"]["out"]["loss_ratio"] == output.loss_ratio
    receipts = query.receipts()
    assert set(receipts["mode"]) == {"EXACT"}
    assert not receipts["rows_shed"].any()
    total = query.receipts(by="total").set_index("name").loc["out"]
    assert 0 < total["would_loss_ratio"] < 1
    assert total["would_recall"] == pytest.approx(1 - total["would_loss_ratio"])
    assert total["would_pairs_skipped"] == receipts["would_pairs_skipped"].sum() > 0
    assert "would" in query.explain_shedding()
    plan = Checkpoint(checkpoint).plans.read(last.batch_id)
    assert plan is not None
    assert plan.shed.would is not None
    assert plan.shed.skipping["near"].fraction == 1.0
    assert plan.shed.would.skipping["near"].fraction < 1.0


def test_observed_windows_matches_and_estimates_are_exact(spark: SparkSession, tmp_path: Path) -> None:
    fill(tmp_path)
    rows = pd.concat(one.to_pandas() for one in tables(0))
    a = tg.stream(read_files(spark, tmp_path / "a", SCHEMA), time="ts", name="a", lateness="0 seconds")
    b = tg.stream(read_files(spark, tmp_path / "b", SCHEMA), time="ts", name="b", lateness="0 seconds")
    sinks = {name: Sink(name) for name in ("whole", "rough", "hits")}
    whole = a.window("500 milliseconds", by="k", name="whole_windows").agg(n="count(*)")
    rough = a.window("1 second", by="k", name="rough_windows", approximate=True).agg(n="count(*)")
    hits = b.match([tg.RangeQuery("low", "k between 0 and 4")], name="matches")
    query = start_bounded(
        whole.select("window_start", "k", "n").write_to(sinks["whole"], name="whole", max_gap=2),
        rough.select("window_start", "k", "n").write_to(sinks["rough"], name="rough"),
        hits.select("n").write_to(sinks["hits"], name="hits"),
        checkpoint=tmp_path / "ck",
        goal=OBSERVED,
        # Given, so that what would be shed does not depend on the speed of the machine.
        shed=tg.Shed(rate=0.5, window=0.5),
    )
    assert query.await_termination(PATIENCE_SECONDS)
    for name, size in (("whole", "500ms"), ("rough", "1s")):
        closed = {start for start, _, _ in sinks[name].rows}
        counts = rows.groupby([rows["ts"].dt.floor(size), "k"]).size()
        wanted = {(k, n) for (_, k), n in counts.items()}
        assert len(closed) >= 6
        assert {(k, round(float(n))) for _, k, n in sinks[name].rows} <= wanted
        assert sum(round(float(n)) for *_, n in sinks[name].rows) >= 0.8 * len(rows)
    others = pd.concat(one.to_pandas() for one in tables(1))
    assert sorted(n for (n,) in sinks["hits"].rows) == sorted(others["n"][others["k"] <= 4])
    receipts = query.receipts(by="total").set_index("name")
    assert set(receipts["mode"]) == {"EXACT"}
    assert receipts.loc["whole", "would_windows_missing"] > 0
    assert 0 < receipts.loc["whole", "would_loss_ratio"] <= 1
    assert 0 < receipts.loc["rough", "would_loss_ratio"] < 1
    assert 0 < receipts.loc["hits", "would_loss_ratio"] < 1
    assert receipts.loc["a", "would_rows_shed"] > 0
    assert receipts.loc["b", "would_rows_shed"] > 0


def test_the_goal_of_a_running_query_comes_and_goes(spark: SparkSession, tmp_path: Path) -> None:
    """None, a goal that sheds, one that observes, and none again: five files of each stream under each."""
    sink, checkpoint = Sink(), str(tmp_path / "ck")
    parts = [some.slice(at, 60) for some in (tables(0),) for some in some for at in range(0, 300, 60)]
    others = [some.slice(at, 60) for some in tables(1) for at in range(0, 300, 60)]
    for name in "ab":
        add_files(tmp_path / name, [])

    def started(goal: tg.Goal | None) -> tg.StreamingQuery:
        out = joined(spark, tmp_path).select("n", "n_right").write_to(sink, name="out")
        return tg.start(out, checkpoint=checkpoint, goal=goal)

    def bring(query: tg.StreamingQuery, first: int, last: int) -> int:
        """Process these files; the number of the last batch."""
        for name, some in (("a", parts), ("b", others)):
            add_files(tmp_path / name, some[first:last])
        query.process_all_available()
        assert query.last_progress is not None
        return query.last_progress.batch_id

    ends: list[int] = []
    with started(None) as query:
        ends.append(bring(query, 0, 6))
        for goal, first, last in ((UNREACHABLE, 6, 16), (OBSERVED, 16, 24), (None, 24, 30)):
            query.set_goal(goal)
            ends.append(bring(query, first, last))
        expect("GOAL_LATENCY_ZERO", lambda: query.set_goal(tg.Goal("0 seconds")))
        expect("START_SETTING_TYPE", lambda: query.set_goal("1 second"))  # type: ignore[arg-type]
        receipts = {one["batch_id"]: one for one in outputs(query)}
    with started(UNREACHABLE) as query:
        ends.append(bring(query, 30, 35))
        after = {one["batch_id"]: one for one in outputs(query)}
    modes = [
        {one["mode"] for number, one in receipts.items() if low < number <= high}
        for low, high in zip([-1, *ends], ends[:-1], strict=False)
    ]
    assert modes == [{"EXACT"}, {"EXACT", "SUBSET"}, {"EXACT"}, {"EXACT"}]
    would = {number for number, one in receipts.items() if not pd.isna(one["would_loss_ratio"])}
    assert would <= set(range(ends[1] + 1, ends[2] + 1))
    assert any(receipts[number]["would_loss_ratio"] > 0 for number in would)
    assert set(sink.rows) < exact()
    assert len(set(sink.rows)) == len(sink.rows)
    # Pairs are lost in the batches that say so and in no other.
    found = {number: one["rows_written"] for number, one in (receipts | after).items()}
    assert sum(found.values()) == len(sink.rows)
    lossy = [number for number, one in receipts.items() if one["mode"] == "SUBSET"]
    assert set(lossy) <= set(range(ends[0] + 1, ends[1] + 1))


def outputs(query: tg.StreamingQuery) -> list[dict[str, Any]]:
    frame = query.receipts()
    rows: list[dict[str, Any]] = frame[frame["kind"] == "output"].to_dict("records")
    assert {"would_loss_ratio", "would_recall"} <= {*Receipt.__dataclass_fields__}
    return rows


def test_a_goal_that_cannot_be_kept_is_refused_as_at_the_start(spark: SparkSession, tmp_path: Path) -> None:
    fill(tmp_path, 0, 1)
    outer = joined(spark, tmp_path, "left").select("n", "n_right").write_to(Sink(), name="out")
    with tg.start(outer, checkpoint=str(tmp_path / "ck"), trigger="1 second") as query:
        expect("GOAL_NOTHING_TO_SHED", lambda: query.set_goal(tg.Goal("3 seconds")))
        query.set_goal(None)
    inner = joined(spark, tmp_path).select("n", "n_right").write_to(Sink(), name="out")
    with tg.start(inner, checkpoint=str(tmp_path / "inner"), trigger="1 second") as query:
        expect("GOAL_LATENCY_BELOW_TRIGGER", lambda: query.set_goal(tg.Goal("1 second")))
    ended = joined(spark, tmp_path).select("n").write_to(Sink(), name="ended")
    with tg.start(ended, checkpoint=str(tmp_path / "ended"), available_now=True) as query:
        expect("AVAILABLE_NOW_WITH_GOAL", lambda: query.set_goal(tg.Goal("3 seconds")))
        assert query.await_termination(PATIENCE_SECONDS)
    expect("SET_GOAL_NOT_RUNNING", lambda: query.set_goal(None))
    assert WINDOW.total_seconds() == 2
