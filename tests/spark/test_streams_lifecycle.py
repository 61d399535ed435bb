"""Streaming queries from start to stop to start again: what goes on, what is refused, what is awaited."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource
from tests.spark.flows import (
    PATIENCE_SECONDS,
    STREAM_SCHEMA,
    Sink,
    add_files,
    read_files,
    seconds,
    start_bounded,
    stream_table,
)
from tests.spark.restless import Restless

import tidegate as tg
from tidegate.control.balance import balancing
from tidegate.driver.io.sinks import refuse_unknown_formats
from tidegate.model.routing import Routing
from tidegate.state.checkpoint import Checkpoint


def one_row_files(folder: Path, times: list[float], key: int = 1, first: int = 0) -> None:
    """A file per row, so a batch per row."""
    rows = [stream_table([(seconds(at), key, first + n, 0)]) for n, at in enumerate(times)]
    add_files(folder, rows)


def source(spark: SparkSession, folder: Path, lateness: str = "0 seconds", **settings: Any) -> tg.Stream:
    frame = read_files(spark, folder, STREAM_SCHEMA)
    return tg.stream(frame, time="ts", name=folder.name, lateness=lateness, **settings)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.1)


def test_operators_are_known_by_their_names_whatever_the_order_of_outputs(
    spark: SparkSession, tmp_path: Path
) -> None:
    one_row_files(tmp_path / "a", [0, 1])
    sinks = {"few": Sink(), "many": Sink()}

    def start(*order: str, named: bool = True) -> None:
        a = source(spark, tmp_path / "a")
        shown = {
            name: a.filter(f"n {condition}")
            .window("1 hour", name=name if named else None)
            .agg(rows=F.count("*"))
            .write_to(sinks[name])
            for name, condition in (("few", "> 0"), ("many", ">= 0"))
        }
        outputs = [shown[name] for name in order]
        query = tg.start(*outputs, checkpoint=str(tmp_path / "ck"), available_now=True, instances=1)
        assert query.await_termination(PATIENCE_SECONDS)

    start("few", "many")
    one_row_files(tmp_path / "a", [2, 8000], first=2)
    start("many", "few")
    # Each goes on from its own state: one and two rows of the first run, and one of the second.
    assert [row[-1] for row in sinks["few"].rows] == [2]
    assert [row[-1] for row in sinks["many"].rows] == [3]
    with pytest.raises(tg.FlowError, match="OUTPUT_NAMES_EQUAL"):
        start("few", "many", named=False)


def test_a_restart_goes_on_from_the_state_and_refuses_another_flow(
    spark: SparkSession, tmp_path: Path
) -> None:
    one_row_files(tmp_path / "a", [0, 10])
    one_row_files(tmp_path / "b", [1, 30])
    out, checkpoint = str(tmp_path / "out"), str(tmp_path / "ck")

    def flow(within: str = "5 seconds", on: str = "k", schema: str = STREAM_SCHEMA) -> tg.Output:
        a = source(spark, tmp_path / "a")
        b = tg.stream(read_files(spark, tmp_path / "b", schema), time="ts", name="b", lateness="0 seconds")
        near = a.join(b, on=on, within=within, how="full", name="near")
        return near.select("n", "n_right").write_to("parquet", out)

    first = tg.start(flow(), checkpoint=checkpoint, available_now=True, instances=2)
    assert first.await_termination(PATIENCE_SECONDS)
    assert not first.is_active

    for changed, said in (
        (flow(within="6 seconds"), r"operators\.near\.within.*5000000 → 6000000"),
        (flow(on="v"), r"operators\.near\.keys"),
        (flow(schema=STREAM_SCHEMA.replace("v long", "v int")), r"streams\.b\.schema\.v.*int"),
    ):
        with pytest.raises(tg.StateError, match=said):
            tg.start(changed, checkpoint=checkpoint, available_now=True, instances=2)

    one_row_files(tmp_path / "a", [29, 1000], first=2)
    one_row_files(tmp_path / "b", [31, 1000], first=2)
    second = tg.start(flow(), checkpoint=checkpoint, instances=2)
    with pytest.raises(tg.CheckpointInUse):
        tg.start(flow(), checkpoint=checkpoint, instances=2)
    second.process_all_available()
    second.stop()
    second.stop()  # a second time is fine
    assert not second.is_active
    assert second.exception() is None

    written = spark.read.parquet(out)
    rows = [(row.n, row.n_right) for row in written.collect()]
    assert sorted(rows, key=repr) == sorted([(0, 0), (1, None), (2, 1), (2, 2), (3, 3)], key=repr)
    assert written.columns == ["n", "n_right"]


class Nowhere(DataSource):
    """A sink in Python, which Spark knows by the name it was registered with."""

    @classmethod
    def name(cls) -> str:
        return "to-nowhere"


def test_a_format_that_spark_does_not_have_is_refused_before_anything_starts(
    spark: SparkSession, tmp_path: Path
) -> None:
    one_row_files(tmp_path / "a", [0])
    spark.dataSource.register(Nowhere)
    a = source(spark, tmp_path / "a")
    for known in ("parquet", "json", "noop", "to-nowhere", "org.apache.spark.sql.parquet"):
        refuse_unknown_formats(spark, [a.write_to(known, None if known == "noop" else "out", name=known)])
    with pytest.raises(tg.FlowError, match=r"OUTPUT_FORMAT_UNKNOWN.*'lost'.*'parkett'"):
        tg.start(a.write_to("parkett", str(tmp_path / "out"), name="lost"), checkpoint=str(tmp_path / "ck"))
    assert not (tmp_path / "ck").exists()


def test_late_rows_are_counted_and_handed_out_and_refused_rows_too(
    spark: SparkSession, tmp_path: Path
) -> None:
    one_row_files(tmp_path / "a", [100, 95.001, 94.999999, 96])
    one_row_files(tmp_path / "b", [100])
    a = source(spark, tmp_path / "a", lateness="5 seconds")
    b = source(spark, tmp_path / "b", lateness="1 hour")
    joined, late, on_time = Sink("joined"), Sink("late"), Sink("on_time")
    query = tg.start(
        a.filter("n != 3").join(b, on="k", within="1 minute").select("n").write_to(joined),
        a.late.select("n").write_to(late),
        a.filter("n > 0").select("n").write_to(on_time),
        checkpoint=str(tmp_path / "ck"),
        available_now=True,
        watermark="own",
    )
    assert query.await_termination(PATIENCE_SECONDS)
    assert sorted(joined.rows) == [(0,), (1,)]
    assert late.rows == [(2,)]
    assert sorted(on_time.rows) == [(1,), (3,)]
    told = query.telemetry
    assert sum(progress["late"]["a"] for progress in told) == 1
    assert sum(progress["offered"]["a"] for progress in told) == 4


def test_late_rows_of_a_stream_without_a_join_are_counted_too(spark: SparkSession, tmp_path: Path) -> None:
    one_row_files(tmp_path / "a", [100, 94, 93, 96])
    a = source(spark, tmp_path / "a", lateness="5 seconds")
    sink = Sink()
    query = tg.start(
        a.filter("n != 1").select("n").write_to(sink),
        checkpoint=str(tmp_path / "ck"),
        available_now=True,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    assert sorted(sink.rows) == [(0,), (3,)]
    assert sum(progress["late"]["a"] for progress in query.telemetry) == 1  # the other was filtered


def test_a_silent_side_is_released_after_its_idle_timeout(spark: SparkSession, tmp_path: Path) -> None:
    one_row_files(tmp_path / "a", [0, 100])
    one_row_files(tmp_path / "b", [0], key=2)
    a, b = source(spark, tmp_path / "a"), source(spark, tmp_path / "b", idle_timeout="3 seconds")
    sink = Sink()
    query = tg.start(
        a.join(b, on="k", within="1 second", how="left").select("n", "n_right").write_to(sink),
        checkpoint=str(tmp_path / "ck"),
        trigger="1 second",
    )
    try:
        query.process_all_available()
        assert len(query.telemetry) >= 3
        until(lambda: bool(sink.rows))
    finally:
        query.stop()
    assert sink.rows == [(0, None)]
    waited = [p["batch"] for p in query.telemetry if not p["input_rows"]]
    assert min(batch for batch, rows in sink.batches.items() if rows) in waited


def test_all_available_means_settled_also_behind_two_joins(spark: SparkSession, tmp_path: Path) -> None:
    for number, name in enumerate("abc"):
        one_row_files(tmp_path / name, [0, 1000 + number], key=number)
    a, b, c = (source(spark, tmp_path / name) for name in "abc")
    near = a.join(b, on="k", within="1 second", how="full")
    chained = near.select("k", F.col("n").alias("a"), F.col("n_right").alias("b"))
    sink = Sink()
    query = tg.start(
        chained.join(c, on="k", within="1 second", how="full").select("k", "a", "b", "n").write_to(sink),
        checkpoint=str(tmp_path / "ck"),
        instances=2,
    )
    try:
        query.process_all_available()
    finally:
        query.stop()
    assert set(sink.rows) == {(0, 0, None, None), (1, None, 0, None), (2, None, None, 0)}


def test_a_failing_sink_fails_the_query_and_the_batch_comes_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    one_row_files(tmp_path / "a", [0])
    one_row_files(tmp_path / "b", [0])
    sink = Sink()
    broken, runs = [True], list[int]()

    def fragile(frame: DataFrame, batch: int, run: int) -> None:
        runs.append(run)
        if broken:
            raise ValueError("the sink is broken")
        sink(frame, batch)

    def run() -> tg.Stream:
        a, b = source(spark, tmp_path / "a"), source(spark, tmp_path / "b")
        return a.join(b, on="k", within="1 second").select("n", "n_right")

    first = tg.start(run().write_to(fragile), checkpoint=str(tmp_path / "ck"), available_now=True)
    with pytest.raises(Exception, match="the sink is broken"):
        first.await_termination(PATIENCE_SECONDS)
    assert first.exception() is not None
    broken.clear()
    second = tg.start(run().write_to(fragile), checkpoint=str(tmp_path / "ck"), available_now=True)
    assert second.await_termination(PATIENCE_SECONDS)
    assert sink.rows == [(0, 0)]
    assert runs[0] < runs[-1], "a later run has a larger number"


def test_a_linked_output_holds_what_spark_would_have_written(spark: SparkSession, tmp_path: Path) -> None:
    values = (
        "id k, timestamp_micros(1700000000000000 + id) ts, id % 2 = 0 bool, cast(id as byte) b, "
        "cast(id as short) s, cast(id as int) i, cast(id as float) f, cast(id as double) d, "
        "cast(id as decimal(9, 2)) m, cast(id * 1e20 as decimal(38, 10)) w, cast(id as string) t, "
        "cast(cast(id as string) as binary) y, date '2020-01-01' da, timestamp_ntz '2020-01-01 12:00:00' n, "
        "if(id > 5, null, id) z"
    )
    rows = spark.sql(f"SELECT {values} FROM range(10)")
    for side in ("a", "b"):
        rows.write.parquet(str(tmp_path / side))

    def write(out: str, options: dict[str, str] | None = None) -> None:
        frames = [spark.readStream.schema(rows.schema).parquet(str(tmp_path / side)) for side in ("a", "b")]
        a, b = (
            tg.stream(frame, time="ts", name=name, lateness="0 seconds")
            for frame, name in zip(frames, "ab", strict=True)
        )
        output = a.join(b, on="k", within="1 second").write_to(
            "parquet", str(tmp_path / out), options=options
        )
        tg.start(output, checkpoint=str(tmp_path / f"ck-{out}"), available_now=True).await_termination()

    write("linked")
    write("written", {"compression": "snappy"})
    linked, written = (spark.read.parquet(str(tmp_path / name)) for name in ("linked", "written"))
    assert linked.schema == written.schema
    assert linked.count() == 10
    assert linked.exceptAll(written).count() == 0
    names = [file.name for file in (tmp_path / "linked").glob("part-*.parquet")]
    assert names, "nothing was written"
    assert not any("snappy" in name for name in names), "Spark wrote it, so nothing was shown"


def test_only_selected_columns_of_joined_rows_are_made_and_another_run_may_select_other_numbers(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.sql("SELECT id k, timestamp_micros(1700000000000000 + id) ts, id * 2 twice FROM range(10)")
    for side in ("a", "b"):
        rows.write.parquet(str(tmp_path / side))

    def write(out: str, *columns: str) -> None:
        frames = [spark.readStream.schema(rows.schema).parquet(str(tmp_path / side)) for side in ("a", "b")]
        a, b = (
            tg.stream(frame, time="ts", name=name, lateness="0 seconds")
            for frame, name in zip(frames, "ab", strict=True)
        )
        output = a.join(b, on="k", within="1 second").select(*columns)
        sink = output.write_to("parquet", str(tmp_path / out))
        tg.start(sink, checkpoint=str(tmp_path / "ck"), available_now=True).await_termination()

    write("first", "ts_right", "k")
    made = list((tmp_path / "first").glob("part-*.parquet"))
    assert {tuple(pq.read_schema(file).names) for file in made} == {("ts_right", "k")}
    assert not any("snappy" in file.name for file in made), "Spark wrote it, so more was made"
    found = spark.read.parquet(str(tmp_path / "first"))
    assert sorted(row.k for row in found.select("k").collect()) == list(range(10))
    for side in ("a", "b"):
        later = rows.withColumn("k", F.col("k") + 10).withColumn("ts", F.expr("ts + interval 1 minute"))
        later.write.mode("append").parquet(str(tmp_path / side))
    write("second", "twice", "twice_right", "k")
    second = spark.read.parquet(str(tmp_path / "second")).select("twice", "twice_right", "k").collect()
    assert sorted(map(tuple, second)) == [(2 * n, 2 * n, n + 10) for n in range(10)]


def test_no_batch_makes_spark_compile_anything_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Partitions and keys lie elsewhere in every batch: whole, with a place of their own, split. Each of these
    # is code of its own, compiled once; where rows lie is data. (What moves by itself moves by measured time,
    # so it could happen at any batch for the first time.)
    monkeypatch.setattr(balancing, "strategy_of", lambda balance: Restless())

    def flow() -> list[tg.Output]:
        joined = source(spark, tmp_path / "a").join(source(spark, tmp_path / "b"), on="k", within="1 second")
        return [joined.write_to("parquet", str(tmp_path / "out"))]

    assert compiled_by_more_batches(spark, tmp_path, flow, warm=4, more=4) == 0
    versions = [routing.version for routing in routings(tmp_path / "ck", "a_b_k")]
    assert len(set(versions)) == len(versions), "nothing has moved"
    assert {routing.scattered for routing in routings(tmp_path / "ck", "a_b_k")} == {False, True}


def test_no_batch_of_many_operators_makes_spark_compile_anything_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    def flow() -> list[tg.Output]:
        # Without `max_ahead`: what Spark judges by its own clock it compiles in every batch.
        left, right = (source(spark, tmp_path / name, max_ahead=None) for name in "ab")
        pairs, matched = (
            left.join(right, on="k", within="1 second"),
            left.match([tg.RangeQuery("all", "v >= 0")]),
        )
        busy = right.window("1 second", by="k").agg(n=F.count("*"))
        return [
            pairs.write_to("parquet", str(tmp_path / "pairs"), name="pairs"),
            matched.write_to("parquet", str(tmp_path / "matched"), name="matched"),
            busy.write_to("parquet", str(tmp_path / "busy"), name="busy"),
        ]

    goal, balance = tg.Goal(latency="1 hour"), tg.Balance(strategy="none")
    assert compiled_by_more_batches(spark, tmp_path, flow, 3, 2, goal=goal, balance=balance) == 0


def compiled_by_more_batches(
    spark: SparkSession,
    home: Path,
    flow: Callable[[], list[tg.Output]],
    warm: int,
    more: int,
    **settings: Any,
) -> int:
    """Code that Spark compiles in batches that bring nothing but other rows, when some have run before."""
    assert spark._jvm is not None
    compiled = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
    before = 0
    for first, last in ((0, warm), (warm, warm + more)):
        for side in "ab":
            one_row_files(home / side, [float(second) for second in range(first, last)])
        before = compiled.getCount()
        query = start_bounded(*flow(), checkpoint=str(home / "ck"), **settings)
        assert query.await_termination(PATIENCE_SECONDS)
    return int(compiled.getCount() - before)


def routings(checkpoint: Path, operator: str) -> list[Routing]:
    plans = Checkpoint(str(checkpoint)).plans
    return [plan.routing[operator] for batch in range(8) if (plan := plans.read(batch)) is not None]
