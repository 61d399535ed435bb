"""Residual conditions that tasks evaluate: the same pairs as with Spark's own evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tidegate as tg
from tidegate.driver.compile.compiler import compile_flow
from tidegate.driver.operators.join import JoinOperator
from tidegate.worker.runtime.layout import Comparison

LEFT = "k int, ts timestamp, a bigint, b int, day date, name string, share double"
RIGHT = "k int, ts timestamp, c bigint, d int, until timestamp, word string"


def _time(second: int) -> str:
    return f"2026-01-01 00:00:{second:02d}"


def _frames(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    lefts = [
        (i % 7, _time(i % 50), None if i % 11 == 0 else i % 13, i % 5, "2026-01-02", f"n{i % 3}", i / 10)
        for i in range(300)
    ]
    rights = [
        (i % 7, _time(i % 50), i % 13, None if i % 9 == 0 else i % 5, _time((i + 7) % 50), f"n{i % 3}")
        for i in range(300)
    ]
    left = spark.createDataFrame(lefts, LEFT.replace("timestamp", "string").replace("date", "string"))
    right = spark.createDataFrame(rights, RIGHT.replace("timestamp", "string"))
    return (
        left.withColumns({"ts": F.expr("timestamp(ts)"), "day": F.expr("date(day)")}),
        right.withColumns({"ts": F.expr("timestamp(ts)"), "until": F.expr("timestamp(until)")}),
    )


def _joined(spark: SparkSession, where: Any) -> tg.Stream:
    left, right = _frames(spark)
    lefts, rights = tg.stream(left, name="lefts", time="ts"), tg.stream(right, name="rights", time="ts")
    return lefts.join(rights, "k", within="9 seconds", where=where, name="pairs")


def _shown(stream: tg.Stream) -> tuple[Comparison, ...]:
    (join,) = compile_flow([stream.write_to("noop")], 4).operators
    assert isinstance(join, JoinOperator)
    return join.layout.shown


BY_TASKS = {
    "two columns": "a = c",
    "nulls on both sides": "a <= c AND b < d",
    "a number": "a > 5",
    "a number of another type": "b >= 2L AND b <= 3",
    "a time of the row": "ts <= until",
    "times of both": "ts < ts_right",
    "a date": "day = date'2026-01-02' AND a < 4",
    "a negation": "NOT (a > c)",
}
BY_SPARK = {
    "texts": "name = word",
    "reals": "share > 3.0",
    "other arithmetic": "a + 1 = c",
    "another type": "b = c",
    "either": "a = c OR b = d",
    "a null of another column": "a = c AND d IS NOT NULL",
    "null-safe": "a <=> c",
}


@pytest.mark.parametrize("where", [*BY_TASKS.values(), *BY_SPARK.values()], ids=[*BY_TASKS, *BY_SPARK])
def test_pairs_are_those_of_a_join_of_spark(spark: SparkSession, where: Any) -> None:
    left, right = (frame.alias(name) for frame, name in zip(_frames(spark), "lr", strict=True))
    near = F.expr("l.k = r.k AND abs(unix_micros(l.ts) - unix_micros(r.ts)) <= 9000000")
    named = {"ts": "r.ts"}
    pairs = left.join(right, near).select(
        "l.*",
        *[F.col(named.get(name, f"r.{name}")).alias(_as(name)) for name in right.columns if name != "k"],
    )
    ours = _joined(spark, where).to_dataframe()
    wanted = pairs.where(where).select(*ours.columns)
    assert 0 < wanted.count()
    assert ours.exceptAll(wanted).isEmpty()
    assert wanted.exceptAll(ours).isEmpty()


def _as(name: str) -> str:
    return "ts_right" if name == "ts" else name


@pytest.mark.parametrize("where", BY_TASKS.values(), ids=BY_TASKS)
def test_whole_numbers_and_times_are_compared_by_tasks(spark: SparkSession, where: Any) -> None:
    assert _shown(_joined(spark, where))


@pytest.mark.parametrize("where", BY_SPARK.values(), ids=BY_SPARK)
def test_all_else_is_left_to_spark(spark: SparkSession, where: Any) -> None:
    assert not _shown(_joined(spark, where))


def test_a_stream_writes_the_pairs_that_tasks_show(spark: SparkSession, tmp_path: Path) -> None:
    left, right = _frames(spark)
    for name, frame in (("left", left), ("right", right)):
        frame.coalesce(1).write.parquet(str(tmp_path / name))
    lefts, rights = (
        tg.stream(
            spark.readStream.schema(frame.schema).parquet(str(tmp_path / name)),
            name=name,
            time="ts",
            lateness="1 minute",
        )
        for name, frame in (("left", left), ("right", right))
    )
    pairs = lefts.join(rights, "k", within="9 seconds", where="a = c", name="pairs")
    out = pairs.write_to("parquet", str(tmp_path / "out"), name="out")
    with tg.start(out, checkpoint=str(tmp_path / "checkpoint"), available_now=True) as query:
        query.await_termination()
    written = spark.read.parquet(str(tmp_path / "out"))
    wanted = _joined(spark, "a = c").to_dataframe()
    assert written.count() == wanted.count() > 0
    assert written.where("a = c").count() == written.count()
