"""Small batches run in one task, without a shuffle, and give the same rows, receipts and state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import PATIENCE_SECONDS, Sink, add_files, counted, seconds
from tests.spark.test_stream_input import ROWS, a_file, a_stream

import tidegate as tg
from tidegate.control import small_batches
from tidegate.state.checkpoint import Checkpoint

FILES = 4


def flow(spark: SparkSession, folder: Path, near: Sink, most: Sink) -> list[tg.Output]:
    """A join, windows over it, and windows over these; the join has an output too."""
    rows = a_stream(spark, folder)
    asked, given = rows.filter("v % 3 = 0"), rows.filter("v % 3 = 1").with_column_renamed("v", "w")
    pairs = asked.join(given, on="k", within="1 second", how="left", name="near")
    counts = pairs.window("5 seconds", by="k", name="counts").agg(n=F.count("w"), last=F.max("v"))
    largest = counts.window("10 seconds", name="most").agg(most=F.max("n"))
    return [pairs.select("k", "v", "w").write_to(near, name="near"), largest.write_to(most, name="most")]


def ran(spark: SparkSession, home: Path, monkeypatch: pytest.MonkeyPatch, together: bool) -> dict[str, Any]:
    """Results and receipts; `together`: each batch after the first in one task."""
    monkeypatch.setattr(small_batches, "RUN_SECONDS_MAX", 1e9 if together else -1.0)
    near, most = Sink(), Sink()
    add_files(home / "in", [a_file(number) for number in range(FILES)])
    outputs = flow(spark, home / "in", near, most)
    settings: dict[str, Any] = {"available_now": True, "partitions": 4}
    query = tg.start(*outputs, name=home.name, checkpoint=str(home / "ck"), **settings)
    assert query.await_termination(PATIENCE_SECONDS)
    checkpoint = Checkpoint(str(home / "ck"))
    plans = [checkpoint.plans.read(batch) for batch in range(1, FILES)]
    assert {plan.shuffles.one_task for plan in plans if plan is not None} == {together}
    receipts = query.receipts(by="total")
    timed = [name for name in receipts.columns if name.endswith(("_seconds", "_at"))]
    stages = [stages_of(spark, home.name, batch) for batch in range(1, FILES)]
    query.stop()
    return {
        "near": near.counted,
        "most": most.counted,
        "receipts": receipts.drop(columns=timed),
        "stages": stages,
    }


def stages_of(spark: SparkSession, query: str, batch: int) -> int:
    """The stages of the action of a batch."""
    mine = [count for text, count in jobs_of(spark, query, batch) if text == "near, counts, most"]
    assert len(mine) == 1
    return mine[0]


def jobs_of(spark: SparkSession, query: str, batch: int) -> list[tuple[str, int]]:
    """What the jobs of a batch do, with their stages."""
    jobs: Any = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    found = [jobs.apply(number) for number in range(jobs.size())]
    named = [job for job in found if job.description().isDefined()]
    texts = [(str(job.description().get()), int(job.stageIds().size())) for job in named]
    begin = f"{query} batch {batch}: "
    return [(text.removeprefix(begin), count) for text, count in texts if text.startswith(begin)]


def test_a_flow_of_three_operators_runs_in_one_stage_with_the_same_results(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shuffled = ran(spark, tmp_path / "shuffled", monkeypatch, together=False)
    together = ran(spark, tmp_path / "together", monkeypatch, together=True)
    assert together["near"] == shuffled["near"]
    assert together["most"] == shuffled["most"]
    assert sum(together["near"].values()) > 100
    pd.testing.assert_frame_equal(together["receipts"], shuffled["receipts"])
    assert together["stages"] == [1] * (FILES - 1)
    assert min(shuffled["stages"]) > 1


@pytest.mark.parametrize("columns", [("k", "v", "w"), ("k", "later")])
def test_a_batch_with_one_output_takes_one_job_wherever_that_goes(
    spark: SparkSession, tmp_path: Path, columns: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_batches, "RUN_SECONDS_MAX", 1e9)
    add_files(tmp_path / "in", [a_file(number) for number in range(FILES)])
    rows = a_stream(spark, tmp_path / "in")
    asked, given = rows.filter("v % 3 = 0"), rows.filter("v % 3 = 1").with_column_renamed("v", "w")
    pairs = asked.join(given, on="k", within="1 second", name="near").with_column("later", F.expr("v + w"))
    out = pairs.select(*columns).write_to("noop", name="out")
    name = f"one job of {len(columns)}"
    query = tg.start(out, name=name, checkpoint=str(tmp_path / "ck"), available_now=True)
    assert query.await_termination(PATIENCE_SECONDS)
    assert [jobs_of(spark, name, batch) for batch in range(1, FILES)] == [[("near", 1)]] * (FILES - 1)


@pytest.mark.parametrize(("condition", "kept"), [("v >= 0", 1.0), ("v % 2 = 0", 0.5), ("false", 0.0)])
def test_rows_that_pass_by_all_operators_are_written_and_counted_in_one_job(
    spark: SparkSession, tmp_path: Path, condition: str, kept: float
) -> None:
    # The last file is an hour late.
    add_files(tmp_path / "in", [a_file(360), a_file(361), a_file(0)])
    rows = a_stream(spark, tmp_path / "in").filter(condition)
    name = f"straight {kept}"
    out = rows.write_to("parquet", tmp_path / "out", name="out")
    query = tg.start(out, name=name, checkpoint=str(tmp_path / "ck"), available_now=True)
    assert query.await_termination(PATIENCE_SECONDS)
    assert [jobs_of(spark, name, batch) for batch in range(3)] == [[("output out", 1)]] * 3
    passed = spark.read.parquet(str(tmp_path / "in")).where(condition)
    on_time = passed.where(f"unix_micros(ts) >= {seconds(3600)}")
    written = spark.read.schema(rows.schema).parquet(str(tmp_path / "out"))
    assert counted(written.collect()) == counted(on_time.collect())
    stream = query.receipts(by="total").set_index("kind").loc["stream"]
    assert (stream.rows_offered, stream.rows_late) == (3 * ROWS, passed.count() - on_time.count())


@pytest.mark.parametrize("together", [True, False])
def test_operators_behind_one_without_rows_run_all_the_same(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: bool
) -> None:
    """Spark sees that nothing passes the filter, and would run no task for what lies behind it."""
    monkeypatch.setattr(small_batches, "RUN_SECONDS_MAX", 1e9 if together else -1.0)
    add_files(tmp_path / "in", [a_file(number) for number in range(FILES)])
    rows = a_stream(spark, tmp_path / "in")
    asked, given = rows.filter("v % 3 = 0"), rows.filter("v % 3 = 1").with_column_renamed("v", "w")
    pairs = asked.join(given, on="k", within="1 second", name="near")
    counts = pairs.filter("false").window("5 seconds", by="k", name="counts").agg(n=F.count("w"))
    more = rows.filter("false").join(counts, on="k", within="10 seconds", how="full", name="more")
    none, near = Sink(), Sink()
    outputs = more.write_to(none, name="none"), pairs.select("k", "v", "w").write_to(near, name="near")
    query = tg.start(*outputs, checkpoint=str(tmp_path / "ck"), available_now=True, partitions=4)
    assert query.await_termination(PATIENCE_SECONDS)
    assert not none.rows
    assert len(near.rows) > 100


def test_a_window_over_a_stream_takes_one_shuffle_though_all_partitions_have_rows_of_a_group(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_batches, "RUN_SECONDS_MAX", -1.0)
    files = [a_file(number) for number in range(FILES)]
    add_files(tmp_path / "in", files)
    # One shuffle of the test's own, before the windows.
    rows = a_stream(spark, tmp_path / "in").transform(lambda frame: frame.repartition(4, "v"))
    counts = rows.window("5 seconds", by="k", name="counts").agg(
        n=F.count("*"), total=F.sum("v"), values=F.collect_set("v"), about=F.approx_count_distinct("v")
    )
    sink = Sink()
    query = tg.start(
        counts.write_to(sink, name="counts"),
        name="one shuffle",
        checkpoint=str(tmp_path / "ck"),
        available_now=True,
        partitions=4,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    # The last job is the action: behind the test's own shuffle, aggregation and tasks.
    assert jobs_of(spark, "one shuffle", 1)[-1][1] == 3
    made = pd.DataFrame(sink.rows, columns=sink.columns)
    given = pd.concat([table.to_pandas() for table in files])
    given = given[given["ts"] < made["window_end"].max().tz_localize("UTC")]
    expected = given.groupby([given["ts"].dt.floor("5s"), "k"])["v"].agg(["size", "sum", set])
    values = [set(one) for one in made["values"]]
    assert sorted(zip(made["n"], made["total"], map(sorted, values), strict=True)) == sorted(
        (size, total, sorted(some)) for size, total, some in expected.itertuples(index=False)
    )
    assert (abs(made["about"] / list(map(len, values)) - 1) < 0.2).all()
