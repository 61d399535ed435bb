"""A run over what is available now settles once, in a commit of its own behind the last batch."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import (
    PATIENCE_SECONDS,
    STREAM_SCHEMA,
    Sink,
    add_files,
    read_files,
    seconds,
    stream_table,
)

import tidegate as tg
from tidegate.model.manifest import Manifest
from tidegate.state.checkpoint import Checkpoint


def add(folder: Path, *times: float, first: int = 0) -> None:
    """A file per row, so a batch per row."""
    add_files(folder, [stream_table([(seconds(at), 1, first + n, 0)]) for n, at in enumerate(times)])


def lonely(spark: SparkSession, home: Path) -> tg.Stream:
    """Rows of `a` that are alone for a second before and behind them, counted per minute: a chain of two."""
    a, b = (
        tg.stream(read_files(spark, home / name, STREAM_SCHEMA), time="ts", name=name, lateness="0 seconds")
        for name in "ab"
    )
    near = a.join(b, on="k", within="1 second", how="left", name="near")
    return near.window("1 minute", name="busy").agg(
        rows=F.count("*"), alone=F.count_if(F.col("n_right").isNull())
    )


def counts(sink: Sink) -> list[tuple[int, int]]:
    """Rows and lonely rows per minute, in the order of minutes."""
    return [row[-2:] for row in sorted(sink.rows)]


def start(home: Path, *outputs: tg.Output, **settings: Any) -> tg.StreamingQuery:
    given = {"available_now": True, "instances": 2, **settings}
    return tg.start(*outputs, checkpoint=str(home / "ck"), **given)


def newest(home: Path) -> Manifest:
    found = Checkpoint(str(home / "ck")).manifests.load_latest()
    assert found is not None
    return found


def numbers(home: Path) -> tuple[int, int]:
    """The last commit, and the last batch of Spark in it."""
    return newest(home).batch, newest(home).spark_batch.number


def test_the_last_commit_settles_and_the_next_run_goes_on_behind_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    for name, times in {"a": (0, 10, 70, 200), "b": (10, 71, 200)}.items():
        add(tmp_path / name, *times)
    sink = Sink()

    def outputs() -> list[tg.Output]:
        flow = lonely(spark, tmp_path)
        return [
            flow.write_to(sink, name="out"),
            flow.write_to("parquet", str(tmp_path / "out"), name="files"),
        ]

    first = start(tmp_path, *outputs())
    assert first.await_termination(PATIENCE_SECONDS)
    batch, spark_batch = numbers(tmp_path)
    assert batch == spark_batch + 1, "one commit without a batch of Spark"
    assert counts(sink) == [(2, 1), (1, 0)]
    told = first.recent_progress
    assert [progress.batch_id for progress in told] == list(range(batch + 1))
    assert not any(one.rows_offered for one in told[-1].inputs.values())
    assert first.receipts()["batch_id"].max() == batch
    assert [one["settled"] for one in first.telemetry][-2:] == [False, True]

    again = start(tmp_path, *outputs())
    assert again.await_termination(PATIENCE_SECONDS)
    assert len(counts(sink)) == 2
    assert numbers(tmp_path)[1] == spark_batch, "no rows came"
    assert numbers(tmp_path)[0] == batch, "nothing was due"
    assert all(progress.batch_id == batch + 1 for progress in again.recent_progress)

    add(tmp_path / "a", 201, 290, 400, first=10)
    add(tmp_path / "b", 290.5, 400, first=10)
    last = start(tmp_path, *outputs())
    assert last.await_termination(PATIENCE_SECONDS)
    assert counts(sink) == [(2, 1), (1, 0), (2, 0), (1, 0)]
    assert sorted(tuple(row)[2:4] for row in spark.read.parquet(str(tmp_path / "out")).collect()) == sorted(
        counts(sink)
    )


def test_a_settling_commit_that_failed_is_finished_by_the_next_start_whatever_it_asks_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    for name, times in {"a": (0, 70), "b": (70,)}.items():
        add(tmp_path / name, *times)
    sink, broken, tried = Sink(), [True], list[int]()

    def fragile(frame: DataFrame, batch: int) -> None:
        tried.append(batch)
        if broken and frame.count():
            raise ValueError("the sink is broken")
        sink(frame, batch)

    failed = start(tmp_path, lonely(spark, tmp_path).write_to(fragile, name="out"))
    with pytest.raises(tg.BatchFailed, match="the sink is broken") as caught:
        failed.await_termination(PATIENCE_SECONDS)
    assert failed.exception() is caught.value
    before = newest(tmp_path)
    assert before.batch == before.spark_batch.number
    assert caught.value.details["batch_id"] == before.batch + 1 == tried[-1]
    with pytest.raises(tg.BatchFailed, match="the sink is broken"):
        start(tmp_path, lonely(spark, tmp_path).write_to(fragile, name="out"))

    broken.clear()
    heard: list[str] = []

    class Listener(tg.Listener):
        def on_start(self, query: tg.StreamingQuery) -> None:
            heard.append("start")

        def on_progress(self, query: tg.StreamingQuery, progress: Any) -> None:
            heard.append(f"{progress.query_id == query.id} {progress.batch_id}")

    listener = Listener()
    tg.add_listener(listener)
    try:
        query = start(
            tmp_path,
            lonely(spark, tmp_path).write_to(fragile, name="out"),
            available_now=False,
            trigger="1 hour",
            instances=1,
        )
        assert numbers(tmp_path)[0] > before.batch
        query.stop()
    finally:
        tg.remove_listener(listener)
    assert counts(sink) == [(1, 1)]
    assert set(sink.batches) >= {before.batch + 1}
    assert heard[:2] == ["start", f"True {before.batch + 1}"]


def test_a_query_that_is_stopped_does_not_settle(spark: SparkSession, tmp_path: Path) -> None:
    for name, times in {"a": (0, 70, 80, 90), "b": (70, 80)}.items():
        add(tmp_path / name, *times)
    sink = Sink()

    def slow(frame: DataFrame, batch: int) -> None:
        sink(frame, batch)
        time.sleep(1)

    query = start(tmp_path, lonely(spark, tmp_path).write_to(slow, name="out"))
    while not sink.batches:
        time.sleep(0.01)
    query.stop()
    batch, spark_batch = numbers(tmp_path)
    assert batch == spark_batch
    assert not sink.rows
    again = start(tmp_path, lonely(spark, tmp_path).write_to(slow, name="out"))
    again.process_all_available()
    assert again.await_termination(PATIENCE_SECONDS)
    assert counts(sink) == [(1, 1)]


def test_a_spark_log_that_was_lost_behind_one_batch_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    add(tmp_path / "a", 0)
    add(tmp_path / "b", 0)
    first = start(tmp_path, lonely(spark, tmp_path).write_to(Sink(), name="out"))
    assert first.await_termination(PATIENCE_SECONDS)
    known = newest(tmp_path).spark_batch
    offsets = tmp_path / "ck/spark/offsets" / str(known.number)
    assert known.checksum
    offsets.write_bytes(offsets.read_bytes() + b" ")
    with pytest.raises(tg.StateError, match=f"CHECKPOINT_SPARK_BATCH_CHANGED.*offsets/{known.number} "):
        start(tmp_path, lonely(spark, tmp_path).write_to(Sink(), name="out"))
