"""Waiting for what is at the sources now, and pausing: with batches of Spark at random moments."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.flows import (
    PATIENCE_SECONDS,
    STREAM_SCHEMA,
    add_files,
    read_files,
    seconds,
    stream_table,
)

import tidegate as tg

#: Seconds for calls at random moments.
CALLS_SECONDS = 20.0


def started(spark: SparkSession, home: Path, **settings: object) -> tg.StreamingQuery:
    """Rows with an even n, and their pairs with themselves; the frame leaves out the others."""
    rows = read_files(spark, home / "a", STREAM_SCHEMA, per_batch=2).where("n % 2 = 0")
    stream = tg.stream(rows, name="a", time="ts", lateness="1 second")
    output = (
        stream.window("1 second", by="n", name="busy")
        .agg(ids="max(v)")
        .write_to("parquet", str(home / "out"), name="busy")
    )
    plain = stream.write_to("parquet", str(home / "rows"), name="rows")
    return tg.start(output, plain, checkpoint=home / "ck", partitions=2, instances=1, **settings)  # type: ignore[arg-type]


def written(spark: SparkSession, home: Path) -> set[int]:
    schema = "ts timestamp, k long, n long, v long, batch int"
    return {row.v for row in spark.read.schema(schema).parquet(str(home / "rows")).select("v").collect()}


def test_all_rows_at_the_sources_are_processed_when_it_returns(spark: SparkSession, tmp_path: Path) -> None:
    """Files come at random moments, several or one; some bring no row that the frame lets through."""
    chance = random.Random(7)
    add_files(tmp_path / "a", [stream_table([(seconds(0), 1, 0, 0)])])
    query = started(spark, tmp_path)
    wanted, number, calls = {0}, 1, 0
    try:
        query.process_all_available()
        until = time.monotonic() + CALLS_SECONDS
        while time.monotonic() < until or calls < 5:
            time.sleep(chance.choice([0.0, 0.0, 0.3, 0.7]) * chance.random())
            for _ in range(chance.choice([1, 1, 2, 5])):
                even = chance.random() < 0.5
                add_files(tmp_path / "a", [stream_table([(seconds(number), 1, 0 if even else 1, number)])])
                wanted |= {number} if even else set()
                number += 1
            query.process_all_available()
            calls += 1
            assert written(spark, tmp_path) == wanted
    finally:
        query.stop()


def test_a_paused_query_takes_no_rows_until_it_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    add_files(tmp_path / "a", [stream_table([(seconds(0), 1, 0, 0)])])
    with started(spark, tmp_path) as query:
        query.process_all_available()
        query.pause()
        assert query.status["message"] == "Paused"
        done = query.last_progress
        time.sleep(0.5)
        add_files(tmp_path / "a", [stream_table([(seconds(1), 1, 0, 1)])])
        time.sleep(3)
        assert written(spark, tmp_path) == {0}
        assert done is not None
        assert query.last_progress is not None
        assert query.last_progress.batch_id <= done.batch_id + 1, "a running batch ends, and no other begins"
        with pytest.raises(tg.FlowError, match="QUERY_PAUSED"):
            query.process_all_available()
        query.resume()
        query.process_all_available()
        assert written(spark, tmp_path) == {0, 1}
        query.pause()
        add_files(tmp_path / "a", [stream_table([(seconds(2), 1, 0, 2)])])
        time.sleep(2)
        query.stop(timeout=PATIENCE_SECONDS)
        assert query.exception() is None
    with started(spark, tmp_path) as again:
        again.process_all_available()
        assert written(spark, tmp_path) == {0, 1, 2}
