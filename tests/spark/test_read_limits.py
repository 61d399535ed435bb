"""What a batch takes of its sources: bounded while the query runs, never more than the user allows."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from tests.spark.flows import EPOCH_US, PATIENCE_SECONDS, Sink, add_files, start_bounded

import tidegate as tg
from tidegate.control.goal.backpressure import Backpressure, TakenRows
from tidegate.driver.frames.query_input import streaming_leaves
from tidegate.driver.io import read_limits
from tidegate.driver.quiet_logs import QuietLogs
from tidegate.driver.streaming_query import StreamingQuery

SCHEMA = "ts timestamp, n long, k long"
FILES, ROWS = 40, 50
WINDOW_SECONDS = 2


def table(name: str, part: int) -> pa.Table:
    """A second of a stream; one of them has five times the rows."""
    rows = ROWS if name == "few" else 5 * ROWS
    random = np.random.default_rng([part, rows])
    at = EPOCH_US + part * 10**6 + np.sort(random.integers(0, 10**6, rows))
    return pa.table(
        {
            "ts": pa.array(at, pa.timestamp("us", tz="UTC")),
            "n": pa.array(np.arange(part * rows, (part + 1) * rows)),
            "k": pa.array(random.integers(0, 50, rows)),
        }
    )


def exact() -> set[tuple[int, int]]:
    few, many = (
        pa.concat_tables([table(name, part) for part in range(FILES)]).to_pandas() for name in ("few", "many")
    )
    pairs = few.merge(many, on="k", suffixes=("", "_right"))
    near = (pairs["ts"] - pairs["ts_right"]).abs() <= np.timedelta64(WINDOW_SECONDS, "s")
    return set(zip(pairs["n"][near].tolist(), pairs["n_right"][near].tolist(), strict=True))


def apart(progress: dict[str, Any]) -> float:
    """Seconds of event time between the two streams."""
    few, many = (datetime.fromisoformat(progress["watermarks"][name]) for name in ("few", "many"))
    return abs((few - many).total_seconds())


def start(spark: SparkSession, home: Path, sink: Sink, trigger: str | None, **options: Any) -> StreamingQuery:
    """A query with a goal; without a trigger, over what is available."""
    few, many = (
        tg.stream(
            spark.readStream.schema(SCHEMA).options(**options).parquet(str(home / name)),
            time="ts",
            name=name,
            lateness="60 seconds",
        )
        for name in ("few", "many")
    )
    pairs = few.join(many, on="k", within=f"{WINDOW_SECONDS} seconds").select("n", "n_right")
    goal = tg.Goal(latency="10 minutes")
    if trigger is None:
        return start_bounded(pairs.write_to(sink), checkpoint=home / "ck", goal=goal)
    return tg.start(pairs.write_to(sink), checkpoint=home / "ck", trigger=trigger, goal=goal)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in ("few", "many"):
        add_files(tmp_path / name, [table(name, part) for part in range(FILES)])
    return tmp_path


def stop_when_complete(query: StreamingQuery, sink: Sink) -> None:
    """Stop the query when all pairs are there, or after a long time."""
    until = time.monotonic() + PATIENCE_SECONDS
    try:
        while len(sink.rows) < len(exact()) and time.monotonic() < until:
            time.sleep(0.2)
    finally:
        query.stop()


def test_a_backlog_is_worked_off_in_batches_that_fit_and_no_row_is_missed(
    spark: SparkSession, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = (home / "many" / "0000.parquet").stat().st_size
    # As if two files were all that fits at first.
    monkeypatch.setattr(read_limits, "_FIRST_BYTES", 2 * size)
    sink = Sink()
    query = start(spark, home, sink, "200 milliseconds")
    stop_when_complete(query, sink)
    assert sorted(sink.rows) == sorted(exact())
    told = [one for one in query.telemetry if one["input_rows"]]
    # Before anything is known, batches are small; then they are as large as there is time for.
    assert told[0]["offered"]["many"] <= 2 * 5 * ROWS
    assert max(one["offered"]["many"] for one in told) > 2 * 5 * ROWS
    assert told[0]["goal"]["waiting"] > 0
    assert told[-1]["goal"]["waiting"] == 0
    limited = [one for one in told if one["goal"]["limits"]]
    assert limited
    assert all(set(one["goal"]["limits"]) == {"few", "many"} for one in limited)


def test_the_first_batch_waits_for_its_limit_however_long_the_rest_of_the_start_takes(
    spark: SparkSession, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A warm Java plans its first batch within milliseconds, and a start makes dozens of calls into Java.
    size = (home / "many" / "0000.parquet").stat().st_size
    monkeypatch.setattr(read_limits, "_FIRST_BYTES", 2 * size)
    hide_run = QuietLogs.hide_run

    def slowly(self: QuietLogs, query_id: str, run_id: str) -> None:
        time.sleep(1)
        hide_run(self, query_id, run_id)

    monkeypatch.setattr(QuietLogs, "hide_run", slowly)
    query = start(spark, home, Sink(), "200 milliseconds")
    try:
        until = time.monotonic() + PATIENCE_SECONDS
        while not query.telemetry and time.monotonic() < until:
            time.sleep(0.05)
    finally:
        query.stop()
    assert query.telemetry[0]["offered"]["many"] <= 2 * 5 * ROWS


def test_streams_are_let_in_up_to_the_same_event_time(
    spark: SparkSession, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = (home / "few" / "0000.parquet").stat().st_size
    monkeypatch.setattr(read_limits, "_FIRST_BYTES", 4 * size)
    sink = Sink()
    query = start(spark, home, sink, "200 milliseconds")
    stop_when_complete(query, sink)
    assert sorted(sink.rows) == sorted(exact())
    assert all(one["shed"]["few_many_k"]["fraction"] == 1 for one in query.telemetry)
    told = [one for one in query.telemetry if one["input_rows"]]
    assert len(told) > 3
    # At first the same bytes, which is a longer time of one than of the other; then the same time.
    limited = [one for one in told if one["goal"]["limits"]]
    cold, first, *later = limited[max(range(len(limited)), key=lambda number: apart(limited[number])) :]
    assert apart(cold) > 3
    # The next batch is still small, so it makes up for a part of the distance; those after it for all.
    assert apart(first) < 0.6 * apart(cold)
    assert later
    assert max(map(apart, later)) <= 2


class Numbers(DataSource):
    """Five thousand rows, at most a thousand in a batch."""

    @classmethod
    def name(cls) -> str:
        return "numbers"

    def schema(self) -> str:
        return "n long"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
        return NumberReader()


class NumberReader(DataSourceStreamReader):
    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"n": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(1_000)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else 5_000
        return {"n": min(5_000, start["n"] + most)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition((start["n"], end["n"]))]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        return ((number,) for number in range(*partition.value))

    def commit(self, end: dict[str, int]) -> None:
        pass


def test_a_source_in_python_is_told_what_it_may_give(spark: SparkSession, tmp_path: Path) -> None:
    spark.dataSource.register(Numbers)
    frame, taken, ready = spark.readStream.format("numbers").load(), [], threading.Event()

    def take(rows: DataFrame, batch: int) -> None:
        ready.wait(PATIENCE_SECONDS)
        taken.append(limits.taken("a", rows.count(), None))
        limits.set({"a": 300 * (batch + 1)})

    assert streaming_leaves(frame) == 1
    writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "ck"))
    query = writer.start()
    try:
        with read_limits.before_the_first_batch(query._jsq, spark):
            limits = read_limits.ReadLimits(query._jsq, spark, ["a"])
            limits.begin({})
        ready.set()
        query.processAllAvailable()
    finally:
        ready.set()
        query.stop()
    # As the user allows, then as it is told, and never more than the user allows.
    assert [one.rows for one in taken] == [1_000, 300, 600, 900, 1_000, 1_000, 200]
    assert [one.units for one in taken] == [one.rows for one in taken]
    assert {one.most for one in taken} == {1_000}


def test_the_first_batch_of_another_run_takes_what_the_last_run_decided(
    spark: SparkSession, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = (home / "many" / "0000.parquet").stat().st_size
    monkeypatch.setattr(read_limits, "_FIRST_BYTES", 2 * size)
    # However much would fit: two files of each stream.
    monkeypatch.setattr(Backpressure, "limits", lambda self, fits: {"few": 2, "many": 2})
    query = start(spark, home, Sink(), "200 milliseconds")
    try:
        until = time.monotonic() + PATIENCE_SECONDS
        while not (query.telemetry or [{}])[-1].get("goal", {}).get("limits") and time.monotonic() < until:
            time.sleep(0.05)
    finally:
        query.stop()
    assert query.telemetry[-1]["goal"]["waiting"] > 0
    # Another run that knew nothing would take all that there is.
    monkeypatch.setattr(read_limits, "_FIRST_BYTES", FILES * size)
    query = start(spark, home, Sink(), "200 milliseconds")
    try:
        until = time.monotonic() + PATIENCE_SECONDS
        while not query.telemetry and time.monotonic() < until:
            time.sleep(0.05)
    finally:
        query.stop()
    # Files that Spark had listed, but not yet written into its offset log when it was stopped, come on top.
    assert query.telemetry[0]["offered"]["few"] in (2 * ROWS, 4 * ROWS)
    assert query.telemetry[0]["offered"]["many"] in (2 * 5 * ROWS, 4 * 5 * ROWS)


def test_what_the_user_allows_is_never_exceeded(spark: SparkSession, home: Path) -> None:
    sink = Sink()
    query = start(spark, home, sink, None, maxFilesPerTrigger=8)
    assert query.await_termination(PATIENCE_SECONDS)
    assert sorted(sink.rows) == sorted(exact())
    offered = [one["offered"]["few"] for one in query.telemetry if one["input_rows"]]
    assert max(offered) <= 8 * ROWS


def test_files_of_a_batch_are_counted_though_spark_compacts_its_log_every_ten_batches(
    spark: SparkSession, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[TakenRows] = []
    taken = read_limits.ReadLimits.taken

    def noted(self: read_limits.ReadLimits, stream: str, rows: int, newest_us: int | None) -> TakenRows:
        seen.append(taken(self, stream, rows, newest_us))
        return seen[-1]

    monkeypatch.setattr(read_limits.ReadLimits, "taken", noted)
    query = start(spark, home, Sink(), None, maxFilesPerTrigger=2)
    assert query.await_termination(PATIENCE_SECONDS)
    assert len([one for one in seen if one.rows]) == 2 * FILES // 2
    assert {one.units for one in seen if one.rows} == {2}
