"""Receipts of whole queries: read from the handle and by Spark, true to what came out, and watched."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import (
    PATIENCE_SECONDS,
    STREAM_SCHEMA,
    Sink,
    add_files,
    read_files,
    seconds,
    start_bounded,
    stream_table,
)
from tests.spark.test_goals import SCHEMA, UNREACHABLE, exact, joined, tables

import tidegate as tg
from tidegate.driver.frames import passes
from tidegate.model.reports import MatchReport, PartitionLoad, TaskReport, reports_in


def test_a_stream_with_many_readers_is_accounted_for_and_each_output_too(
    spark: SparkSession, tmp_path: Path
) -> None:
    on_time: list[tuple[int | None, int | None, int, int]] = [
        (seconds(t), t % 3 or None, t, t) for t in range(10)
    ]
    bad = [(None, 1, 90, 0), (None, 2, 91, 0)]
    add_files(
        tmp_path / "a",
        # Rows of the third batch are late by what the first brought, as in Spark.
        [
            stream_table([*on_time[:-1], *bad]),
            stream_table(on_time[-1:]),
            stream_table([(seconds(2), 1, 92, 5), (seconds(9), 0, 93, 9)]),
        ],
    )
    add_files(tmp_path / "b", [stream_table(on_time)])
    a, b = (
        tg.stream(
            read_files(spark, tmp_path / name, STREAM_SCHEMA), time="ts", name=name, lateness="0 seconds"
        )
        for name in ("a", "b")
    )
    pairs, windows, hits, straight, late = (
        Sink(name) for name in ("pairs", "windows", "hits", "straight", "late")
    )
    query = tg.start(
        a.filter("v < 8").join(b, on="k", within="2 seconds").write_to(pairs, name="pairs"),
        a.window("2 seconds").agg(n=F.count("*")).write_to(windows, name="windows"),
        a.match([tg.RangeQuery("some", where="v > 3")]).write_to(hits, name="hits"),
        a.write_to(straight, name="straight"),
        a.late.write_to(late, name="late"),
        checkpoint=str(tmp_path / "ck"),
        available_now=True,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    total = query.receipts(by="total").set_index(["kind", "name"])
    stream = total.loc["stream", "a"]
    assert (stream.rows_offered, stream.rows_processed) == (14, 11)
    assert (stream.rows_late, stream.rows_rejected) == (1, 2)
    assert total.loc["stream", "b"].rows_offered == 10
    assert set(total["mode"]) == {"EXACT"}
    for sink in (pairs, windows, hits, straight, late):
        assert total.loc["output", sink.__name__].rows_written == len(sink.rows), sink.__name__
    by_batch = query.receipts()
    first = by_batch[(by_batch.batch_id == 0) & (by_batch.name == "a")].iloc[0]
    readers = {line["reader"]: line["rows_filtered"] for line in first.readers}
    assert readers == {"a_b_k.left": 1, "a_window": 0, "a_match": 0}


@pytest.mark.parametrize("how", ["inner", "left"])
def test_rows_of_a_join_with_a_condition_are_counted(spark: SparkSession, tmp_path: Path, how: Any) -> None:
    add_files(tmp_path / "a", [stream_table([(seconds(t), t % 3, t, t) for t in range(9)])])
    add_files(tmp_path / "b", [stream_table([(seconds(t), t % 3, 8 - t, t) for t in range(9)])])
    a, b = (
        tg.stream(
            read_files(spark, tmp_path / name, STREAM_SCHEMA), time="ts", name=name, lateness="0 seconds"
        )
        for name in ("a", "b")
    )
    pairs, counts = Sink("pairs"), Sink("counts")
    near = a.join(b, on="k", how=how, within="3 seconds", where="v < 4", name="near")
    query = tg.start(
        near.write_to(pairs, name="pairs"),
        near.window("3 seconds").agg(n=F.count("*")).write_to(counts, name="counts"),
        checkpoint=str(tmp_path / "ck"),
        available_now=True,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    total = query.receipts(by="total").set_index(["kind", "name"])
    assert total.loc["output", "pairs"].rows_written == len(pairs.rows) > 0
    assert total.loc["output", "counts"].rows_offered == len(pairs.rows)


def test_a_join_that_skips_says_how_much_it_found_and_all_of_it_lies_in_the_checkpoint(
    spark: SparkSession, tmp_path: Path
) -> None:
    for seed, name in enumerate(("a", "b")):
        add_files(tmp_path / name, tables(seed))
    sink = Sink("pairs")

    def run() -> Any:
        query = start_bounded(
            joined(spark, tmp_path).select("n", "n_right").write_to(sink),
            checkpoint=str(tmp_path / "ck"),
            goal=UNREACHABLE,
            shed=tg.Shed(explore_ratio=1.0, join="adaptive"),
        )
        assert query.await_termination(PATIENCE_SECONDS)
        return query

    table = run().receipts()
    outputs = table[table.kind == "output"].set_index("batch_id")
    assert outputs["mode"].iloc[0] == "EXACT"
    assert outputs["mode"].iloc[-1] == "SUBSET"
    assert outputs.rows_written.sum() == len(sink.rows) < len(exact())
    for batch, rows in sink.batches.items():
        assert outputs.rows_written[batch] == len(rows)
    estimated = outputs[(outputs["mode"] == "SUBSET") & outputs.recall.notna()]
    assert len(estimated)
    assert all(estimated.recall_by_lag.map(len))
    # A second run has the receipts of the first, and Spark reads the same: a line a batch.
    add_files(tmp_path / "a", tables(3)[:1])
    again = run().receipts()
    assert again.head(len(table)).batch_id.tolist() == table.batch_id.tolist()
    lines = spark.read.json(str(tmp_path / "ck/receipts"))
    assert lines.count() == again.batch_id.nunique()
    flat = (
        lines.selectExpr("batch_id", "inline(rows)")
        .where("kind = 'output'")
        .agg(F.sum("rows_written"))
        .first()
    )
    assert flat is not None
    assert flat[0] == again[again.kind == "output"].rows_written.sum()


def test_rows_dropped_in_front_of_a_join_are_missed_and_counted(spark: SparkSession, tmp_path: Path) -> None:
    for seed, name in enumerate(("a", "b")):
        add_files(tmp_path / name, tables(seed))
    query = start_bounded(
        joined(spark, tmp_path).write_to(Sink("pairs"), name="pairs"),
        checkpoint=str(tmp_path / "ck"),
        goal=UNREACHABLE,
        shed=tg.Shed(join="random_drop"),
    )
    assert query.await_termination(PATIENCE_SECONDS)
    total = query.receipts(by="total").set_index("name")
    assert total.loc["a"].shed_reasons["random_drop"] == total.loc["a"].rows_shed > 0
    assert total.loc["pairs"].rows_shed == total.loc["a"].rows_shed + total.loc["b"].rows_shed
    assert total.loc["pairs"]["mode"] == "SUBSET"
    assert "random_drop" in total.loc["pairs"].loss_reasons
    rows = query.receipts()
    known = rows[(rows.name == "pairs") & (rows["mode"] == "SUBSET") & rows.recall.notna()]
    assert len(known)
    assert all((known.recall_low <= known.recall) & (known.recall <= known.recall_high))
    assert known.recall.min() < 1


def test_a_row_that_a_task_lost_is_found_by_the_watch(
    spark: SparkSession, wrong_receipts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgetful(texts: Iterable[str]) -> tuple[list[TaskReport], list[MatchReport]]:
        (report,), matches = reports_in(texts)
        (load,) = report.partitions
        lost = PartitionLoad(load.partition, (load.arrived[0] - 1, load.arrived[1]))
        return [replace(report, partitions=(lost,))], matches

    monkeypatch.setattr(passes, "reports_in", forgetful)
    frame = spark.createDataFrame(tables(0)[0].slice(0, 5).to_pandas(), SCHEMA)
    one, two = (tg.stream(frame, time="ts", name=name, lateness="0 seconds") for name in ("a", "b"))
    query = tg.start(one.join(two, on="k", within="1 second").write_to(Sink()), partitions=1, instances=1)
    assert query.receipts().set_index("name").loc["a"].rows_unexplained == 1
    assert any("stream a: the ledger does not balance" in one for one in wrong_receipts)
    wrong_receipts.clear()
