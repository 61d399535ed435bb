"""The wall clock is set back while a query runs, and before it starts again: nothing waits, nothing fails."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.spark.flows import STREAM_SCHEMA, add_files, read_files, seconds, stream_table

import tidegate as tg
from tidegate.driver.io.file_log import leaf_sources

#: Far less than the step.
SOON_SECONDS = 60
STEP_SECONDS = 3600


def add_row(home: Path, number: int) -> None:
    add_files(home / "a", [stream_table([(seconds(number), 1, number, number)])])


def started(spark: SparkSession, home: Path) -> tg.StreamingQuery:
    stream = tg.stream(read_files(spark, home / "a", STREAM_SCHEMA), name="a", time="ts", lateness="1 second")
    output = stream.write_to("parquet", str(home / "out"), name="out")
    return tg.start(output, checkpoint=home / "ck", instances=1)


def set_back(query: tg.StreamingQuery) -> None:
    """To Spark's heartbeat it looks as if its clock had been ahead until now."""
    inner: Any = query.spark_query
    beats = leaf_sources(inner._jsq.streamingQuery())[-1]
    last = beats.getClass().getDeclaredField("lastTimeMs")
    last.setAccessible(True)
    last.setLong(beats, last.getLong(beats) + 1000 * STEP_SECONDS)


def processes_all(query: tg.StreamingQuery) -> bool:
    waiting = threading.Thread(target=query.process_all_available, daemon=True)
    waiting.start()
    waiting.join(SOON_SECONDS)
    return not waiting.is_alive()


def test_a_clock_that_is_set_back_holds_nothing_up(spark: SparkSession, tmp_path: Path) -> None:
    add_row(tmp_path, 0)
    query = started(spark, tmp_path)
    try:
        assert processes_all(query)
        set_back(query)
        # The heartbeat goes to Spark's log with the next batch, as if it had counted so far.
        add_row(tmp_path, 1)
        assert processes_all(query)
        assert processes_all(query)
    finally:
        query.stop(timeout=SOON_SECONDS)
    # Now the clock of the machine is behind the log.
    add_row(tmp_path, 2)
    again = started(spark, tmp_path)
    try:
        assert processes_all(again)
        assert again.exception() is None
    finally:
        again.stop(timeout=SOON_SECONDS)
    assert spark.read.parquet(str(tmp_path / "out")).count() == 3
