"""Rows against continuous queries on Spark: exact, whatever the types; sifted where time is short."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark import Broadcast
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import PATIENCE_SECONDS, Sink, add_files, counted, read_files, seconds

import tidegate as tg

WHERES = {
    "cheap": "fare < 5",
    "edge": "fare <= 5 and fare >= 5",
    "range": "fare between 2.5 and 7.25 and n >= 3",
    "either": "fare < 1 or n in (2, 4, 6) or kind = 'bus'",
    "not": "not (fare < 3 and kind in ('bus', 'tram'))",
    "nothing_known": "kind is null",
    "known": "fare is not null and kind != 'tram'",
    "open": "paid = true",
    "decimal": "price > 0.1 and price <= 0.25",
    "all": "true",
}
COLUMNS = "us long, n int, big bigint, fare double, small float, price string, kind string, paid boolean"


def queries() -> list[tg.RangeQuery]:
    return [tg.RangeQuery(name, where) for name, where in WHERES.items()]


def rides(spark: SparkSession, rows: int = 200, seed: int = 1) -> DataFrame:
    rng = np.random.default_rng(seed)

    def some(value: Any) -> Any:
        return None if rng.random() < 0.1 else value

    odd = [float("nan"), float("inf"), -0.0, 5.0, float(np.nextafter(5, 9)), 2.5, 7.25]
    values = [
        (
            seconds(i),
            some(int(rng.integers(0, 8))),
            some(int(rng.integers(-(2**62), 2**62))),
            some(float(rng.choice(odd) if rng.random() < 0.4 else rng.uniform(0, 10))),
            some(float(np.float32(rng.uniform(0, 1)))),
            some(f"{rng.uniform(0, 0.4):.2f}"),
            some(str(rng.choice(["bus", "tram", "taxi", "Bus", "üb'er"]))),
            some(bool(rng.integers(0, 2))),
        )
        for i in range(rows)
    ]
    frame = spark.createDataFrame(values, COLUMNS)
    return frame.select(
        F.timestamp_micros("us").alias("ts"),
        "n", "big", "fare", "small", F.col("price").cast("decimal(9, 2)"), "kind", "paid",
    )  # fmt: skip


def expected(frame: DataFrame, wanted: list[tg.RangeQuery]) -> Any:
    found = [
        tuple(row)
        for query in wanted
        for row in frame.where(query.where).withColumn("q", F.lit(query.name)).collect()
    ]
    return counted(found)


def test_a_row_comes_out_once_for_every_query_that_spark_itself_finds_true(spark: SparkSession) -> None:
    frame = rides(spark)
    sink = Sink()
    tg.start(tg.stream(frame, time="ts", name="rides", lateness="0 seconds").match(queries()).write_to(sink))
    assert sink.columns == [*frame.columns, "query_name"]
    assert sink.counted == expected(frame, queries())


def test_matches_stand_before_and_behind_joins_and_boxes(spark: SparkSession) -> None:
    frame = rides(spark, 60)
    near, far = (
        tg.stream(frame, time="ts", name="a", lateness="0 seconds"),
        tg.stream(frame, time="ts", name="b", lateness="0 seconds"),
    )
    cheap, bus = (
        [tg.RangeQuery("cheap", "fare < 5")],
        [tg.RangeQuery("bus", "kind in ('bus', 'taxi') and twice > 3")],
    )
    once = near.filter("n > 1").match(cheap).select("ts", "n", "fare", "kind")
    joined = once.join(far.select("ts", "n"), on="n", within="3 seconds")
    behind = joined.with_column("twice", F.expr("n * 2")).match(bus).select("n", "ts", "kind", "ts_right")
    sink = Sink()
    tg.start(behind.write_to(sink))
    left, right = frame.where("n > 1 and fare < 5 and kind in ('bus', 'taxi')").alias("l"), frame.alias("r")
    close = "l.n = r.n and abs(unix_micros(l.ts) - unix_micros(r.ts)) <= 3000000 and l.n * 2 > 3"
    wanted = left.join(right, F.expr(close)).select("l.n", "l.ts", "l.kind", "r.ts")
    assert sink.rows
    assert sink.counted == counted([tuple(row) for row in wanted.collect()])


def test_rows_without_a_match_and_queries_without_a_row_leave_nothing(spark: SparkSession) -> None:
    sink = Sink()
    nobody = [tg.RangeQuery("nobody", "n > 1000")]
    tg.start(
        tg.stream(rides(spark, 20), time="ts", name="rides", lateness="0 seconds")
        .match(nobody)
        .write_to(sink)
    )
    assert sink.rows == []
    assert sink.columns[-1] == "query_name"


def stream_of(spark: SparkSession, folder: Path, files: int, rows: int = 4000) -> DataFrame:
    rng = np.random.default_rng(5)
    tables = []
    for number in range(files):
        us = np.sort(rng.integers(0, 1_000_000, rows)) + seconds(number)
        tables.append(
            pa.table(
                {
                    "ts": pa.array(us, pa.timestamp("us", "UTC")),
                    "x": rng.normal(0.3, 0.1, rows),
                    "y": rng.uniform(0, 1, rows),
                }
            )
        )
    add_files(folder, tables)
    return read_files(spark, folder, "ts timestamp, x double, y double")


SQUARES = [
    tg.RangeQuery(
        f"q{i}", f"x between {x} and {x + 0.2} and y >= {y} and y < {y + 0.2}", loss_sensitivity=1 + i % 3 / 2
    )
    for i, (x, y) in enumerate((a / 10, b / 10) for a in range(8) for b in range(8))
]


def test_a_stream_is_matched_in_files_that_are_linked_into_place(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Broadcast[Any]] = []
    broadcast = spark.sparkContext.broadcast

    def noted(value: Any) -> Broadcast[Any]:
        sent.append(broadcast(value))
        return sent[-1]

    monkeypatch.setattr(spark.sparkContext, "broadcast", noted)
    frame = stream_of(spark, tmp_path / "in", files=3)
    query = tg.start(
        tg.stream(frame, time="ts", name="points", lateness="0 seconds")
        .match(SQUARES)
        .write_to("parquet", str(tmp_path / "out")),
        checkpoint=str(tmp_path / "ck"),
        available_now=True,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    given = spark.read.parquet(str(tmp_path / "in"))
    found = spark.read.parquet(str(tmp_path / "out"))
    assert counted(map(tuple, found.collect())) == expected(given, SQUARES)
    assert sum(p["offered"]["points"] for p in query.telemetry) == 12_000
    assert all(p["sift"] == {} for p in query.telemetry)
    assert [one._jbroadcast.isValid() for one in sent] == [False], "the queries stay in the memory of workers"


def test_late_and_impossible_rows_are_counted_and_left_out(spark: SparkSession, tmp_path: Path) -> None:
    def table(times: list[int | None]) -> pa.Table:
        return pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "x": [1.0] * len(times)})

    far = seconds(4_000_000_000)
    add_files(
        tmp_path / "in", [table([seconds(10), seconds(20)]), table([seconds(5), None, far, seconds(21)])]
    )
    frame = read_files(spark, tmp_path / "in", "ts timestamp, x double")
    asked = [tg.RangeQuery("one", "x = 1"), tg.RangeQuery("none", "x = 2"), tg.RangeQuery("some", "x > 0")]
    sink = Sink()
    query = tg.start(
        tg.stream(frame, time="ts", name="points", lateness="0 seconds").match(asked).write_to(sink),
        checkpoint=str(tmp_path / "ck"),
        available_now=True,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    on_time = spark.read.parquet(str(tmp_path / "in")).where(
        f"unix_micros(ts) in ({seconds(10)}, {seconds(20)}, {seconds(21)})"
    )
    assert sink.columns == ["ts", "x", "query_name"]
    assert len(sink.rows) == 6
    assert sink.counted == expected(on_time, asked)
    progress = query.telemetry
    assert sum(p["late"]["points"] for p in progress) == 1
    assert sum(p["rejected"]["points"] for p in progress) == 2
    assert progress[-1]["watermarks"]["points"].endswith("22:13:41+00:00")  # 21 s


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([tg.RangeQuery("a", "nowhere > 1")], "QUERY_COLUMN_MISSING.*'a'.*nowhere"),
        ([tg.RangeQuery("a", "x like 'b%'")], "QUERY_PREDICATE_UNSUPPORTED.*'a'"),
        ([tg.RangeQuery("a", "x > 1 and x < 0")], "QUERY_NEVER_TRUE.*'a'"),
        ([tg.RangeQuery("a", "x > 1"), tg.RangeQuery("a", "x > 2")], "QUERY_NAMES_EQUAL.*'a'"),
        ([], "QUERY_MISSING"),
    ],
)
def test_what_cannot_be_matched_is_refused_before_anything_starts(
    spark: SparkSession, given: list[tg.RangeQuery], says: str
) -> None:
    frame = spark.createDataFrame([(1, 1.0)], "us long, x double").select(
        F.timestamp_micros("us").alias("ts"), "x"
    )
    with pytest.raises(tg.FlowError, match=says):
        tg.start(tg.stream(frame, time="ts", name="s", lateness="0 seconds").match(given).write_to(Sink()))
