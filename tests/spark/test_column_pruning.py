"""A join stores and makes what is read behind it, whatever the steps are; another run may read others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import PATIENCE_SECONDS, Sink, add_files, counted, read_files, seconds

import tidegate as tg
from tidegate.driver.compile.compiler import compile_flow
from tidegate.errors import StateError

SCHEMA = "ts timestamp, k int, v int, w int, note string, tags array<string>"
SECOND_US = 1_000_000


def a_file(number: int, rows: int = 200) -> pa.Table:
    chance = np.random.default_rng(number)
    us = seconds(10 * number) + np.sort(chance.integers(0, 10 * SECOND_US, rows))
    values = chance.integers(0, 1000, rows)
    return pa.table(
        {
            "ts": pa.array(us, pa.timestamp("us", "UTC")),
            "k": pa.array(chance.integers(0, 5, rows), pa.int32()),
            "v": pa.array(values, pa.int32()),
            "w": pa.array(values % 7, pa.int32()),
            "note": pa.array([f"note {value % 11}" for value in values]),
            "tags": pa.array([[f"t{value % 3}", f"t{value % 5}"] for value in values]),
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    add_files(tmp_path / "in", [a_file(0), a_file(1)])
    return tmp_path / "in"


def joined(frame: DataFrame, how: Any = "inner", where: Any = None) -> tg.Stream:
    rows = tg.stream(frame, name="rows", time="ts", lateness="1 second")
    left, right = rows.filter("v % 2 = 0"), rows.filter("v % 2 = 1")
    return left.join(right, "k", how=how, within="1 second", where=where, name="near")


def stored(*outputs: tg.Output) -> tuple[set[str], set[str]]:
    """The columns that the first join stores of its sides."""
    layout = compile_flow(outputs, 4).joins[0].layout
    return set(layout.left.columns), set(layout.right.columns)


def near(table: DataFrame) -> DataFrame:
    """The inner join by Spark over the finished rows."""
    left = table.where("v % 2 = 0").alias("l")
    right = table.where("v % 2 = 1").alias("r")
    both = left.join(right, F.expr("l.k = r.k AND abs(unix_micros(l.ts) - unix_micros(r.ts)) <= 1000000"))
    sides = [
        F.col(f"{side}.{name}").alias(name + suffix)
        for side, suffix in (("l", ""), ("r", "_right"))
        for name in ("ts", "v", "w", "note", "tags")
    ]
    return both.select(F.col("l.k").alias("k"), *sides)


def run(outputs: list[tg.Output], home: Path) -> Any:
    query = tg.start(*outputs, checkpoint=str(home / "ck"), available_now=True, partitions=4)
    assert query.await_termination(PATIENCE_SECONDS)
    return query


def test_texts_that_nobody_reads_are_not_stored(spark: SparkSession, folder: Path) -> None:
    sums = joined(read_files(spark, folder, SCHEMA)).window("5 seconds", by="k").agg(n=F.sum("w"))
    assert stored(sums.write_to("noop")) == ({"k", "v", "w"}, {"k", "v", "w"})


def test_an_output_without_steps_reads_everything(spark: SparkSession, folder: Path) -> None:
    left, right = stored(joined(read_files(spark, folder, SCHEMA)).write_to("noop"))
    assert {"note", "tags"} <= left & right


def test_what_a_filter_a_condition_and_an_expression_read_is_stored(
    spark: SparkSession, folder: Path
) -> None:
    frame = read_files(spark, folder, SCHEMA)
    wide = joined(frame, where="note < note_right").filter("tags_right[0] = 't1'").select("v")
    assert {"note"} == {"note", "tags"} & stored(wide.write_to("noop"))[0]
    assert {"note", "tags"} == {"note", "tags"} & stored(wide.write_to("noop"))[1]


def test_a_join_stores_what_the_next_join_stores(spark: SparkSession, folder: Path) -> None:
    frame = read_files(spark, folder, SCHEMA)
    first = joined(frame)
    other = tg.stream(read_files(spark, folder, SCHEMA), name="other", time="ts", lateness="1 second")
    chain = (
        first.select("k", "note_right", "v", "tags_right")
        .join(other, {"note_right": "note"}, within="1 second", name="chain")
        .select("v", "tags_right")
    )
    left, right = stored(chain.write_to("noop"))
    assert {"note", "tags"} & left == set()
    assert {"note", "tags"} & right == {"note", "tags"}


STEPS: dict[str, Callable[[tg.Stream], tg.Stream]] = {
    "select by name": lambda rows: rows.select("v", "note_right"),
    "expressions": lambda rows: rows.select(
        (F.col("v") + F.col("w_right")).alias("sum"), F.upper("note").alias("n")
    ),
    "every column by place": lambda rows: rows.transform(
        lambda frame: frame.withColumn(
            "h", F.concat_ws("|", *[F.col(c).cast("string") for c in frame.columns if not c.startswith("_")])
        )
    ).select("h"),
    "renamed by place": lambda rows: rows.transform(
        lambda frame: frame.withColumnsRenamed({frame.columns[2]: "third"})
    ).select("third", "v_right"),
    "dropped": lambda rows: rows.drop("note", "tags", "tags_right"),
    "a function of Python": lambda rows: rows.select(
        F.udf(lambda a, b: f"{a}/{b}")("note", "v_right").alias("u")
    ),
}


@pytest.mark.parametrize("steps", STEPS)
def test_results_are_those_of_spark(spark: SparkSession, folder: Path, tmp_path: Path, steps: str) -> None:
    sink, whole = Sink(), Sink("whole")
    condition = "note <= note_right"
    rows = joined(read_files(spark, folder, SCHEMA), where=condition)
    run([STEPS[steps](rows).write_to(sink, name="pruned")], tmp_path / "pruned")
    rows = joined(read_files(spark, folder, SCHEMA), where=condition)
    # An output of all columns prevents pruning.
    run(
        [STEPS[steps](rows).write_to(whole, name="same"), rows.write_to("noop", name="all")],
        tmp_path / "whole",
    )
    assert sink.columns == whole.columns
    assert sink.counted == whole.counted
    expected = near(spark.read.schema(SCHEMA).parquet(str(folder))).where(condition).count()
    assert len(sink.rows) == expected > 100


@pytest.mark.parametrize("how", ["left", "full", "left_semi", "left_anti"])
def test_unmatched_rows_have_the_columns_that_are_read(
    spark: SparkSession, folder: Path, tmp_path: Path, how: str
) -> None:
    found = {}
    for kind in ("pruned", "whole"):
        sink = Sink()
        rows = joined(
            read_files(spark, folder, SCHEMA), how=how, where="note <> note_right AND v_right > 300"
        )
        outputs = [rows.select("k", "tags").write_to(sink, name="few")]
        outputs += [rows.write_to("noop", name="all")] if kind == "whole" else []
        run(outputs, tmp_path / kind)
        found[kind] = sink.counted
    assert found["pruned"] == found["whole"] != Counter()


def test_another_run_may_read_fewer_columns_and_other_numbers(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    first, second = Sink("first"), Sink("second")
    run([joined(read_files(spark, folder, SCHEMA)).select("v", "note").write_to(first, name="few")], tmp_path)
    add_files(folder, [a_file(2)])
    # Rows of the last second of the first run are still stored.
    run(
        [joined(read_files(spark, folder, SCHEMA)).select("v", "w_right").write_to(second, name="few")],
        tmp_path,
    )
    expected = near(spark.read.schema(SCHEMA).parquet(str(folder)))
    assert len(first.rows) + len(second.rows) == expected.count()
    late = expected.where(
        F.greatest("ts", "ts_right") >= F.timestamp_seconds(F.lit(seconds(20) // SECOND_US))
    )
    assert second.counted == counted(late.select("v", "w_right").collect())


def test_a_run_that_reads_a_text_that_was_not_stored_is_refused(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    run([joined(read_files(spark, folder, SCHEMA)).select("v").write_to("noop", name="few")], tmp_path)
    wider = joined(read_files(spark, folder, SCHEMA)).select("v", "note")
    with pytest.raises(StateError, match=r"CHECKPOINT_COLUMNS_NOT_STORED.*note"):
        run([wider.write_to("noop", name="few")], tmp_path)


@pytest.mark.parametrize("how", ["inner", "left"])
def test_new_columns_are_null_in_the_rows_that_were_stored_before(
    spark: SparkSession,
    folder: Path,
    tmp_path: Path,
    how: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    # Pieces with and without the new columns become one.
    monkeypatch.setattr("tidegate.control.merging.TIER", 2)
    monkeypatch.setattr("tidegate.control.merging.CLOSED_MIN", 2)
    few = "ts timestamp, k int, v int"
    first, second = Sink("first"), Sink("second")
    run([joined(read_files(spark, folder, few), how).write_to(first, name="all")], tmp_path)
    begin = F.timestamp_seconds(F.lit(seconds(20) // SECOND_US))
    add_files(folder, [a_file(2), a_file(3)])
    run([joined(read_files(spark, folder, SCHEMA), how).write_to(second, name="all")], tmp_path)

    table = spark.read.schema(SCHEMA).parquet(str(folder))
    for name in ("w", "note", "tags"):
        table = table.withColumn(name, F.when(F.col("ts") >= begin, F.col(name)))
    expected = near(table)
    met = spark.createDataFrame(second.rows, expected.select(second.columns).schema).where("v_right >= 0")
    columns = second.columns
    late = expected.where(F.greatest("ts", "ts_right") >= begin)
    assert counted(met.select(columns).collect()) == counted(late.select(columns).collect())
    assert met.where("note IS NULL AND note_right IS NOT NULL").count() > 0
    assert met.where("note IS NOT NULL AND note_right IS NOT NULL").count() > 0
    alone = [
        row[:3] for sink in (first, second) for row in sink.rows if row[sink.columns.index("v_right")] is None
    ]
    assert (how == "left") == bool(alone)
    assert len(set(alone)) == len(alone)
    assert "near has new columns, which are null in the rows that it has stored: w, note, tags" in caplog.text
    assert "Steps in front" not in caplog.text
