"""What `on=` takes, against Spark's own joins: SQL text, null-safe keys, keys of different names."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import PATIENCE_SECONDS, Sink, counted, seconds
from tests.spark.test_join_keys import KEY_COLUMNS, numbers, side
from tests.spark.test_join_oracles import LATENESS_SECONDS, Case, made

import tidegate as tg
from tidegate.api.joins.join_node import How

HOWS: tuple[How, ...] = ("inner", "left", "right", "full", "left_semi", "left_anti")
NEAR = "b.ts BETWEEN a.ts - INTERVAL 2 SECONDS AND a.ts + INTERVAL 3 SECONDS"
TEXTS: dict[How, str] = {
    "inner": f"a.k = b.k AND {NEAR}",
    "left": "b.k <=> a.k AND a.ts - b.ts < INTERVAL '3' SECOND AND b.ts < a.ts + INTERVAL '2 seconds'"
    " AND (a.v <= b.v OR b.n % 2 = 0)",
    "left_semi": f"a.k = b.k AND abs(a.v) = abs(b.v) AND {NEAR} AND CAST(b.n AS int) > a.v",
}


def streamed_by_spark(spark: SparkSession, case: Case, folder: Path, how: str, text: str) -> Counter[str]:
    a, b = (
        case.stream(spark, one, 100).withWatermark("ts", f"{LATENESS_SECONDS} seconds").alias(one)
        for one in "ab"
    )
    joined = a.join(b, F.expr(text), how)
    columns = ["a.k", "a.ts", "a.n", "a.v", *([] if how == "left_semi" else ["b.ts", "b.n", "b.v"])]
    sink = Sink()
    query = joined.select(*columns).writeStream.foreachBatch(sink).option("checkpointLocation", str(folder))
    assert query.trigger(availableNow=True).start().awaitTermination(PATIENCE_SECONDS)
    return sink.counted


def test_sql_conditions_join_streams_as_spark_does(spark: SparkSession, tmp_path: Path) -> None:
    case = made(tmp_path / "in", seed=7, rows=40)
    a, b = (
        tg.stream(case.stream(spark, one, 2), time="ts", name=one, lateness=f"{LATENESS_SECONDS} seconds")
        for one in "ab"
    )
    sinks = {how: Sink(how) for how in TEXTS}
    query = tg.start(
        *(a.join(b, text, how=how, name=how).write_to(sinks[how]) for how, text in TEXTS.items()),
        checkpoint=str(tmp_path / "ours"),
        available_now=True,
        partitions=3,
        instances=2,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    try:
        for how, text in TEXTS.items():
            theirs = streamed_by_spark(spark, case, tmp_path / f"spark-{how}", how, text)
            assert len(theirs) > 20
            assert sinks[how].counted == theirs, how
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", partitions or "200")


@pytest.fixture(scope="module")
def sides(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    """Rows with keys of every type; the same values on both sides, nulls among them."""
    values = {name: column[2] for name, column in KEY_COLUMNS.items()}
    left = side(spark, {name: column[0] for name, column in KEY_COLUMNS.items()}, values)
    backwards = {name: list(reversed(column)) for name, column in values.items()}
    right = side(spark, {name: column[1] for name, column in KEY_COLUMNS.items()}, backwards)
    return left.cache(), right.cache()


def run(joins: dict[str, tg.Stream]) -> dict[str, Sink]:
    sinks = {name: Sink(name) for name in joins}
    tg.start(*(joined.write_to(sinks[name]) for name, joined in joins.items()), partitions=3, instances=2)
    return sinks


def test_null_safe_keys_of_every_type_match_null_with_null(sides: tuple[DataFrame, DataFrame]) -> None:
    left, right = sides
    a, b = tg.stream(left, time="ts", name="a"), tg.stream(right, time="ts", name="b")
    flows = {name: [name] for name in KEY_COLUMNS} | {
        "two": ["tiny", "day"],
        "three": ["text", "ratio", "tiny"],
    }
    joins = {
        name: a.select("n", *on).join(
            b.select("n", *on), tg.equal(*on, null_safe=True), within="1 minute", how="full", name=name
        )
        for name, on in flows.items()
    }
    sinks = run(joins)
    for name, on in flows.items():
        condition: Column = F.lit(True)
        for one in on:
            condition = condition & F.col(f"l.{one}").eqNullSafe(F.col(f"r.{one}"))
        theirs = left.alias("l").join(right.alias("r"), condition, "full").select("l.n", "r.n").collect()
        assert counted(numbers(sinks[name])) == counted(theirs), name


def test_plain_and_null_safe_keys_mix_in_every_kind_of_join(sides: tuple[DataFrame, DataFrame]) -> None:
    left, right = sides
    a, b = tg.stream(left, time="ts", name="a"), tg.stream(right, time="ts", name="b")
    on: list[Any] = ["truth", tg.equal({"tiny": "small"}, null_safe=True)]
    renamed = b.select("n", "truth", F.col("tiny").alias("small"))
    sinks = run(
        {
            how: a.select("n", "truth", "tiny").join(renamed, on, within="1 hour", how=how, name=how)
            for how in HOWS
        }
    )
    for how in HOWS:
        theirs = left.alias("l").join(
            right.alias("r"), F.expr("l.truth = r.truth AND l.tiny <=> r.tiny"), how
        )
        shown = theirs.select("l.n") if how.startswith("left_") else theirs.select("l.n", "r.n")
        columns = ("n",) if how.startswith("left_") else ("n", "n_right")
        places = [sinks[how].columns.index(name) for name in columns]
        ours = [tuple(row[i] for i in places) for row in sinks[how].rows]
        assert counted(ours) == counted(shown.collect()), how


def rows(spark: SparkSession, key: str, keys: list[Any], more: str) -> DataFrame:
    values = [(seconds(n), k, n, f"{more}{n}") for n, k in enumerate(keys)]
    frame = spark.createDataFrame(values, f"us long, {key} string, n int, {more} string")
    return frame.withColumn("ts", F.timestamp_micros("us")).drop("us")


def test_keys_of_different_names_are_both_columns_as_in_spark(spark: SparkSession) -> None:
    left, right = (
        rows(spark, "cell", ["x", "y", None, "z"], "v"),
        rows(spark, "place", ["y", "x", "w", None], "w"),
    )
    a, b = tg.stream(left, time="ts", name="a"), tg.stream(right, time="ts", name="b")
    sinks = run(
        {how: a.join(b, {"cell": "place"}, within="1 hour", how=how, name=how, suffix="_b") for how in HOWS}
    )
    for how in HOWS:
        theirs = left.alias("l").join(right.alias("r"), F.expr("l.cell = r.place"), how)
        if how.startswith("left_"):
            assert sinks[how].columns == ["cell", "n", "v", "ts"]
            expected = theirs.select("l.cell", "l.n", "l.v", "l.ts")
        else:
            assert sinks[how].columns == ["cell", "place", "n", "v", "ts", "n_b", "w", "ts_b"]
            expected = theirs.select("l.cell", "r.place", "l.n", "l.v", "l.ts", "r.n", "r.w", "r.ts")
        assert sinks[how].counted == counted(expected.collect()), how


def test_sql_finds_the_columns_of_the_joined_row(spark: SparkSession) -> None:
    left = rows(spark, "Cell", ["x", "Y", "x", "z"], "v").withColumn("end", F.col("n"))
    right = rows(spark, "place", ["y", "X", "x", None], "v").withColumn("loc", F.struct("n"))
    a, b = tg.stream(left, time="ts", name="a"), tg.stream(right, time="ts", name="b")
    near = "abs(a.ts - b.ts) <= INTERVAL 1 HOUR"
    texts = {
        "clash": f"a.cell = b.place AND {near} AND B.v >= 'v1' AND a.v < b.v",
        "expressions": f"lower(A.cell) = lower(place) AND {near} AND b.loc.n + a.end > 1",
        "other key": f"a.cell = b.place AND {near} AND b.place = upper(a.cell) IS NOT NULL AND b.n > 0",
    }
    joins = {name: a.join(b, text, how="left", name=name) for name, text in texts.items()}
    joins["column"] = a.join(b, F.expr(texts["clash"]), how="left", name="column")
    joins["columns"] = a.join(
        b,
        [
            F.lower(F.col("a.Cell")) == F.lower(F.col("b.place")),
            F.col("b.ts").between(
                F.col("a.ts") - F.expr("INTERVAL 1 HOUR"), F.col("a.ts") + F.expr("INTERVAL 1 HOUR")
            ),
            F.col("b.loc")["n"] + F.col("a.end") > 1,
        ],
        how="left",
        name="columns",
    )
    texts |= {"column": texts["clash"], "columns": texts["expressions"]}
    sinks = run(joins)
    for name, text in texts.items():
        theirs = left.alias("a").join(right.alias("b"), F.expr(text), "left").select("a.n", "b.n").collect()
        assert counted(numbers(sinks[name])) == counted(theirs), name


def test_sql_names_the_columns_of_an_operator_in_front(spark: SparkSession) -> None:
    frame = rows(spark, "cell", ["x", "y", "x", "z"], "v")
    a, b, c = (tg.stream(frame, time="ts", name=name) for name in "abc")
    first = a.join(b, "cell", within="0 seconds", name="first").with_column("m", F.col("n") + 1)
    text = "first.cell = c.cell AND first.m > c.n"
    sink = run({"second": first.join(c, text, within="1 hour", suffix="_c")})["second"]
    places = [sink.columns.index(name) for name in ("n", "m", "n_c")]
    assert {tuple(row[i] for i in places) for row in sink.rows} == {
        (n, n + 1, other) for n in range(4) for other in range(n + 1) if other == n or (n, other) == (2, 0)
    }
    for wrong in ("first.gone = c.cell", "first.cell = c.cell AND first.gone > 1"):
        with pytest.raises(tg.FlowError, match=r"JOIN_SQL_UNKNOWN_COLUMN.*'first.gone'"):
            first.join(c, wrong, within="1 hour")


def test_a_replaced_event_time_and_a_random_key_are_refused_at_the_start(spark: SparkSession) -> None:
    frame = rows(spark, "cell", ["x"], "v")
    a, b = tg.stream(frame, time="ts", name="a"), tg.stream(frame, time="ts", name="b")
    text = "a.cell = b.cell AND a.ts = b.ts"
    moved = a.with_column("ts", F.col("ts") + F.expr("INTERVAL 1 HOUR"))
    with pytest.raises(tg.FlowError, match="JOIN_SQL_TIME_REPLACED"):
        tg.start(moved.join(b, text).write_to("noop"))
    kept = a.with_column("more", F.col("n")).select("ts", "cell", "more")
    tg.start(kept.join(b, text).write_to("noop"))
    with pytest.raises(tg.FlowError, match="JOIN_KEY_RANDOM"):
        tg.start(a.join(b, "a.n + rand() = b.n AND a.ts = b.ts").write_to("noop"))
    with pytest.raises(tg.FlowError, match="does not understand the join key"):
        tg.start(a.join(b, "gone(a.n) = b.n AND a.ts = b.ts").write_to("noop"))
    with pytest.raises(tg.FlowError, match="JOIN_COLUMN_UNREADABLE"):
        a.join(b, F.udf(lambda x: x)(F.col("a.n")) == F.col("b.n"))


def test_names_of_keys_ignore_case_as_in_spark(spark: SparkSession) -> None:
    left, right = rows(spark, "Cell", ["x", "y"], "v"), rows(spark, "cell", ["y", "x"], "w")
    a, b = tg.stream(left, time="ts", name="a"), tg.stream(right, time="ts", name="b")
    sink = run({"once": a.join(b, "CELL", within="1 hour")})["once"]
    assert sink.columns == ["Cell", "n", "v", "ts", "n_right", "w", "ts_right"]
    assert counted(numbers(sink)) == counted([(0, 1), (1, 0)])
