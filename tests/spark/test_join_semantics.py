"""What a joined row looks like and which rows join: names, windows, times, payloads, chains."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import Sink, counted, seconds

import tidegate as tg
from tidegate.api.joins.join_node import How


def rows_at(
    spark: SparkSession, times: list[float | None], schema: str = "k int, n int", **cells: Any
) -> DataFrame:
    """A row per time (in seconds), all with key 1 unless told otherwise, numbered from 0."""
    values = [
        (None if at is None else seconds(at), cells.get("k", [1] * len(times))[n], n)
        for n, at in enumerate(times)
    ]
    frame = spark.createDataFrame(values, f"us long, {schema}")
    return frame.select(F.timestamp_micros("us").alias("ts"), "k", "n")


@contextmanager
def session_zone(spark: SparkSession, zone: str) -> Iterator[None]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        yield
    finally:
        spark.conf.set("spark.sql.session.timeZone", before or "UTC")


def pairs(sink: Sink) -> set[tuple[Any, ...]]:
    places = [sink.columns.index(name) for name in ("n", "n_right")]
    found = [tuple(row[i] for i in places) for row in sink.rows]
    assert len(found) == len(set(found)), "a pair came twice"
    return set(found)


def test_windows_include_their_edges_and_each_side_has_its_own(spark: SparkSession) -> None:
    micro = 1e-6
    left = rows_at(spark, [100.0])
    right = rows_at(spark, [98.0, 98 - micro, 103.0, 103 + micro, 100.0, 90.0])
    a, b = (
        tg.stream(left, time="ts", name="a", lateness="0 seconds"),
        tg.stream(right, time="ts", name="b", lateness="0 seconds"),
    )
    sides, both, same, ever = Sink("sides"), Sink("both"), Sink("same"), Sink("ever")
    tg.start(
        a.join(b, on="k", within=tg.between("-2 seconds", "3 seconds"), name="sides").write_to(sides),
        a.join(b, on="k", within="2 seconds", name="both").write_to(both),
        a.join(b, on="k", within=tg.same_window("10 seconds"), name="same").write_to(same),
        a.join(b, on="k", within=tg.UNBOUNDED, name="ever").write_to(ever),
        instances=1,
    )
    assert {right for _, right in pairs(sides)} == {0, 2, 4}
    assert {right for _, right in pairs(both)} == {0, 4}
    assert {right for _, right in pairs(same)} == {2, 3, 4}
    assert {right for _, right in pairs(ever)} == {0, 1, 2, 3, 4, 5}


def test_keys_come_first_and_clashing_right_columns_get_a_suffix(spark: SparkSession) -> None:
    left = spark.sql("SELECT timestamp_micros(0) ts, 1 key, 'l' v, 'x' `odd.name`, 7 l")
    right = spark.sql("SELECT timestamp_micros(0) ts, 1 other, 'r' v, 'y' `odd.name`, 8 r")
    a, b = (
        tg.stream(left, time="ts", name="a", lateness="0 seconds"),
        tg.stream(right, time="ts", name="b", lateness="0 seconds"),
    )
    hows: tuple[How, ...] = ("inner", "full", "left_semi")
    sinks = {how: Sink(how) for how in hows}
    on = {"key": "other"}
    joins = {how: a.join(b, on, within="1 second", how=how, name=how) for how in hows}
    tg.start(*(joins[how].write_to(sink) for how, sink in sinks.items()), instances=1)
    shown = ["key", "other", "ts", "v", "odd.name", "l", "ts_right", "v_right", "odd.name_right", "r"]
    assert sinks["inner"].columns == sinks["full"].columns == shown
    assert sinks["left_semi"].columns == ["key", "ts", "v", "odd.name", "l"]
    row = dict(zip(shown, sinks["inner"].rows[0], strict=True))
    assert (row["key"], row["v"], row["odd.name"], row["v_right"], row["odd.name_right"]) == (
        1,
        "l",
        "x",
        "r",
        "y",
    )


def test_nested_and_long_payloads_come_back_as_they_went_in(spark: SparkSession) -> None:
    payload = (
        "array(1, null, 3) numbers",
        "array(named_struct('x', 1, 'y', array('p', null))) deep",
        "map('a', array(1.5D), 'b', null) lookup",
        "repeat('ü', 100) long_text",
        "named_struct('at', ts) moment",
        "cast(12.345 AS decimal(30, 3)) money",
        "X'00FF' bytes",
        "INTERVAL 3 DAYS gap",
        "date'2024-02-29' day",
        "cast(null AS string) nothing",
        "timestamp_ntz'2024-01-01 12:00:00' local_time",
    )
    with session_zone(spark, "America/St_Johns"):
        base = spark.range(3).selectExpr("timestamp_seconds(id) ts", "id k")
        left, right = base.selectExpr("*", *payload), base.selectExpr("*", *payload)
        a, b = (
            tg.stream(left, time="ts", name="a", lateness="0 seconds"),
            tg.stream(right, time="ts", name="b", lateness="0 seconds"),
        )
        sink = Sink()
        tg.start(a.join(b, on="k", within="0 seconds", how="full").write_to(sink), instances=2)
        columns = [c for c in left.columns if c != "k"]
        r = right.select("k", *(F.col(c).alias(f"{c}_right") for c in columns))
        expected = left.select("k", *columns).join(r, "k")
        assert sink.columns == expected.columns
        assert sink.counted == counted(expected.collect())


def test_local_times_join_with_local_times_only(spark: SparkSession) -> None:
    with session_zone(spark, "Asia/Tokyo"):
        zoned = spark.sql("SELECT timestamp'2024-01-01 00:00:00' ts, 1 k")
        local = spark.sql("SELECT timestamp_ntz'2024-01-01 00:00:00' ts, 1 k")
        sink = Sink()
        a, b = (
            tg.stream(local, time="ts", name="a", lateness="0 seconds"),
            tg.stream(local, time="ts", name="b", lateness="0 seconds"),
        )
        tg.start(a.join(b, on="k", within="0 seconds").write_to(sink), instances=1)
        assert sink.counted == counted(local.selectExpr("k", "ts", "ts").collect())
        assert len(sink.rows) == 1
        mixed = a.join(tg.stream(zoned, time="ts", name="c", lateness="0 seconds"), on="k", within="1 second")
        with pytest.raises(tg.FlowError, match="JOIN_TIME_TYPES_DIFFER"):
            tg.start(mixed.write_to("noop"))


def test_a_stream_joins_with_itself(spark: SparkSession) -> None:
    rows = rows_at(spark, [0, 1, 5, 5])
    a = tg.stream(rows, time="ts", name="a", lateness="0 seconds")
    sink = Sink()
    query = tg.start(a.join(a, on="k", within="1 second").write_to(sink), instances=2)
    assert pairs(sink) == {(0, 0), (0, 1), (1, 0), (1, 1), (2, 2), (2, 3), (3, 2), (3, 3)}
    assert query.telemetry[-1]["offered"] == {"a": 4}


def test_a_join_feeds_a_join_by_the_later_of_two_times(spark: SparkSession) -> None:
    a = tg.stream(rows_at(spark, [0, 50]), time="ts", name="a", lateness="0 seconds")
    b = tg.stream(rows_at(spark, [10, 200]), time="ts", name="b", lateness="0 seconds")
    c = tg.stream(rows_at(spark, [15, 4, 51, 300]), time="ts", name="c", lateness="0 seconds")
    first, second = Sink("first"), Sink("second")
    near = a.join(b, on="k", within="10 seconds", how="full")
    renamed = near.select("k", F.col("n").alias("a"), F.col("n_right").alias("b"))
    both = renamed.filter("coalesce(b, 0) < 5").join(c, on="k", within="5 seconds", how="full")
    tg.start(near.write_to(first), both.select("a", "b", "n").write_to(second), partitions=4, instances=2)
    assert pairs(first) == {(0, 0), (1, None), (None, 1)}
    # (0, 0) has the time 10, the lonely ones their own: 50 and 200.
    assert set(second.rows) == {(0, 0, 0), (1, None, 2), (None, 1, None), (None, None, 1), (None, None, 3)}


def test_the_event_time_may_be_a_key_as_well(spark: SparkSession) -> None:
    rows = rows_at(spark, [0, 1, 2])
    a, b = (
        tg.stream(rows, time="ts", name="a", lateness="0 seconds"),
        tg.stream(rows, time="ts", name="b", lateness="0 seconds"),
    )
    sink = Sink()
    tg.start(a.join(b, on=["k", "ts"], within="10 seconds", how="full").write_to(sink), instances=1)
    assert sink.columns == ["k", "ts", "n", "n_right"]
    assert pairs(sink) == {(0, 0), (1, 1), (2, 2)}


@pytest.mark.parametrize("handed_out", [True, False], ids=["judged by Spark", "judged by the join tasks"])
def test_rows_without_a_usable_time_are_rejected_counted_and_handed_out(
    spark: SparkSession, handed_out: bool
) -> None:
    soon = rows_at(spark, [0, None]).union(
        spark.sql("SELECT current_timestamp() + INTERVAL 2 DAYS ts, 1 k, 9 n")
    )
    a = tg.stream(soon, time="ts", name="a", max_ahead="1 day", lateness="0 seconds")
    b = tg.stream(soon, time="ts", name="b", max_ahead=None, lateness="0 seconds")
    sink, rejected = Sink("joined"), Sink("rejected")
    joined = a.join(b, on="k", within="1 second", how="full").write_to(sink)
    outputs = [joined, a.rejected.write_to(rejected)] if handed_out else [joined]
    query = tg.start(*outputs, instances=1)
    assert pairs(sink) == {(0, 0), (None, 9)}
    assert {row[2] for row in rejected.rows} == ({1, 9} if handed_out else set())
    assert query.telemetry[-1]["rejected"] == {"a": 2, "b": 1}


def test_columns_that_differ_only_in_case_clash(spark: SparkSession) -> None:
    left = spark.sql("SELECT timestamp_micros(0) ts, 1 k, 'l' V")
    right = spark.sql("SELECT timestamp_micros(0) ts, 1 k, 'r' v")
    a, b = (
        tg.stream(left, time="ts", name="a", lateness="0 seconds"),
        tg.stream(right, time="ts", name="b", lateness="0 seconds"),
    )
    sink = Sink()
    tg.start(a.join(b, on="k", within="1 second", where="V < v_right").write_to(sink), instances=1)
    assert sink.columns == ["k", "ts", "V", "ts_right", "v_right"]
    assert len(sink.rows) == 1


def test_streaming_and_batch_inputs_are_not_mixed(spark: SparkSession) -> None:
    streaming = spark.readStream.format("rate").load().selectExpr("timestamp ts", "value k")
    a = tg.stream(streaming, time="ts", name="a", lateness="0 seconds")
    b = tg.stream(rows_at(spark, [0]), time="ts", name="b", lateness="0 seconds")
    with pytest.raises(tg.FlowError, match=r"STREAM_INPUTS_MIXED.*streaming: a; batch: b"):
        tg.start(a.join(b, on="k", within="1 second").write_to("noop"))


@pytest.mark.parametrize("how", ["inner", "left_anti"])
@pytest.mark.parametrize("where", ["gone > 1", "n + 1", "n >", 3])
def test_a_condition_that_does_not_fit_is_refused_before_anything_starts(
    spark: SparkSession, how: How, where: Any
) -> None:
    a = tg.stream(rows_at(spark, [1.0]), time="ts", name="a", lateness="0 seconds")
    b = tg.stream(rows_at(spark, [1.0]), time="ts", name="b", lateness="0 seconds")
    sink = Sink()
    with pytest.raises(
        tg.FlowError, match=r"JOIN_WHERE_INVALID.*`where` of a_b_k.*k, ts, n, ts_right, n_right"
    ):
        tg.start(a.join(b, on="k", within="1 second", how=how, where=where).write_to(sink))
    assert not sink.batches


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (lambda s: s.filter("gone > 1"), "STEP_INVALID.*filter of 'a'.*gone"),
        (lambda s: s.filter(3), "STEP_INVALID.*filter of 'a'"),
        (lambda s: s.select("gone"), "STEP_INVALID.*select of 'a'"),
        (lambda s: s.with_column("m", "n + 1"), "STEP_INVALID.*with_column of 'a'"),
        (lambda s: s.transform(lambda frame: None), "STEP_RESULT_INVALID.*transform of 'a'.* Got: NoneType"),
        (lambda s: s.window("1 second").agg(n="count("), "AGGREGATE_SQL_INVALID.*Aggregate 'n'"),
        (
            lambda s: s.match([tg.RangeQuery("q", "ts > 1")]),
            "QUERY_COLUMN_TYPE_UNSUPPORTED.*'q'.*'ts'.*Got: timestamp",
        ),
    ],
)
def test_what_spark_does_not_understand_is_told_with_its_place(
    spark: SparkSession, step: Callable[[tg.Stream], tg.Stream], says: str
) -> None:
    with pytest.raises(tg.FlowError, match=says):
        tg.start(
            step(tg.stream(rows_at(spark, [1.0]), time="ts", name="a", lateness="0 seconds")).write_to(Sink())
        )


@pytest.mark.parametrize("how", ["inner", "left", "full", "left_semi"])
def test_a_condition_in_python_sees_joined_rows_only(spark: SparkSession, how: How) -> None:
    a = tg.stream(rows_at(spark, [1.0, 2.0]), time="ts", name="a", lateness="0 seconds")
    b = tg.stream(rows_at(spark, [1.0, 2.0]), time="ts", name="b", lateness="0 seconds")
    odd = F.udf(lambda left, right: (left + right) % 2 == 1, "boolean")
    sink = Sink("odd")
    joined = a.join(b, on="k", within="5 seconds", how=how, where=odd("n", "n_right"))
    # Three instances, of which some get no row and so find no pair.
    tg.start(joined.write_to(sink), instances=3)
    if how == "left_semi":
        assert sorted(row[sink.columns.index("n")] for row in sink.rows) == [0, 1]
    else:
        assert pairs(sink) == {(0, 1), (1, 0)}
