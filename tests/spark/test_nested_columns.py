"""Fields of nested columns: a reader gets those that it needs, and the same rows as from the whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tidegate as tg
from tidegate.driver.compile.compiled import Compiled
from tidegate.driver.compile.compiler import compile_flow

SCHEMA = (
    "kind int, ts timestamp, a struct<id: bigint, name: string, more: struct<x: int, y: int>>, "
    "b struct<id: bigint, word: string, unread: string>"
)


def _rows(spark: SparkSession) -> DataFrame:
    return spark.range(60).selectExpr(
        "cast(id % 2 as int) kind",
        "if(id = 59, null, timestamp_seconds(1767225600 + id)) ts",
        "if(id % 2 = 0 and id != 20, struct(id % 7 as id, concat('n', id) as name, "
        "struct(cast(id as int) as x, cast(id * 2 as int) as y) as more), null) a",
        "if(id % 2 = 1 and id != 31, struct(id % 7 as id, concat('w', id) as word, 'x' as unread), null) b",
    )


def _events(spark: SparkSession, folder: Path, **settings: Any) -> tg.Stream:
    rows = _rows(spark)
    if not (folder / "in").exists():
        for part in (
            rows.where("ts < timestamp_seconds(1767225630)"),
            rows.where("ts is null or ts >= timestamp_seconds(1767225630)"),
        ):
            part.coalesce(1).write.mode("append").parquet(str(folder / "in"))
    read = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    return tg.stream(read, name="events", time="ts", lateness="1 minute", **settings)


def _batch(spark: SparkSession) -> tg.Stream:
    return tg.stream(_rows(spark), name="events", time="ts")


def _join(events: tg.Stream) -> tg.Stream:
    left = events.filter("kind = 0").select("ts", "a.id", "a.name")
    right = events.filter("kind = 1").select("ts", "b.id", "b.word")
    return left.join(right, "id", within="20 seconds", name="pairs").select("id", "name", "word")


FLOWS: dict[str, Callable[[tg.Stream], tg.Stream]] = {
    "fields of two columns": _join,
    "a deep field": lambda events: (
        events.select("ts", "kind", "a.more.x")
        .window("10 seconds", by="kind", name="w")
        .agg(total=F.sum("x"))
    ),
    "a column that is null": lambda events: (
        events.filter("a IS NOT NULL")
        .select("ts", "a.id")
        .window("10 seconds", by="id", name="w")
        .agg(n=F.count("*"))
    ),
    "fields and the whole": lambda events: (
        events.select("ts", "b.id", F.expr("b IS NULL AS without"))
        .window("10 seconds", by=["id", "without"], name="w")
        .agg(n=F.count("*"))
    ),
}


def _written(spark: SparkSession, flow: tg.Stream, folder: Path) -> tuple[tg.StreamingQuery, list[str]]:
    out = flow.write_to("parquet", str(folder / "out"), name="out")
    with tg.start(out, checkpoint=str(folder / "ck"), available_now=True) as query:
        query.await_termination()
    return query, _texts(spark.read.parquet(str(folder / "out")))


def _texts(frame: DataFrame) -> list[str]:
    return sorted(str(row) for row in frame.select(*sorted(frame.columns)).collect())


@pytest.mark.parametrize("name", FLOWS)
def test_rows_are_those_of_the_whole_columns(spark: SparkSession, tmp_path: Path, name: str) -> None:
    # One more event closes the windows; joins ignore it.
    late = (
        _rows(spark)
        .where("kind = 0 AND a IS NOT NULL")
        .limit(1)
        .withColumn("ts", F.expr("ts + INTERVAL 1 DAY"))
    )
    make, events = FLOWS[name], _events(spark, tmp_path)
    late.coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
    query, found = _written(spark, make(events), tmp_path)
    wanted = _texts(make(_batch(spark)).to_dataframe())
    assert wanted
    assert found == wanted
    total = query.receipts(by="total")
    stream = total[total.kind == "stream"]
    assert stream.rows_offered.max() == 61
    assert stream.rows_rejected.max() == 1


def _compiled(flow: tg.Stream) -> Compiled:
    return compile_flow([flow.write_to("noop")], 4)


def _read(flow: tg.Stream) -> list[str]:
    """The fields of nested columns that are taken out in front of the counts."""
    found = [entry.nested for entry in _compiled(flow).entries]
    texts = [str(one.below._root.node.simpleString(1000)) for one in found if one is not None]  # type: ignore[union-attr]
    return sorted(name for text in texts for name in text.split() if name.startswith("_extract_"))


def test_only_fields_that_are_read_are_taken_out(spark: SparkSession, tmp_path: Path) -> None:
    names = [name.split("#")[0] for name in _read(_join(_events(spark, tmp_path)))]
    assert names == ["_extract_id", "_extract_id", "_extract_name", "_extract_word"]


@pytest.mark.parametrize(
    "make",
    [
        lambda events: events.select("ts", "a"),
        lambda events: events.select("ts", F.expr("a.id + unix_seconds(current_timestamp()) AS v")),
        lambda events: events.select("ts", F.udf(lambda number: number, "bigint")("a.id").alias("v")),
    ],
    ids=["the whole column", "the current time", "a function in Python"],
)
def test_other_plans_are_left_as_they_are(
    spark: SparkSession, tmp_path: Path, make: Callable[[tg.Stream], tg.Stream]
) -> None:
    entries = _compiled(make(_events(spark, tmp_path))).entries
    assert entries
    assert all(entry.nested is None for entry in entries)


def test_a_stream_with_a_time_of_arrival_is_counted_by_it(spark: SparkSession, tmp_path: Path) -> None:
    events = _events(spark, tmp_path, available_at="ts")
    query, found = _written(spark, _join(events), tmp_path)
    assert found == _texts(_join(_batch(spark)).to_dataframe())
    assert query.last_progress is not None
    assert query.last_progress.latency is not None
