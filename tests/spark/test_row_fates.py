"""Fates of rows are even: also where many rows of a batch have one time and few categories."""

from __future__ import annotations

from functools import reduce
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import PATIENCE_SECONDS, Sink, add_files, read_files, start_bounded
from tests.spark.test_random_drop import SCHEMA, called_for, noted, table
from tests.spark.test_sifted import work_of

import tidegate as tg
from tidegate.driver.frames.sample_frames import left_out_sql
from tidegate.driver.frames.sifter_frames import sifted
from tidegate.driver.frames.stream_rows import Draw
from tidegate.sift.filter.sifter import Sifter
from tidegate.sift.queries.axes import Axis
from tidegate.sift.regions import Domain, Regions
from tidegate.worker.runtime.layout import SAMPLE, SHARE, TIME

ROWS, BATCHES = 10_000, 40
#: One time and five keys; rows differ in a column that nothing decides by.
FEW = ("id", "cast(id % 5 as int) as k", "cast(id % 5 as string) as kind", f"1700000000000000L as {TIME}")


def within_bounds(shares: list[float], wanted: float) -> bool:
    low, high = np.percentile(shares, [5, 95])
    return bool(wanted - 0.05 < low < wanted < high < wanted + 0.05)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_random_drop_keeps_about_the_same_share_of_every_batch(spark: SparkSession, share: float) -> None:
    rows = spark.range(ROWS).selectExpr(*FEW)
    kept = [
        F.expr(f"count_if(NOT {Draw(share, 7, batch).loses(rows, None)}) / {ROWS}")
        for batch in range(BATCHES)
    ]
    (found,) = rows.agg(*[one.alias(f"b{number}") for number, one in enumerate(kept)]).collect()
    assert within_bounds(list(found), share)


def test_equal_rows_and_columns_that_nothing_reads_share_their_fate(spark: SparkSession) -> None:
    rows = spark.range(ROWS).selectExpr(*FEW)
    lost = Draw(0.5, 7, 3).loses(rows, {"k"})
    fates = rows.groupBy("k").agg(F.expr(f"count(distinct {lost})").alias("fates")).collect()
    assert {row["fates"] for row in fates} == {1}


@pytest.mark.parametrize("apart", [False, True])
def test_equal_rows_have_fates_of_their_own_where_a_column_tells_them_apart(
    spark: SparkSession, tmp_path: Path, apart: bool
) -> None:
    """The place of a row in its file is the same in a replay, however files are split."""
    alike = table(0, 0).slice(0, 1)
    add_files(tmp_path / "in", [pa.concat_tables([alike] * ROWS)])
    rows = spark.read.schema(SCHEMA).parquet(str(tmp_path / "in"))
    chosen = ["k", "id", *(["_metadata.row_index"] if apart else [])]
    given = rows.select("ts", *chosen).withColumn(TIME, F.expr("unix_micros(ts)"))
    lost = given.where(Draw(0.5, 7, 3).loses(given, None)).count()
    assert 0.45 * ROWS < lost < 0.55 * ROWS if apart else lost in (0, ROWS)


@pytest.mark.parametrize(
    "value",
    [
        "map('n', id)",
        "named_struct('n', map('n', id))",
        "array(map('n', id), null)",
        "parse_json(concat('{\"n\": ', id, '}'))",
        "array(id, null)",
        "named_struct('n', id)",
        "cast(cast(id as string) as binary)",
        "cast(id as decimal(20, 3))",
        "date_add(date'2026-01-01', cast(id as int))",
        "make_dt_interval(0, 0, 0, id)",
        "make_ym_interval(0, cast(id as int))",
        "cast(id as double)",
    ],
)
def test_rows_are_told_apart_by_columns_of_every_type(spark: SparkSession, value: str) -> None:
    rows = spark.range(2000).selectExpr(f"{value} as value", "null as nothing", f"5L as {TIME}")
    lost = Draw(0.5, 7, 3).loses(rows, None)
    assert 900 < rows.where(lost).count() < 1100


@pytest.mark.parametrize("z", [0.2, 0.5])
def test_a_sifter_passes_about_the_same_share_of_every_batch(spark: SparkSession, z: float) -> None:
    whole = Regions(
        Domain(np.zeros(1), np.full(1, 5.0)),
        np.zeros(0, np.int32),
        np.zeros(0),
        np.zeros((0, 2), np.int32),
    )
    axes = (Axis("kind", "category", ("0", "1", "2", "3", "4")),)
    sifter = Sifter(axes, whole, np.full(1, 1 - z))
    rows = spark.range(ROWS).selectExpr(*FEW).cache()
    passed: list[DataFrame] = []
    for batch in range(BATCHES):
        work = work_of(sifter, batch)
        passed.append(sifted(rows, work).where(f"NOT {SAMPLE}").agg(F.count("*")))
    counts = [row[0] / ROWS for row in reduce(DataFrame.unionAll, passed).collect()]
    rows.unpersist()
    assert within_bounds(counts, z)


def test_estimated_windows_sample_about_the_same_share_of_every_batch(spark: SparkSession) -> None:
    rows = spark.range(ROWS).selectExpr(*FEW, f"0.3D as {SHARE}")
    kept = [F.expr(f"count_if(NOT ({left_out_sql(rows, 7, batch)})) / {ROWS}") for batch in range(BATCHES)]
    (found,) = rows.agg(*[one.alias(f"b{number}") for number, one in enumerate(kept)]).collect()
    assert within_bounds(list(found), 0.3)


def test_a_costly_step_is_not_called_for_rows_that_a_sifter_drops(
    spark: SparkSession, tmp_path: Path
) -> None:
    add_files(tmp_path / "in", [table(0, batch) for batch in range(3)])
    rows = tg.stream(read_files(spark, tmp_path / "in", SCHEMA), time="ts", name="in", lateness="1 second")
    sink = Sink()
    queries = [tg.RangeQuery(f"q{key}", f"k >= {key} and k < {key + 2}") for key in range(40)]
    query = start_bounded(
        noted(rows, tmp_path / "kept").match(queries, name="hits").select("id", "query_name").write_to(sink),
        checkpoint=tmp_path / "ck",
        goal=tg.Goal(latency="1 hour"),
        shed=tg.Shed(rate=0.25),
    )
    assert query.await_termination(PATIENCE_SECONDS)
    called = called_for(tmp_path / "kept")
    line = query.receipts(by="total").set_index(["kind", "name"]).loc["stream", "in"]
    assert line.rows_shed > 0.4 * line.rows_offered
    assert len(called) == len(set(called)) == line.rows_processed
    assert {row[0] for row in sink.rows} == set(called)
