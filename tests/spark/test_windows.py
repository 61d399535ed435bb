"""Window aggregates on Spark: equal to Spark's own for any cut into batches; nested, grouped, late."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import PATIENCE_SECONDS, Sink, add_files, counted, read_files, seconds

import tidegate as tg
from tidegate.control.actuators import partial_aggregation


def aggregates() -> dict[str, Any]:
    """All kinds of them; columns need a running Spark."""
    return {
        "rows": F.count("*"),
        "n": F.count("fare"),
        "total": F.sum("fare"),
        "whole": F.sum(F.col("n") * 2),
        "mean": F.avg("fare"),
        "low": F.min("fare"),
        "high": F.max("n"),
        "word": F.max("kind"),
        "spread": F.stddev("fare"),
        "v": F.var_pop("n"),
        "bits": F.bit_or("n"),
        "all_paid": F.expr("bool_and(paid)"),
        "cents": F.sum("price"),
        "price": F.avg("price"),
        "when": F.max("ts"),
    }


SCHEMA = "ts timestamp, n int, fare double, price decimal(9, 2), kind string, paid boolean"


def rides(rows: int, seed: int, span_seconds: float = 40) -> pa.Table:
    rng = np.random.default_rng(seed)

    def some(values: Sequence[Any]) -> list[Any]:
        return [None if rng.random() < 0.1 else value for value in values]

    us = seconds(0) + np.sort(rng.integers(0, int(span_seconds * 1e6), rows))
    prices = [None if rng.random() < 0.1 else f"{rng.uniform(-9, 99):.2f}" for _ in range(rows)]
    return pa.table(
        {
            "ts": pa.array(us, pa.timestamp("us", "UTC")),
            "n": pa.array(some(rng.integers(0, 50, rows).tolist()), pa.int32()),
            "fare": pa.array(some(rng.uniform(-5, 50, rows).tolist())),
            "price": pa.array(prices, pa.string()).cast(pa.decimal128(9, 2)),
            "kind": pa.array(some(rng.choice(["bus", "tram", "taxi"], rows).tolist())),
            "paid": pa.array(some(rng.integers(0, 2, rows).astype(bool).tolist())),
        }
    )


def sparks_own(
    frame: DataFrame, size: str, slide: str | None, by: list[str], offset: str | None = None
) -> list[tuple[Any, ...]]:
    windows = F.window("ts", size, slide or size, offset)
    rows = frame.groupBy(windows, *by).agg(*[column.alias(name) for name, column in aggregates().items()])
    return [tuple(row) for row in rows.select("window.start", "window.end", *by, *aggregates()).collect()]


def assert_alike(found: Sequence[tuple[Any, ...]], wanted: Sequence[tuple[Any, ...]], keys: int) -> None:
    """The same windows and groups, once each; floats but for rounding."""
    mine = {repr(row[:keys]): row[keys:] for row in found}
    assert len(mine) == len(found), "a window came twice"
    theirs = {repr(row[:keys]): row[keys:] for row in wanted}
    assert mine.keys() == theirs.keys()
    for key, row in theirs.items():
        for mine_is, theirs_is in zip(mine[key], row, strict=True):
            if isinstance(theirs_is, float) and mine_is is not None:
                assert math.isclose(mine_is, theirs_is, rel_tol=1e-9, abs_tol=1e-9), key
            else:
                assert mine_is == theirs_is, key


@pytest.mark.parametrize(
    ("size", "slide", "by", "offset"),
    [
        ("10 seconds", None, ["kind"], None),
        ("10 seconds", "3 seconds", [], None),
        ("7 seconds", "5 seconds", ["kind", "paid"], None),
        ("10 seconds", None, ["kind"], "4 seconds"),
        ("7 seconds", "5 seconds", [], "-1500 milliseconds"),
    ],
)
def test_windows_of_batch_inputs_are_sparks_own(
    spark: SparkSession, size: str, slide: str | None, by: list[str], offset: str | None
) -> None:
    frame = frame_of(spark, rides(600, 1))
    sink = Sink()
    tg.start(
        tg.stream(frame, time="ts", name="rides", lateness="0 seconds")
        .window(size, slide=slide, offset=offset, by=by)
        .agg(**aggregates())
        .write_to(sink)
    )
    assert sink.columns == ["window_start", "window_end", *by, *aggregates()]
    assert_alike(sink.rows, sparks_own(frame, size, slide, by, offset), keys=2 + len(by))


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    return spark.createDataFrame(table).select(
        *[
            F.col(name).cast(kind).alias(name)
            for name, kind in (part.split(" ", 1) for part in SCHEMA.replace("(9, 2)", "(9,2)").split(", "))
        ]
    )


@pytest.mark.parametrize(
    ("instances", "by_row", "offset"),
    [(1, False, None), (3, False, "1700 milliseconds"), (2, True, "1 second")],
)
def test_streamed_windows_are_sparks_own_whatever_the_batches(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    instances: int,
    by_row: bool,
    offset: str | None,
) -> None:
    if by_row:
        monkeypatch.setattr(partial_aggregation, "by_row", lambda manifest, windows, always: tuple(windows))
    whole = rides(900, 2)
    cuts = [0, 50, 51, 400, 401, 650, 900]
    add_files(tmp_path / "in", [whole.slice(a, b - a) for a, b in pairwise(cuts)])
    frame = read_files(spark, tmp_path / "in", SCHEMA)
    end = pa.table({name: pa.array([None] * 1, whole.schema.field(name).type) for name in whole.column_names})
    last = end.set_column(0, "ts", pa.array([seconds(100)], pa.timestamp("us", "UTC")))
    add_files(tmp_path / "in", [last])
    rides_of = tg.stream(frame, time="ts", name="rides", lateness="1 second")
    query = tg.start(
        rides_of.window("6 seconds", slide="2 seconds", offset=offset, by="kind")
        .agg(**aggregates())
        .write_to("parquet", str(tmp_path / "out")),
        checkpoint=str(tmp_path / "ck"),
        available_now=True,
        instances=instances,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    found = spark.read.parquet(str(tmp_path / "out"))
    given = spark.read.schema(SCHEMA).parquet(str(tmp_path / "in"))
    wanted = [
        row
        for row in sparks_own(given, "6 seconds", "2 seconds", ["kind"], offset)
        if row[1].timestamp() < seconds(90) / 1e6
    ]
    assert_alike([tuple(row) for row in found.collect()], wanted, keys=3)
    assert sum(p["offered"]["rides"] for p in query.telemetry) == 901
    assert query.telemetry[-1]["state_rows"] <= 2, "closed windows are kept"


def test_late_rows_fall_into_no_window_and_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    def table(times: list[float | None]) -> pa.Table:
        us = [None if at is None else seconds(at) for at in times]
        return pa.table({"ts": pa.array(us, pa.timestamp("us", "UTC"))})

    add_files(tmp_path / "in", [table([1, 2, 12]), table([3, None, 13, 14]), table([5, 11, 40])])
    frame = read_files(spark, tmp_path / "in", "ts timestamp")
    sink = Sink()
    query = tg.start(
        tg.stream(frame, time="ts", name="s", lateness="0 seconds")
        .window("10 seconds")
        .agg(n=F.count("*"))
        .write_to(sink),
        checkpoint=str(tmp_path / "ck"),
        available_now=True,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    # As in Spark, the second batch is judged by what was known before the first, and a row counts while its
    # window is open.
    assert sorted(row[2] for row in sink.rows) == [3, 4]
    assert sum(p["late"]["s"] for p in query.telemetry) == 1
    assert sum(p["rejected"]["s"] for p in query.telemetry) == 1


def test_aggregates_nest_and_a_stream_feeds_many(spark: SparkSession, tmp_path: Path) -> None:
    whole = rides(1200, 3, span_seconds=120)
    add_files(tmp_path / "in", [whole.slice(i, 200) for i in range(0, 1200, 200)])
    stream = tg.stream(
        read_files(spark, tmp_path / "in", SCHEMA), time="ts", name="rides", lateness="0 seconds"
    )
    busy = (
        stream.filter("n is not null").window("5 seconds", by="kind").agg(n=F.count("*"), top=F.max("fare"))
    )
    rare = (
        busy.filter("n > 3").window("20 seconds", slide="10 seconds").agg(k=F.count("*"), best=F.max("top"))
    )
    first, second = Sink("busy"), Sink("rare")
    query = tg.start(
        busy.write_to(first),
        rare.write_to(second),
        checkpoint=str(tmp_path / "ck"),
        available_now=True,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    given = spark.read.schema(SCHEMA).parquet(str(tmp_path / "in")).where("n is not null")
    inner = given.groupBy(F.window("ts", "5 seconds").alias("w"), "kind").agg(
        F.count("*").alias("n"), F.max("fare").alias("top")
    )
    outer = (
        inner.where("n > 3")
        .withColumn("ts", F.col("w.start"))
        .groupBy(F.window("ts", "20 seconds", "10 seconds").alias("w"))
        .agg(F.count("*").alias("k"), F.max("top").alias("best"))
    )
    newest = max(whole.column("ts").to_pylist())
    closed = [
        tuple(r)
        for r in inner.select("w.start", "w.end", "kind", "n", "top").collect()
        if r[1].timestamp() <= newest.timestamp()
    ]
    assert_alike(first.rows, closed, keys=3)
    nested = [tuple(r) for r in outer.select("w.start", "w.end", "k", "best").collect()]
    assert len(second.rows) > 5
    theirs = {repr(row[:2]): row[2:] for row in nested}
    assert all(theirs[repr(row[:2])] == row[2:] for row in second.rows)


@pytest.mark.parametrize(
    ("aggregate", "says"),
    [
        (lambda: F.countDistinct("n"), "AGGREGATE_UNSUPPORTED.*DISTINCT and FILTER are not supported"),
        (lambda: F.expr("sum(n"), "AGGREGATE_SQL_INVALID.*'x': Spark cannot parse"),
        (lambda: F.sum("n") / F.count("n"), "cannot be computed over windows"),
        (lambda: F.col("n"), "AGGREGATE_UNSUPPORTED.*one plain aggregate"),
        (lambda: F.expr("percentile(n, 0.5)"), "percentile"),
    ],
)
def test_what_cannot_be_merged_is_refused_with_a_reason(
    spark: SparkSession, aggregate: Any, says: str
) -> None:
    stream = tg.stream(frame_of(spark, rides(5, 1)), time="ts", name="rides", lateness="0 seconds")
    with pytest.raises(tg.FlowError, match=says):
        tg.start(stream.window("1 second").agg(x=aggregate()).write_to(Sink()))


def test_another_offset_does_not_go_on_from_a_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    add_files(tmp_path / "in", [rides(20, 5)])

    def run(offset: str | None) -> None:
        stream = tg.stream(
            read_files(spark, tmp_path / "in", SCHEMA), time="ts", name="rides", lateness="0 seconds"
        )
        query = tg.start(
            stream.window("6 seconds", slide="2 seconds", offset=offset).agg(n=F.count("*")).write_to(Sink()),
            checkpoint=str(tmp_path / "ck"),
            available_now=True,
        )
        assert query.await_termination(PATIENCE_SECONDS)

    run("1 second")
    run("-3 seconds")  # The same windows.
    with pytest.raises(tg.StateError, match="offset_us"):
        run("1500 milliseconds")


def test_aliased_columns_and_keywords_make_one_result(spark: SparkSession) -> None:
    stream = tg.stream(frame_of(spark, rides(100, 6)), time="ts", name="rides", lateness="0 seconds")
    sink, wanted = Sink(), Sink()
    tg.start(
        stream.window("1 hour")
        .agg(
            F.count("*").alias("rows"),
            F.expr("max(fare) AS `top fare`"),
            "min(cast(fare as int)) as low",
            F.first("kind").alias("inner").alias("kind"),
            mean=F.avg("fare").alias("other"),
        )
        .write_to(sink)
    )
    named = {
        "rows": F.count("*"),
        "top fare": F.max("fare"),
        "low": F.min(F.col("fare").cast("int")),
        "kind": F.first("kind"),
        "mean": F.avg("fare"),
    }
    tg.start(stream.window("1 hour").agg(**named).write_to(wanted))
    assert sink.columns == wanted.columns == ["window_start", "window_end", *named]
    assert sink.rows == wanted.rows
    with pytest.raises(tg.FlowError, match=r'AGGREGATE_NAME_MISSING.*max\(fare\).*alias\("n"\)'):
        stream.window("1 hour").agg(F.max("fare"))


def test_wrong_windows_are_refused(spark: SparkSession) -> None:
    stream = tg.stream(frame_of(spark, rides(5, 1)), time="ts", name="rides", lateness="0 seconds")
    with pytest.raises(tg.FlowError, match="slide"):
        stream.window("1 second", slide="2 seconds")
    with pytest.raises(tg.FlowError, match="needs an aggregate"):
        stream.window("1 second").agg()
    with pytest.raises(tg.FlowError, match="WINDOW_BY_UNKNOWN"):
        tg.start(stream.window("1 second", by="nowhere").agg(n=F.count("*")).write_to(Sink()))


def test_groups_that_differ_in_where_a_null_is_are_different(spark: SparkSession) -> None:
    """Spark's hash passes over nulls: codes of groups must not."""
    rows = [("x", None, [1]), (None, "x", [1]), ("x", None, [None, 1]), (None, None, None), (None, "x", [1])]
    frame = spark.createDataFrame(rows, "a string, b string, c array<int>").withColumn(
        "ts", F.timestamp_seconds(F.lit(5))
    )
    sink = Sink()
    grouped = tg.stream(frame, time="ts", name="s", lateness="0 seconds").window(
        "10 seconds", by=["a", "b", "c"]
    )
    tg.start(grouped.agg(n=F.count("*")).write_to(sink))
    wanted = [tuple(row) for row in frame.groupBy("a", "b", "c").count().collect()]
    assert counted(row[2:] for row in sink.rows) == counted(wanted)


def test_first_and_last_go_by_event_time(spark: SparkSession) -> None:
    rows = [(1, 5, "b"), (3, None, "a"), (2, 7, None)]
    frame = spark.createDataFrame(
        [(seconds(at), n, word) for at, n, word in rows], "us long, n int, word string"
    )
    stream = tg.stream(
        frame.select(F.timestamp_micros("us").alias("ts"), "n", "word"),
        time="ts",
        name="s",
        lateness="0 seconds",
    )
    sink = Sink()
    aggregated = stream.window("10 seconds").agg(
        a=F.first("n"),
        b=F.last("n"),
        c=F.first("word"),
        d=F.expr("max_by(word, n)"),
        e=F.expr("any_value(n)"),
    )
    tg.start(aggregated.write_to(sink))
    assert [row[2:] for row in sink.rows] == [(5, None, "b", None, 5)]


def test_a_sum_of_words_is_refused(spark: SparkSession) -> None:
    stream = tg.stream(frame_of(spark, rides(5, 1)), time="ts", name="rides", lateness="0 seconds")
    with pytest.raises(tg.FlowError, match="string"):
        tg.start(stream.window("1 second").agg(x=F.sum("kind")).write_to(Sink()))
