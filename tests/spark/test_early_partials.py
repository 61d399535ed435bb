"""Windows whose rows are aggregated by the tasks in front of them: the same results as without."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tidegate as tg
from tidegate.driver.compile.compiler import compile_flow
from tidegate.driver.io.staging import Staging
from tidegate.state.store.local import LocalStore

LEFT, RIGHT = "k int, ts timestamp, a bigint, b int, r double, s string", "k int, ts timestamp, c bigint"
FILES = 4


def _rows(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    numbers = spark.range(1200).withColumn("ts", F.expr("timestamp_seconds(1767225600 + id div 4)"))
    left = numbers.selectExpr(
        "cast(id % 17 as int) k",
        "ts",
        "if(id % 13 = 0, null, id % 29) a",
        "if(id % 5 = 0, null, cast(id % 3 as int)) b",
        "if(id % 31 = 0, double('NaN'), id / 8) r",
        "if(id % 7 = 0, null, concat('s', id % 4)) s",
    )
    return left, numbers.selectExpr("cast(id % 17 as int) k", "ts", "id % 23 c")


def _streams(spark: SparkSession, folder: Path) -> tuple[tg.Stream, tg.Stream]:
    made = []
    for name, frame, schema in zip(("lefts", "rights"), _rows(spark), (LEFT, RIGHT), strict=True):
        for number in range(FILES):
            seconds = F.unix_seconds("ts") - 1767225600
            part = frame.where((seconds >= number * 75) & (seconds < (number + 1) * 75))
            if number == FILES - 1:
                # An hour later: releases all windows.
                part = part.union(frame.limit(1).withColumn("ts", F.expr("ts + INTERVAL 1 HOUR")))
            part.coalesce(1).write.mode("append").parquet(str(folder / name))
        read = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / name))
        made.append(tg.stream(read, name=name, time="ts", lateness="10 seconds"))
    return made[0], made[1]


def _pairs(lefts: tg.Stream, rights: tg.Stream) -> tg.Stream:
    return lefts.join(rights, "k", within="9 seconds", name="pairs")


CASES: dict[str, Callable[[tg.Stream], Any]] = {
    "no group": lambda pairs: pairs.window("1 minute", name="w").agg(n=F.count("*"), most=F.max("a")),
    "a nullable number": lambda pairs: pairs.window("20 seconds", by="b", name="w").agg(
        n=F.count("*"), there=F.count("a"), total=F.sum("a"), mean=F.avg("b"), least=F.min("c")
    ),
    "several groups": lambda pairs: pairs.window("20 seconds", by=["s", "b", "k"], name="w").agg(
        n=F.count("*"), most=F.max("s"), real=F.sum("r"), highest=F.max("r"), lowest=F.min("r")
    ),
    "sliding": lambda pairs: pairs.window("25 seconds", slide="10 seconds", by="s", name="w").agg(
        n=F.count("*"), total=F.sum("b")
    ),
    "chosen columns": lambda pairs: (
        pairs.select("ts", "a", "b").window("20 seconds", by="b", name="w").agg(total=F.sum("a"))
    ),
    "a time": lambda pairs: pairs.window("20 seconds", by="b", name="w").agg(last=F.max("ts")),
    "windows of windows": lambda pairs: (
        pairs.window("10 seconds", by=["k", "b"], name="w")
        .agg(most=F.max("a"))
        .window("30 seconds", by="b", name="v")
        .agg(mean=F.avg("most"), n=F.count("*"))
    ),
}


def _early(flow: tg.Stream, folder: Path) -> dict[str, str]:
    compiled = compile_flow([flow.write_to("noop")], 4)
    return dict(Staging.of(compiled, LocalStore(str(folder))).early)


@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_results_are_those_of_a_batch_run(
    spark: SparkSession, tmp_path: Path, make: Callable[[tg.Stream], Any]
) -> None:
    flow = make(_pairs(*_streams(spark, tmp_path)))
    assert _early(flow, tmp_path / "state")
    out = flow.write_to("parquet", str(tmp_path / "out"), name="out")
    with tg.start(out, checkpoint=str(tmp_path / "ck"), available_now=True) as query:
        query.await_termination()
    left, right = _rows(spark)
    wanted = make(
        _pairs(tg.stream(left, name="lefts", time="ts"), tg.stream(right, name="rights", time="ts"))
    )
    assert _rounded(spark.read.parquet(str(tmp_path / "out"))) == _rounded(wanted.to_dataframe())


def _rounded(frame: DataFrame) -> list[str]:
    real = [name for name, kind in frame.dtypes if kind == "double"]
    names = sorted(frame.columns)
    shown = [F.round(name, 6).alias(name) if name in real else F.col(name) for name in names]
    found = [str(row) for row in frame.select(*shown).collect()]
    assert found
    return sorted(found)


@pytest.mark.parametrize(
    "make",
    [
        lambda pairs: pairs.window("1 minute", by="r", name="w").agg(n=F.count("*")),
        lambda pairs: pairs.window("1 minute", by="b", name="w").agg(n=F.sum(F.col("a") + 1)),
        lambda pairs: pairs.with_column("d", F.col("a") * 2).window("1 minute", name="w").agg(n=F.max("d")),
        lambda pairs: pairs.window("1 minute", name="w").agg(n=F.collect_list("a")),
        lambda pairs: pairs.filter("a > 3").window("1 minute", name="w").agg(n=F.max("a")),
    ],
    ids=["reals as groups", "an expression", "a computed column", "lists", "a filter"],
)
def test_what_only_spark_can_compute_stays_with_it(
    spark: SparkSession, tmp_path: Path, make: Callable[[tg.Stream], Any]
) -> None:
    assert not _early(make(_pairs(*_streams(spark, tmp_path))), tmp_path / "state")


def test_rows_that_an_output_writes_too_are_staged_and_aggregated(
    spark: SparkSession, tmp_path: Path
) -> None:
    pairs = _pairs(*_streams(spark, tmp_path))
    busy = pairs.window("20 seconds", by="b", name="w").agg(n=F.count("*"), most=F.max("a"))
    flows = {"pairs": pairs, "busy": busy}
    assert _early(busy, tmp_path / "state")
    outputs = [
        flow.write_to("parquet", str(tmp_path / f"out-{name}"), name=name) for name, flow in flows.items()
    ]
    with tg.start(*outputs, checkpoint=str(tmp_path / "ck"), available_now=True) as query:
        query.await_termination()
    left, right = _rows(spark)
    wanted = _pairs(tg.stream(left, name="lefts", time="ts"), tg.stream(right, name="rights", time="ts"))
    found = spark.read.parquet(str(tmp_path / "out-pairs")).where("ts < timestamp_seconds(1767229200)")
    assert _rounded(found) == _rounded(wanted.to_dataframe())
    counts = wanted.window("20 seconds", by="b", name="w").agg(n=F.count("*"), most=F.max("a"))
    assert _rounded(spark.read.parquet(str(tmp_path / "out-busy"))) == _rounded(counts.to_dataframe())
