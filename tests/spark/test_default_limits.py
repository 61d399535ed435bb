"""What a batch takes of its sources without a goal: bounded by default, and as the user says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark.flows import PATIENCE_SECONDS, Sink
from tests.spark.test_read_limits import FILES, ROWS, SCHEMA, WINDOW_SECONDS, exact, home

import tidegate as tg
from tidegate.control import batch_size
from tidegate.driver.io import default_limits
from tidegate.driver.streaming_query import StreamingQuery

__all__ = ["home"]


def run(spark: SparkSession, home: Path, sink: Sink, **options: Any) -> StreamingQuery:
    """Both streams to their end, without a goal."""
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
    query = tg.start(pairs.write_to(sink), checkpoint=str(home / "ck"), available_now=True)
    assert query.await_termination(PATIENCE_SECONDS)
    return query


def offered(query: StreamingQuery, name: str) -> list[int]:
    return [one["offered"][name] for one in query.telemetry if one["input_rows"]]


@pytest.fixture
def size(home: Path) -> int:
    return (home / "many" / "0000.parquet").stat().st_size


def test_a_backlog_without_a_goal_comes_in_bounded_batches(
    spark: SparkSession, home: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if ten files were what the first batch may take, and twice as many any later one.
    monkeypatch.setattr(default_limits, "FIRST_BYTES", 10 * size)
    monkeypatch.setattr(batch_size, "MOST", 2.0)
    sink = Sink()
    query = run(spark, home, sink)
    assert sorted(sink.rows) == sorted(exact())
    taken = offered(query, "many")
    assert taken[0] <= 10 * 5 * ROWS
    assert max(taken) <= 21 * 5 * ROWS
    # Rows are few, so tasks have room, and later batches take more.
    assert max(taken) > taken[0]
    assert len(taken) >= 3
    # Another run continues with what was learnt.
    engine = query._engine
    assert engine is not None
    assert batch_size.factor(engine.manifest.control) == 2.0


def test_a_small_backlog_is_one_batch(spark: SparkSession, home: Path) -> None:
    sink = Sink()
    query = run(spark, home, sink)
    assert sorted(sink.rows) == sorted(exact())
    assert offered(query, "many") == [FILES * 5 * ROWS]


@pytest.mark.parametrize("limit", ["maxFilesPerTrigger", "maxBytesPerTrigger"])
def test_the_limit_of_the_user_is_kept(
    spark: SparkSession, home: Path, size: int, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(default_limits, "FIRST_BYTES", size)
    sink = Sink()
    value = 10 if limit == "maxFilesPerTrigger" else 100 * size
    query = run(spark, home, sink, **{limit: value})
    assert sorted(sink.rows) == sorted(exact())
    assert offered(query, "few")[0] >= 10 * ROWS
    assert len(offered(query, "few")) <= FILES // 10
