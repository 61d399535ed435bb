"""Which rows are late: the same as in Spark's own stream-stream join and window aggregate, on equal files.

Both read one file of each stream in a batch, so they judge it by the same watermark, which is that of the
batch before: a row at it is late, a row one millisecond later is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import (
    PATIENCE_SECONDS,
    STREAM_SCHEMA,
    add_files,
    counted,
    read_files,
    seconds,
    stream_table,
)

import tidegate as tg

LATENESS = "10 seconds"
#: By stream: files of (seconds, k).
Files = dict[str, list[list[tuple[float, int]]]]
POLICY = "spark.sql.streaming.multipleWatermarkPolicy"


def write(home: Path, files: Files) -> None:
    number = 0
    for name, tables in files.items():
        made = []
        for rows in tables:
            made.append(stream_table([(seconds(at), k, number + i, 0) for i, (at, k) in enumerate(rows)]))
            number += len(rows)
        add_files(home / name, made)


def frames(spark: SparkSession, home: Path, names: Sequence[str]) -> dict[str, DataFrame]:
    return {
        name: read_files(spark, home / name, STREAM_SCHEMA)
        .selectExpr(f"ts AS {name}_ts", f"k AS {name}_k", f"n AS {name}_n")
        .withWatermark(f"{name}_ts", LATENESS)
        for name in names
    }


def rows_of(spark: SparkSession, near: Any, home: Path, name: str) -> Counter[str]:
    """What a program writes in one run over all files, one of each stream a batch."""
    query = (
        near.writeStream.format("parquet")
        .queryName(name)
        .option("checkpointLocation", str(home / f"ck-{name}"))
        .trigger(availableNow=True)
        .start(str(home / name))
    )
    assert query.awaitTermination(PATIENCE_SECONDS)
    written = spark.read.parquet(str(home / name))
    columns = sorted(written.columns)
    return counted(written.select(columns).collect())


def both(spark: SparkSession, home: Path, files: Files, program: Callable[..., Any]) -> list[Counter[str]]:
    """Spark's rows and ours, of a program over the frames or streams of these files."""
    write(home, files)
    given = frames(spark, home, sorted(files))
    streams = {name: tg.stream(frame, name=name) for name, frame in given.items()}
    return [rows_of(spark, program(given), home, "own"), rows_of(spark, program(streams), home, "ours")]


def joined(how: str) -> Callable[..., Any]:
    condition = "a_k = b_k AND b_ts BETWEEN a_ts - INTERVAL 20 SECONDS AND a_ts + INTERVAL 20 SECONDS"
    return lambda given: given["a"].join(given["b"], F.expr(condition), how=how)


#: Stream b is fast and a is slow: the watermark of both is that of a. In the third batch a brings rows behind
#: its own watermark of the batch before, which is 90; in the fourth b brings rows far behind its own.
SLOW_AND_FAST: Files = {
    "a": [
        [(80, 1), (80, 2)],
        [(100, 1), (81, 2)],
        [(89, 1), (91, 2)],
        [(120, 9)],
        [(94, 1), (111, 2), (200, 9)],
    ],
    "b": [
        [(80, 1), (500, 9)],
        [(501, 9)],
        [(95, 1), (502, 9)],
        [(85, 1), (92, 2), (103, 2)],
        [(104, 2), (112, 2)],
    ],
}


@pytest.mark.parametrize("how", ["inner", "left", "full"])
def test_a_join_keeps_and_drops_the_rows_that_spark_s_own_does(
    spark: SparkSession, tmp_path: Path, how: str
) -> None:
    own, ours = both(spark, tmp_path, SLOW_AND_FAST, joined(how))
    assert len(own) > 3
    assert ours == own


def test_the_fastest_watermark_judges_where_spark_is_told_so(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set(POLICY, "max")
    try:
        own, ours = both(spark, tmp_path, SLOW_AND_FAST, joined("inner"))
    finally:
        spark.conf.unset(POLICY)
    assert own
    assert ours == own


def test_a_window_keeps_late_rows_while_it_is_open(spark: SparkSession, tmp_path: Path) -> None:
    # The watermark is 90, then 100 in the third batch's eyes; windows are 20 long and begin every 10.
    files: Files = {
        "a": [
            [(80, 1)],
            [(100, 1), (110, 1)],
            [(89.999, 1), (70, 1)],
            [(99, 1), (79, 1), (85, 1)],
            [(200, 1)],
            [(300, 1)],
        ]
    }

    def program(given: dict[str, Any]) -> Any:
        a = given["a"]
        if isinstance(a, DataFrame):
            made = a.groupBy(F.window("a_ts", "20 seconds", "10 seconds"), "a_k").agg(F.count("*").alias("n"))
            return made.selectExpr("window.start AS s", "a_k", "n")
        busy = a.window("20 seconds", slide="10 seconds", by="a_k").agg(n=F.count("*"))
        return busy.select(F.col("window_start").alias("s"), "a_k", "n")

    own, ours = both(spark, tmp_path, files, program)
    assert len(own) > 5
    assert ours == own


def test_a_chain_of_joins_goes_by_the_slowest_of_all_its_streams(spark: SparkSession, tmp_path: Path) -> None:
    files: Files = {
        "a": [[(100, 1)], [(200, 9)], [(101, 1), (201, 9)], [(202, 9)]],
        "b": [[(100, 1)], [(200, 9)], [(102, 1), (201, 9)], [(202, 9)]],
        "c": [[(100, 1)], [(100, 9)], [(103, 1)], [(104, 1)]],
    }

    first = "a_k = b_k AND b_ts BETWEEN a_ts AND a_ts + INTERVAL 20 SECONDS"
    second = "a_k = c_k AND c_ts BETWEEN b_ts - INTERVAL 20 SECONDS AND b_ts + INTERVAL 20 SECONDS"

    def program(given: dict[str, Any]) -> Any:
        a, b, c = (given[name] for name in "abc")
        near = a.join(b, F.expr(first))
        if isinstance(c, DataFrame):
            # Spark takes one event time of a stream.
            return near.drop("a_ts").join(c, F.expr(second))
        # A pair has the later time of its rows, which is that of b.
        return near.join(c, on={"a_k": "c_k"}, within="20 seconds").drop("a_ts")

    own, ours = both(spark, tmp_path, files, program)
    assert len(own) > 5
    assert ours == own


def test_a_window_over_a_union_goes_by_the_slowest_stream(spark: SparkSession, tmp_path: Path) -> None:
    files: Files = {
        "a": [[(100, 1)], [(200, 1)], [(103, 1), (201, 1)], [(202, 1)], [(300, 1)], [(400, 1)]],
        "b": [[(100, 1)], [(130, 1)], [(131, 1)], [(101, 1), (118, 1)], [(300, 1)], [(400, 1)]],
    }

    def program(given: dict[str, Any]) -> Any:
        a, b = (
            given[name].select(F.col(f"{name}_ts").alias("ts"), F.col(f"{name}_k").alias("k"))
            for name in "ab"
        )
        if isinstance(given["a"], DataFrame):
            made = a.union(b).groupBy(F.window("ts", "10 seconds"), "k").agg(F.count("*").alias("n"))
            return made.selectExpr("window.start AS s", "k", "n")
        return (
            a.union_by_name(b, name="ab")
            .window("10 seconds", by="k")
            .agg(n=F.count("*"))
            .select(F.col("window_start").alias("s"), "k", "n")
        )

    own, ours = both(spark, tmp_path, files, program)
    assert len(own) > 3
    assert ours == own
