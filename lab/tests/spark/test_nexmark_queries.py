"""Every Nexmark query of this engine gives DuckDB's result, and so does Spark; and one run under a rate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import tidegate as tg
from tidegate_lab.bench.nexmark.answers import Oracle, answer_in
from tidegate_lab.bench.nexmark.play import play
from tidegate_lab.bench.nexmark.queries.catalogue import QUERIES
from tidegate_lab.bench.nexmark.queries.tidegate_flows import Market, flow
from tidegate_lab.bench.nexmark.sustain import sustain
from tidegate_lab.bench.nexmark.task import MEMORY, OURS, Pace, Task
from tidegate_lab.workloads.nexmark.events import Events
from tidegate_lab.workloads.nexmark.files import write
from tidegate_lab.workloads.nexmark.rows import SPARK_SCHEMA

STATE = "spark.sql.streaming.stateStore."


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two batches of ten seconds each, and the closing events."""
    folder = tmp_path_factory.mktemp("nexmark") / "events"
    list(write(Events(per_file=10_000, per_second=1_000), folder, 2))
    return folder


@pytest.fixture(scope="module")
def oracle(events: Path) -> Oracle:
    return Oracle(events)


@pytest.fixture
def restored(spark: SparkSession) -> Iterator[SparkSession]:
    """The session of all tests, without the settings of a contender afterwards."""
    yield spark
    for name in ("providerClass", "rocksdb.changelogCheckpointing.enabled"):
        spark.conf.unset(STATE + name)


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_over_the_finished_events_gives_the_result_of_duckdb(
    query: str, spark: SparkSession, events: Path, oracle: Oracle, tmp_path: Path
) -> None:
    # Batch by batch takes a minute for all of them; one query does that below.
    market = Market.of(spark.read.schema(SPARK_SCHEMA).parquet(str(events)))
    with tg.start(flow(query, market).write_to("parquet", tmp_path, name="results")):
        assert answer_in(tmp_path, query) == oracle.answer(query)


def test_a_run_is_timed_as_a_whole_and_batch_by_batch(
    spark: SparkSession, events: Path, oracle: Oracle, tmp_path: Path
) -> None:
    found = play(spark, Task(OURS, "q8", str(events), str(tmp_path)))
    assert found["seconds"] > sum(found["batches"]) > 0
    assert len(found["batches"]) >= 2
    assert answer_in(tmp_path / "out", "q8") == oracle.answer("q8")


def test_sparks_own_gives_the_result_of_duckdb(
    restored: SparkSession, events: Path, oracle: Oracle, tmp_path: Path
) -> None:
    # The query with most operators in a row: a join, and two aggregates.
    play(restored, Task(MEMORY, "q4", str(events), str(tmp_path)))
    assert answer_in(tmp_path / "out", "q4") == oracle.answer("q4")


def test_under_a_rate_every_file_has_a_latency(spark: SparkSession, tmp_path: Path) -> None:
    list(write(Events(per_file=1_000), tmp_path / "events", 8))
    pace = Pace(4_000, 1_000, 0.5, 1.0, "100 milliseconds", 30.0)
    found = sustain(spark, Task(OURS, "q2", str(tmp_path / "events"), str(tmp_path / "work"), pace=pace))
    assert pace.files == 7
    assert len(found["latencies"]) == 4
    assert all(0 < latency < 30 for latency in found["latencies"])
    assert not found["fell_behind"]
