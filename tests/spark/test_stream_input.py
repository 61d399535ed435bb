"""Each stream enters once: what reads it may change between runs, drops stand in front of steps, and frames
of every kind come through."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark import Accumulator
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import PATIENCE_SECONDS, Sink, add_files, counted, read_files, seconds, start_bounded

import tidegate as tg
from tidegate.driver.frames.grafts import first_rows

SCHEMA = "ts timestamp, k int, v int"
ROWS = 400


def a_file(number: int, rows: int = ROWS) -> pa.Table:
    """Ten seconds of rows, in order of time."""
    chance = np.random.default_rng(number)
    us = seconds(10 * number) + np.sort(chance.integers(0, 10_000_000, rows))
    keys, values = chance.integers(0, 5, rows), chance.integers(0, 1000, rows)
    return pa.table(
        {
            "ts": pa.array(us, pa.timestamp("us", "UTC")),
            "k": pa.array(keys, pa.int32()),
            "v": pa.array(values, pa.int32()),
        }
    )


def a_stream(spark: SparkSession, folder: Path, name: str = "rows") -> tg.Stream:
    return tg.stream(read_files(spark, folder, SCHEMA), name=name, time="ts", lateness="1 second")


def run(outputs: list[tg.Output], home: Path, **settings: Any) -> Any:
    query = tg.start(*outputs, checkpoint=str(home / "ck"), available_now=True, partitions=4, **settings)
    assert query.await_termination(PATIENCE_SECONDS)
    return query


def finished(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.schema(SCHEMA).parquet(str(folder))


def pairs(frame: DataFrame, left: str, right: str) -> Counter[str]:
    """Rows of one stream with those of the same key and at most a second apart."""
    near = "l.k = r.k AND abs(unix_micros(l.ts) - unix_micros(r.ts)) <= 1000000"
    both = frame.where(left).alias("l").join(frame.where(right).alias("r"), F.expr(near))
    return counted(both.select("l.k", "l.v", "r.v").collect())


def joined(stream: tg.Stream, left: str = "v % 3 = 0", right: str = "v % 3 = 1") -> tg.Stream:
    one, other = stream.filter(left), stream.filter(right).with_column_renamed("v", "w")
    return one.join(other, on="k", within="1 second", name="near").select("k", "v", "w")


def test_outputs_are_reordered_taps_are_added_and_filters_change_on_one_checkpoint(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    add_files(folder, [a_file(0), a_file(1)])
    near, late, counts = Sink(), Sink(), Sink()
    rows = a_stream(spark, folder)
    run(
        [
            joined(rows).write_to(near, name="near"),
            rows.late.write_to(late, name="late"),
            rows.window("5 seconds", by="k", name="counts").agg(n=F.count("*")).write_to(counts),
        ],
        tmp_path,
    )
    add_files(folder, [a_file(2), a_file(3)])
    tapped, rows = Sink(), a_stream(spark, folder)
    run(
        [
            rows.filter("v > 500").write_to(tapped, name="tapped"),
            rows.window("5 seconds", by="k", name="counts").agg(n=F.count("*")).write_to(counts),
            joined(rows, right="v % 3 = 2").write_to(near, name="near"),
            rows.late.write_to(late, name="late"),
        ],
        tmp_path,
    )
    whole = finished(spark, folder)
    newer = whole.where(f"unix_micros(ts) >= {seconds(20)}")
    assert tapped.counted == counted(newer.where("v > 500").collect())
    assert late.rows == []
    assert sum(row[-1] for row in counts.rows) <= 4 * ROWS
    assert {row[0].timestamp() for row in counts.rows if row[0].timestamp() < seconds(35) / 1e6} == {
        seconds(at) / 1e6 for at in range(0, 35, 5)
    }
    older_left = whole.where(f"unix_micros(ts) < {seconds(20)}")
    expected = pairs(older_left, "v % 3 = 0", "v % 3 = 1") + pairs(newer, "v % 3 = 0", "v % 3 = 2")
    border = pairs(whole, "v % 3 = 0", "v % 3 = 1") + pairs(whole, "v % 3 = 0", "v % 3 = 2")
    assert expected - near.counted == Counter()
    assert near.counted - border == Counter()


def test_a_costly_step_is_not_called_for_rows_of_dropped_windows(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    add_files(folder, [a_file(number) for number in range(6)])
    calls: Accumulator[int] = spark.sparkContext.accumulator(0)

    def costly(value):  # type: ignore[no-untyped-def]  # Spark reads the hints of typed functions
        calls.add(1)
        return value

    sink = Sink()
    costs = a_stream(spark, folder).with_column("v", F.udf(costly, "int")("v"))
    windows = costs.window("2 seconds", name="counts")
    query = start_bounded(
        windows.agg(n=F.count("*"), top=F.max("v")).write_to(sink, max_gap=4),
        checkpoint=tmp_path / "ck",
        goal=tg.Goal(latency="60 seconds"),
        shed=tg.Shed(window=0.6),
        partitions=4,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    total = query.receipts(by="total").set_index(["kind", "name"])
    stream = total.loc[("stream", "rows")]
    assert stream.rows_offered == 6 * ROWS
    assert stream.rows_shed > ROWS
    assert stream.rows_offered == stream.rows_processed + stream.rows_shed
    assert calls.value == stream.rows_processed
    whole = finished(spark, folder).groupBy(F.window("ts", "2 seconds")).agg(F.count("*"), F.max("v"))
    assert sink.counted - counted((*row[0], *row[1:]) for row in whole.collect()) == Counter()


def test_frames_that_keep_state_or_observe_metrics_are_run_by_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    add_files(folder, [a_file(0), a_file(0), a_file(1)])
    raw = read_files(spark, folder, SCHEMA).withWatermark("ts", "30 seconds")
    once = tg.stream(raw.dropDuplicates(["ts", "k", "v"]), name="once")
    watched = tg.stream(raw.observe("seen", F.count(F.lit(1)).alias("n")), name="watched")
    near, tapped = Sink(), Sink()
    run([joined(once).write_to(near, name="near"), watched.write_to(tapped, name="tapped")], tmp_path)
    whole = finished(spark, folder).distinct()
    assert near.counted == pairs(whole, "v % 3 = 0", "v % 3 = 1")
    assert len(tapped.rows) == 3 * ROWS


def test_columns_of_every_kind_and_united_frames_come_through(spark: SparkSession, tmp_path: Path) -> None:
    kinds = [
        "*",
        "map('a', v) AS m",
        "named_struct('x', array(k)) AS s",
        "parse_json(concat('[', v, ']')) AS j",
    ]
    for name in ("in", "more"):
        add_files(tmp_path / name, [a_file(0, 50), a_file(1, 50)])
    frames = [read_files(spark, tmp_path / name, SCHEMA) for name in ("in", "more")]
    stream = tg.stream(
        frames[0].union(frames[1]).selectExpr(*kinds), name="both", time="ts", lateness="1 second"
    )
    tapped, counts = Sink(), Sink()
    text = stream.select("ts", "m", "s", F.expr("to_json(j)").alias("j"))
    windows = stream.window("5 seconds", name="counts").agg(n=F.count("*"), top=F.max(F.expr("m['a']")))
    run([text.write_to(tapped, name="rows"), windows.write_to(counts)], tmp_path)
    assert len(tapped.rows) == 200
    assert all(row[1]["a"] == int(row[3].strip("[]")) for row in tapped.rows)
    assert sum(row[2] for row in counts.rows) > 0


def test_a_batch_in_which_nothing_arrives_and_nothing_is_due_runs_no_job(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    add_files(folder, [a_file(0), a_file(1)])
    near, counts = Sink(), Sink()
    rows = a_stream(spark, folder)
    query = tg.start(
        joined(rows).write_to(near, name="near"),
        rows.window("5 seconds", by="k", name="counts").agg(n=F.count("*")).write_to(counts),
        checkpoint=str(tmp_path / "ck"),
        trigger="100 ms",
    )
    with query:
        query.process_all_available()
        tracker, group = spark.sparkContext.statusTracker(), str(query.run_id)
        jobs, batches = len(tracker.getJobIdsForGroup(group)), len(near.batches)
        assert jobs > 0
        deadline, begun = time.monotonic() + PATIENCE_SECONDS, triggers(query)
        while triggers(query) < begun + 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert triggers(query) >= begun + 3
        assert len(tracker.getJobIdsForGroup(group)) == jobs
        assert len(near.batches) == batches
    assert near.counted == pairs(finished(spark, folder), "v % 3 = 0", "v % 3 = 1")


def triggers(query: tg.StreamingQuery) -> int:
    """How many batches Spark has run."""
    inner: Any = query.spark_query
    return int(inner.lastProgress["batchId"])


def test_the_current_time_in_a_step_is_that_of_the_batch(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    add_files(folder, [a_file(0), a_file(1)])
    sinks = Sink(), Sink()
    rows = a_stream(spark, folder)
    steps = [
        F.current_timestamp().alias("now"),
        F.current_date().alias("day"),
        F.localtimestamp().alias("local"),
    ]
    run([rows.select("ts", *steps).write_to(sink, name=f"out{n}") for n, sink in enumerate(sinks)], tmp_path)
    for batch in (0, 1):
        log = (tmp_path / "ck" / "spark" / "offsets" / str(batch)).read_text().splitlines()
        times = {tuple(row[1:]) for sink in sinks for row in sink.batches[batch]}
        ((now, day, local),) = times
        assert round(now.timestamp() * 1000) == json.loads(log[1])["batchTimestampMs"]
        assert local.date() == day


def test_a_transform_that_reads_another_stream_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("in", "more"):
        add_files(tmp_path / name, [a_file(0, 5)])
    other = read_files(spark, tmp_path / "more", SCHEMA)
    stream = a_stream(spark, tmp_path / "in").transform(lambda frame: frame.join(other.select("k"), "k"))
    with pytest.raises(tg.TidegateError) as caught:
        tg.start(stream.write_to(Sink(), name="out"), checkpoint=str(tmp_path / "ck"), available_now=True)
    assert caught.value.code == "STEP_STREAM_LOST"


def test_sparks_own_progress_counts_the_rows(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("left", "right"):
        add_files(tmp_path / name, [a_file(0), a_file(1)])
    left, right = (a_stream(spark, tmp_path / name, name) for name in ("left", "right"))
    near = left.join(right.with_column_renamed("v", "w"), on="k", within="1 second", name="near")
    query = run([near.write_to(Sink(), name="near")], tmp_path)
    counted_by_spark = sum(one["numInputRows"] for one in query._inner.recentProgress)
    assert counted_by_spark == 4 * ROWS


def test_one_output_of_files_is_written_by_the_action_itself(spark: SparkSession, tmp_path: Path) -> None:
    folder, out = tmp_path / "in", str(tmp_path / "out")
    add_files(folder, [a_file(0), a_file(1), a_file(2)])
    stream = joined(a_stream(spark, folder)).with_column("sum", F.expr("v + w"))
    query = run([stream.write_to("parquet", out, name="near", partition_by=["k"])], tmp_path)
    written = spark.read.parquet(out)
    expected = pairs(finished(spark, folder), "v % 3 = 0", "v % 3 = 1")
    assert counted(written.select("k", "v", "w").collect()) == expected
    assert written.where("sum != v + w").count() == 0
    receipts = query.receipts(by="total").set_index("kind")
    assert receipts.loc["output"].rows_written == sum(expected.values())
    # Behind the last batch nothing was released, so its draft was removed again, or never made.
    assert all(path.name.startswith("k=") for path in Path(out).glob("[!.]*"))


def test_the_first_rows_of_a_frame_are_those_of_each_partition(spark: SparkSession) -> None:
    frame = first_rows(spark.range(0, 100, 1, 2), 7)
    assert sorted(row.id for row in frame.collect()) == [*range(7), *range(50, 57)]
