"""The latency of rows, from their availability to the publishing of their batch."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import PATIENCE_SECONDS, STREAM_SCHEMA, Sink, seconds, stream_table

import tidegate as tg
from tidegate.driver.engine.batch import BatchDone
from tidegate.driver.engine.engine import Engine
from tidegate.model.progress import LatencyProgress

#: More than the ten batches after which Spark compacts the log of a file source.
FILES = 13


class Measured:
    """By batch with rows: the latency after its commit, and when that was."""

    def __init__(self) -> None:
        self.batches: dict[int, tuple[LatencyProgress, float]] = {}

    @property
    def latencies(self) -> list[LatencyProgress]:
        return [latency for latency, _ in self.batches.values()]


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Measured:
    found, latency = Measured(), Engine.latency

    def kept(engine: Engine, done: BatchDone, published: float) -> LatencyProgress:
        one = latency(engine, done, published)
        if one.p50_seconds is not None:
            found.batches[done.batch] = one, published
        return one

    monkeypatch.setattr(Engine, "latency", kept)
    return found


def add_file(path: Path, rows: int, modified: float, first: int = 0) -> None:
    """A file that was modified at this time."""
    path.parent.mkdir(exist_ok=True, parents=True)
    table = stream_table([(seconds(first + n / rows), 1, n, n) for n in range(rows)])
    hidden = path.with_name("_" + path.name)
    pq.write_table(table, hidden, compression="none", use_dictionary=False)
    os.utime(hidden, (modified, modified))
    hidden.rename(path)


def read(spark: SparkSession, folder: Path, **options: Any) -> DataFrame:
    return spark.readStream.schema(STREAM_SCHEMA).options(**options).parquet(str(folder))


def stream(frame: DataFrame, name: str, **settings: Any) -> tg.Stream:
    return tg.stream(frame, time="ts", name=name, lateness="1 hour", **settings)


def run_to_the_end(written: tg.Stream, home: Path, **settings: Any) -> None:
    query = tg.start(written.write_to("noop", name="out"), checkpoint=str(home / "ck"), **settings)
    assert query.await_termination(PATIENCE_SECONDS)


def test_files_count_from_their_modification_across_compaction_and_a_restart(
    spark: SparkSession, tmp_path: Path, measured: Measured
) -> None:
    now = time.time()
    modified = [round(now) - 1000.0 + 7 * number for number in range(FILES + 2)]

    def more(numbers: range) -> None:
        for number in numbers:
            add_file(tmp_path / "in dir" / f"{number:02d}, x.parquet", 3, modified[number], number)
        frame = read(spark, tmp_path / "in dir", maxFilesPerTrigger=1)
        counted = stream(frame, "a").window("1 hour").agg(rows=F.count("*"))
        run_to_the_end(counted, tmp_path, available_now=True)

    more(range(FILES))
    more(range(FILES, FILES + 2))
    assert list((tmp_path / "ck").rglob("sources/0/9.compact"))
    assert len(measured.batches) == FILES + 2
    for (latency, published), moment in zip(measured.batches.values(), modified, strict=True):
        assert latency.basis == "file"
        assert latency.p50_seconds == pytest.approx(published - moment, abs=0.002)
        assert latency.max_seconds == latency.p95_seconds == latency.p50_seconds
        assert latency.goal_seconds is latency.overdue_ratio is None


def test_the_files_of_a_batch_are_weighted_by_their_bytes(
    spark: SparkSession, tmp_path: Path, measured: Measured
) -> None:
    old, new = round(time.time()) - 500.0, round(time.time()) - 100.0
    add_file(tmp_path / "a" / "small.parquet", 2_000, old)
    add_file(tmp_path / "a" / "large.parquet", 6_000, new)
    # Straight to an output, so that Spark reads the rows more than once.
    run_to_the_end(stream(read(spark, tmp_path / "a"), "a"), tmp_path, available_now=True)
    ((latency, published),) = measured.batches.values()
    assert latency.basis == "file"
    assert latency.p50_seconds == pytest.approx(published - new, abs=0.002)
    assert latency.p95_seconds == pytest.approx(published - old, abs=0.002)
    assert latency.max_seconds == latency.p95_seconds


def waited(frame: DataFrame, now: float, waits: Callable[[Any], Any], kind: str = "timestamp") -> DataFrame:
    """With a column `at`: so many seconds before `now`, as a function of the number of the row."""
    micros = F.lit(int(now * 1e6)) - waits(F.col("n")) * F.lit(10**6)
    return frame.withColumn("at", F.timestamp_micros(micros.cast("long")).cast(kind))


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_available_at_of_rows_goes_before_their_files_and_nulls_are_ignored(
    spark: SparkSession, tmp_path: Path, measured: Measured, kind: str
) -> None:
    add_file(tmp_path / "a" / "0.parquet", 1_000, time.time() - 9_000)
    began = time.time()
    with_nulls = waited(
        read(spark, tmp_path / "a"), began, lambda n: F.when(n % 5 > 0, F.floor(n / 10)), kind
    )
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        run_to_the_end(stream(with_nulls, "a", available_at="at"), tmp_path, available_now=True)
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(zone))
    ((latency, published),) = measured.batches.values()
    passed = published - began
    assert latency.basis == "record"
    assert latency.p50_seconds == pytest.approx(49.5 + passed, abs=1.5)
    assert latency.p95_seconds == pytest.approx(94.5 + passed, abs=1.5)
    assert latency.max_seconds == pytest.approx(99 + passed, abs=0.1)


def test_streams_are_pooled_by_rows_and_the_weakest_basis_is_reported(
    spark: SparkSession, tmp_path: Path, measured: Measured
) -> None:
    modified = round(time.time()) - 5_000.0
    add_file(tmp_path / "few" / "0.parquet", 200, modified)
    add_file(tmp_path / "many" / "0.parquet", 1_800, modified)
    began = time.time()
    few = stream(read(spark, tmp_path / "few"), "few")
    many = stream(
        waited(read(spark, tmp_path / "many"), began, lambda n: F.lit(60)), "many", available_at="at"
    )
    pairs = few.join(many, on="n", within="1 hour")
    run_to_the_end(pairs, tmp_path, available_now=True)
    ((latency, published),) = measured.batches.values()
    assert latency.basis == "file"
    assert latency.p50_seconds == pytest.approx(60 + published - began, abs=0.1)
    assert latency.p95_seconds == latency.max_seconds == pytest.approx(published - modified, abs=0.002)


def test_a_stream_that_is_null_in_every_row_falls_back_to_its_files(
    spark: SparkSession, tmp_path: Path, measured: Measured
) -> None:
    modified = round(time.time()) - 300.0
    add_file(tmp_path / "a" / "0.parquet", 10, modified)
    empty = waited(read(spark, tmp_path / "a"), modified, lambda n: F.lit(None))
    run_to_the_end(stream(empty, "a", available_at="at"), tmp_path, available_now=True)
    ((latency, published),) = measured.batches.values()
    assert latency.basis == "file"
    assert latency.max_seconds == pytest.approx(published - modified, abs=0.002)


def test_a_source_without_files_counts_from_the_trigger_and_its_rows_from_their_own_time(
    spark: SparkSession, tmp_path: Path, measured: Measured
) -> None:
    def some_rows(home: Path, **settings: Any) -> list[LatencyProgress]:
        rate = spark.readStream.format("rate").option("rowsPerSecond", 20).load()
        # Two outputs of one stream: rows are measured on one branch, and once.
        a = tg.stream(rate, time="timestamp", name="a", lateness="1 hour", **settings)
        counted = a.window("1 hour").agg(rows=F.count("*"))
        measured.batches.clear()
        query = tg.start(
            counted.write_to(Sink(), name="windows"),
            a.filter("value % 2 = 0").write_to("noop", name="rows"),
            checkpoint=str(home),
            trigger="1 second",
        )
        try:
            until = time.monotonic() + PATIENCE_SECONDS
            while len(measured.batches) < 3 and time.monotonic() < until:
                time.sleep(0.1)
        finally:
            query.stop()
        assert query.exception() is None
        return measured.latencies

    for latency in some_rows(tmp_path / "plain"):
        assert latency.basis == "trigger"
        assert latency.p50_seconds == latency.max_seconds
        assert 0 < (latency.max_seconds or 0.0) < 60
    for latency in some_rows(tmp_path / "timed", available_at="timestamp"):
        assert latency.basis == "record"
        p50, p95, longest = (latency.p50_seconds, latency.p95_seconds, latency.max_seconds)
        assert 0 < (p50 or 0.0) < (p95 or 0.0) <= (longest or 0.0)


def test_a_batch_run_counts_from_its_beginning_or_from_available_at(
    spark: SparkSession, tmp_path: Path, measured: Measured
) -> None:
    rows = spark.createDataFrame(stream_table([(seconds(n), 1, n, n) for n in range(100)]))
    written = stream(rows, "a").write_to("noop", name="out")
    tg.start(written)
    timed = stream(waited(rows, time.time(), lambda n: F.lit(50)), "a", available_at="at").write_to(
        "noop", name="out"
    )
    plain = measured.latencies
    tg.start(timed)
    assert [one.basis for one in plain] == ["trigger"]
    assert [one.basis for one in measured.latencies] == ["record"]
    assert measured.latencies[0].p50_seconds == pytest.approx(52, abs=8)


def test_available_at_must_be_a_timestamp(spark: SparkSession) -> None:
    rows = spark.createDataFrame(stream_table([(seconds(0), 1, 1, 1)]))
    with pytest.raises(tg.FlowError, match="'n': bigint") as raised:
        tg.start(stream(rows, "a", available_at="n").write_to("noop", name="out"))
    assert raised.value.code == "STREAM_AVAILABLE_AT_TYPE"
