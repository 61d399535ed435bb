"""Every mistake at run time is one error with code, batch and remedy; once it is mended, nothing is lost."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
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

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Home:
    """A join of two streams, one file a batch, with a mistake that can be mended."""

    def __init__(self, spark: SparkSession, folder: Path):
        self.spark, self.folder = spark, folder
        self.sink = Sink()
        for name in ("a", "b"):
            add_files(folder / name, [stream_table([(seconds(n), 1, n, 0)]) for n in range(2)])

    def stream(self, name: str, step: Callable[[DataFrame], DataFrame] | None = None) -> tg.Stream:
        frame = read_files(self.spark, self.folder / name, STREAM_SCHEMA)
        made = tg.stream(frame if step is None else step(frame), time="ts", name=name, lateness="0 seconds")
        return made

    def start(self, output: Any) -> Any:
        return tg.start(output, checkpoint=str(self.folder / "ck"), available_now=True, instances=2)

    def join(self, on: Any = "k", step: Callable[[DataFrame], DataFrame] | None = None) -> tg.Stream:
        joined = self.stream("a", step).join(self.stream("b"), on=on, within="10 seconds")
        return joined.select("n", "n_right")

    def fails(self, output: Any, code: str) -> tg.TidegateError:
        """Run to the failure, which the handle raises and keeps."""
        query = self.start(output)
        with pytest.raises(tg.TidegateError) as raised:
            query.await_termination(PATIENCE_SECONDS)
        assert query.exception() is raised.value
        assert raised.value.code == code, str(raised.value)
        assert str(raised.value).startswith(f"[{code}] ")
        assert "\n\tat " not in str(raised.value)
        assert raised.value.__cause__ is not None
        assert raised.value.details["remedy"]
        error: tg.TidegateError = raised.value
        return error

    def continues(self, output: Any) -> Any:
        """Run to the end: every pair is there, exactly once."""
        query = self.start(output)
        assert query.await_termination(PATIENCE_SECONDS)
        assert sorted(self.sink.rows) == [(x, y) for x in range(2) for y in range(2)]
        return query


@pytest.fixture
def home(spark: SparkSession, tmp_path: Path) -> Home:
    return Home(spark, tmp_path)


def test_a_sink_that_raises(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    def broken(frame: DataFrame, batch: int) -> None:
        if batch == 1:
            raise ValueError("no such table")
        home.sink(frame, batch)

    with caplog.at_level(logging.INFO, logger="tidegate"):
        error = home.fails(home.join().write_to(broken, name="near"), "SINK_FAILED")
        assert error.details["batch_id"] == 1
        assert error.details["output"] == "near"
        assert isinstance(error.__cause__, ValueError)
        home.continues(home.join().write_to(home.sink, name="near"))
    lines = [record.getMessage() for record in caplog.records]
    assert any("started (tidegate " in line and "inputs a, b, outputs near" in line for line in lines)
    assert any("failed after batch 0: [SINK_FAILED]" in line for line in lines)
    assert any("continues after batch 0; batch 1 was begun and runs again" in line for line in lines)
    assert "stopped after batch" in lines[-1]


class Starved(tg.Aggregator):
    """Counts rows; while a file exists, its worker is killed as a system does that runs out of memory."""

    state, returns = "n long", "long"

    def __init__(self, column: str, starves: str):
        super().__init__(column)
        self.starves = starves

    def zero(self) -> tuple[int]:
        return (0,)

    def update(self, state: Any, values: Any) -> tuple[int]:
        if 1 in values and os.path.exists(self.starves):
            os.kill(os.getpid(), signal.SIGKILL)
        return (state[0] + len(values),)

    def merge(self, one: Any, other: Any) -> tuple[int]:
        return (one[0] + other[0],)

    def finish(self, state: Any) -> int:
        return int(state[0])


def test_a_worker_that_the_system_kills(home: Home) -> None:
    starves = home.folder / "starves"
    rows = home.stream("a").window("1 second", by=["k"], name="counts").agg(m=Starved("n", str(starves)))
    output = rows.select("k", "m").write_to(home.sink, name="counts")
    starves.touch()
    text = str(home.fails(output, "WORKER_CRASHED"))
    assert "Batch 1 failed: a worker process has died" in text
    assert "Nothing of the batch was committed" in text
    assert "spark.executor.memoryOverhead" in text
    assert "maxBytesPerTrigger" in text
    assert "java" not in text
    starves.unlink()
    query = home.start(output)
    assert query.await_termination(PATIENCE_SECONDS)
    assert home.sink.rows == [(1, 1)], "the last window is still open"


def test_batch_inputs_raise_the_same_error(spark: SparkSession, home: Home) -> None:
    def broken(frame: DataFrame, batch: int) -> None:
        raise ValueError("no such table")

    frame = spark.read.schema(STREAM_SCHEMA).parquet(str(home.folder / "a"))
    output = tg.stream(frame, time="ts", name="a").write_to(broken, name="near")
    with pytest.raises(tg.BatchFailed) as raised:
        tg.start(output)
    assert raised.value.code == "SINK_FAILED"
    assert raised.value.details["output"] == "near"


def test_jobs_are_described_by_query_batch_and_operator(spark: SparkSession, home: Home) -> None:
    context = spark.sparkContext
    context.setJobDescription("mine")
    try:
        query = home.continues(home.join().write_to(home.sink, name="near"))
        assert context.getLocalProperty("spark.job.description") == "mine"
    finally:
        context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]
    jobs = context._jsc.sc().statusStore().jobsList(None)
    found = {str(jobs.apply(n).description()) for n in range(jobs.size())}
    (operator,) = query.last_progress.operators
    assert {
        f"Some(tidegate batch {n}: {what})" for n in (0, 1) for what in (operator, "output near")
    } <= found
