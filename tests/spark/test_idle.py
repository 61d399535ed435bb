"""An idle query writes nothing of its own, and whatever becomes due, or comes, finds it awake."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
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
from tidegate.state.checkpoint import Checkpoint


def add(folder: Path, *times: float, first: int = 0) -> None:
    add_files(folder, [stream_table([(seconds(at), 1, first + n, 0) for n, at in enumerate(times)])])


def start(spark: SparkSession, home: Path, sink: Sink, **settings: Any) -> tg.StreamingQuery:
    """Rows of `a` with their partners in `b`, if they have one."""
    idle = settings.pop("idle_timeout", None)
    a, b = (
        tg.stream(
            read_files(spark, home / name, STREAM_SCHEMA),
            time="ts",
            name=name,
            lateness="0 seconds",
            idle_timeout=idle if name == "b" else None,
        )
        for name in "ab"
    )
    near = a.join(b, on="k", within="1 second", how="left", name="near")
    given = {"trigger": "0.2 seconds", "instances": 2, "partitions": 4, **settings}
    return tg.start(near.write_to(sink, name="out"), checkpoint=str(home / "ck"), **given)


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def pairs(sink: Sink) -> list[tuple[int, bool]]:
    """The number of every row of `a` that came out, and whether it had a partner."""
    return sorted((row[2], row[4] is not None) for row in sink.rows)


def is_idle(query: tg.StreamingQuery) -> bool:
    return bool(query.telemetry and query.telemetry[-1].get("idle"))


def ours(home: Path) -> set[str]:
    """The files of the checkpoint that are not Spark's, with their times."""
    files = [path for path in (home / "ck").rglob("*") if path.is_file() and "spark" not in path.parts]
    return {f"{path} {path.stat().st_mtime_ns}" for path in files if path.name != "lock"}


def spark_batch(home: Path) -> int:
    return max(int(path.name) for path in (home / "ck/spark/commits").iterdir() if path.name.isdigit())


def committed(home: Path) -> tuple[int, int]:
    """The last commit, and the last batch of Spark in it."""
    found = Checkpoint(str(home / "ck")).manifests.load_latest()
    assert found is not None
    return found.batch, found.spark_batch.number


def test_an_idle_query_writes_nothing_and_goes_on_when_rows_come(spark: SparkSession, tmp_path: Path) -> None:
    add(tmp_path / "a", 0, 10)
    add(tmp_path / "b", 10, 20)
    sink = Sink()
    query = start(spark, tmp_path, sink)
    query.process_all_available()
    assert pairs(sink) == [(0, False), (1, True)]
    until(lambda: is_idle(query))
    files, number, told = ours(tmp_path), spark_batch(tmp_path), query.last_progress
    known = len(query.recent_progress)
    commit, taken = committed(tmp_path)
    until(lambda: spark_batch(tmp_path) >= number + 4)
    assert ours(tmp_path) == files
    assert committed(tmp_path) == (commit, taken)
    # It still reports, and waits for all that is available.
    assert told is not None
    assert query.last_progress is not None
    assert query.last_progress.started_at > told.started_at
    assert query.last_progress.batch_id == told.batch_id == commit + 1
    assert len(query.recent_progress) == known
    assert query.last_progress.operators["near"].state_rows == told.operators["near"].state_rows > 0
    query.process_all_available()

    add(tmp_path / "a", 20, 30, first=10)
    query.process_all_available()
    assert pairs(sink) == [(0, False), (1, True), (10, True)]
    after, with_rows = committed(tmp_path)
    assert commit < after <= commit + 3
    assert with_rows > taken + 4, "idle batches left a gap"
    batches = [progress.batch_id for progress in query.recent_progress]
    assert [batch for batch in batches if batch <= after] == list(range(after + 1))

    # A start behind a gap, whose first entries Spark may have deleted.
    until(lambda: spark_batch(tmp_path) >= with_rows + 3)
    query.stop()
    (tmp_path / f"ck/spark/offsets/{with_rows}").unlink()
    add(tmp_path / "b", 30, first=10)
    again = start(spark, tmp_path, sink)
    again.process_all_available()
    until(lambda: is_idle(again))
    again.stop()
    assert pairs(sink) == [(0, False), (1, True), (10, True), (11, True)]
    assert committed(tmp_path)[0] > after


def test_an_idle_batch_that_spark_asks_for_again_is_idle_again(spark: SparkSession, tmp_path: Path) -> None:
    add(tmp_path / "a", 0, 10)
    add(tmp_path / "b", 10, 20)
    sink = Sink()
    query = start(spark, tmp_path, sink)
    query.process_all_available()
    number = spark_batch(tmp_path)
    until(lambda: is_idle(query) and spark_batch(tmp_path) > number + 1)
    query.stop()
    commit, _ = committed(tmp_path)
    last = spark_batch(tmp_path)
    for name in (f"{last}", f".{last}.crc"):
        (tmp_path / "ck/spark/commits" / name).unlink(missing_ok=True)
    again = start(spark, tmp_path, sink)
    until(lambda: spark_batch(tmp_path) > last)
    assert committed(tmp_path)[0] == commit
    add(tmp_path / "a", 20, first=10)
    again.process_all_available()
    again.stop()
    assert committed(tmp_path)[0] > commit
    assert pairs(sink) == [(0, False), (1, True), (10, True)]


def test_rows_that_wait_for_a_silent_stream_are_released_while_nothing_comes(
    spark: SparkSession, tmp_path: Path
) -> None:
    add(tmp_path / "a", 0, 10, 20)
    add(tmp_path / "b", 1)
    sink = Sink()
    with start(spark, tmp_path, sink, idle_timeout="4 seconds") as query:
        until(lambda: is_idle(query))
        until(lambda: pairs(sink) == [(0, True), (1, False)])
        until(lambda: is_idle(query))


def test_another_number_of_instances_is_carried_out_while_nothing_comes(
    spark: SparkSession, tmp_path: Path
) -> None:
    add(tmp_path / "a", 0, 10)
    add(tmp_path / "b", 10, 20)
    with start(spark, tmp_path, Sink()) as query:
        until(lambda: is_idle(query))
        commit, _ = committed(tmp_path)
        query.rescale(1)
        until(lambda: committed(tmp_path)[0] > commit and is_idle(query))
        found = Checkpoint(str(tmp_path / "ck")).manifests.load_latest()
        assert found is not None
        assert found.routing["near"].instances == 1
