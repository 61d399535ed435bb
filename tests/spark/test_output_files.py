"""Outputs of files: flat, with the user's columns only, few, and never mixed with files of others."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import (
    PATIENCE_SECONDS,
    STREAM_SCHEMA,
    add_files,
    read_files,
    seconds,
    stream_table,
)

import tidegate as tg

#: By route to the files: what write_to gets besides.
ROUTES: dict[str, dict[str, Any]] = {
    "linked": {},
    "by the action": {"options": {"compression": "zstd"}},
    "partitioned": {"partition_by": "k"},
    "csv": {"target": "csv", "options": {"header": True}},
}


def one_row_files(folder: Path, times: list[float], key: int = 1, first: int = 0) -> None:
    """A file per row, so a batch per row."""
    add_files(folder, [stream_table([(seconds(at), key, first + n, 0)]) for n, at in enumerate(times)])


def source(spark: SparkSession, folder: Path, name: str) -> tg.Stream:
    frame = read_files(spark, folder, STREAM_SCHEMA)
    return tg.stream(frame, time="ts", name=name, lateness="0 seconds")


def batches(spark: SparkSession, home: Path) -> tg.Stream:
    """Pairs with a column `batch` of the user's own."""
    a, b = source(spark, home / "a", "a"), source(spark, home / "b", "b")
    a, b = (one.with_column_renamed("n", "batch").select("k", "ts", "batch") for one in (a, b))
    return a.join(b.select("k", "ts"), on="k", within="1 second", name="near")


def write_inputs(home: Path) -> None:
    for name in "ab":
        one_row_files(home / name, [0, 10, 20])


def run(*outputs: tg.Output, checkpoint: Path, **settings: Any) -> tg.StreamingQuery:
    query = tg.start(*outputs, checkpoint=str(checkpoint), available_now=True, instances=2, **settings)
    assert query.await_termination(PATIENCE_SECONDS)
    return query


@pytest.mark.parametrize("route", ROUTES)
def test_files_lie_flat_and_hold_the_columns_of_the_user(
    spark: SparkSession, tmp_path: Path, route: str
) -> None:
    write_inputs(tmp_path)
    near, out = batches(spark, tmp_path), tmp_path / "out"
    settings = dict(ROUTES[route])
    kind = settings.pop("target", "parquet")
    query = run(near.write_to(kind, out, name="near", **settings), checkpoint=tmp_path / "ck")
    partitioned = "partition_by" in settings
    files = sorted(out.glob("k=*/*" if partitioned else "[!.]*"))
    assert all(path.is_file() for path in files)
    assert {path.name[:15] for path in files} >= {f"part-000000000{batch}" for batch in range(3)}
    columns = ["ts", "batch", "ts_right", "k"] if partitioned else ["k", "ts", "batch", "ts_right"]
    read = spark.read.csv(str(out), header=True) if kind == "csv" else spark.read.parquet(str(out))
    assert read.columns == columns
    assert sorted(int(row.batch) for row in read.collect()) == [0, 1, 2]
    pattern = f"{out}/{'*/' if partitioned else ''}*.{kind}"
    with duckdb.connect() as connection:
        found = connection.sql(f"select * from '{pattern}'" if kind == "csv" else f"from '{pattern}'")
        assert sorted(found.columns) == sorted(columns)
        assert sorted(row[0] for row in found.select("batch").fetchall()) == [0, 1, 2]
    if kind == "parquet":
        assert sorted(pd.read_parquet(out)["batch"]) == [0, 1, 2]
    assert not list(out.glob(".tidegate/*"))
    assert sum(p.outputs["near"].rows_written or 0 for p in query.recent_progress) == 3


def test_two_outputs_of_one_operator_are_written_once_each(spark: SparkSession, tmp_path: Path) -> None:
    write_inputs(tmp_path)
    near = batches(spark, tmp_path)
    run(
        near.write_to("parquet", tmp_path / "linked", name="linked"),
        near.with_column("more", F.col("batch") + 1).write_to("json", tmp_path / "written", name="written"),
        checkpoint=tmp_path / "ck",
    )
    linked = spark.read.parquet(str(tmp_path / "linked"))
    assert sorted(row.batch for row in linked.collect()) == [0, 1, 2]
    assert sorted(row.more for row in spark.read.json(str(tmp_path / "written")).collect()) == [1, 2, 3]


def test_folders_with_files_of_others_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    write_inputs(tmp_path)
    near = batches(spark, tmp_path)

    def refused(words: str, *outputs: tg.Output, **settings: Any) -> None:
        with pytest.raises(tg.FlowError, match=words) as raised:
            tg.start(*outputs, **settings)
        assert raised.value.code == "OUTPUT_DIRECTORY_IN_USE"

    # Of a query of Spark.
    frame = read_files(spark, tmp_path / "a", STREAM_SCHEMA)
    theirs = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "spark-ck"))
    theirs.trigger(availableNow=True).start(str(tmp_path / "spark")).awaitTermination()
    at_spark = near.write_to("parquet", tmp_path / "spark", name="near")
    refused("_spark_metadata", at_spark, checkpoint=str(tmp_path / "ck-1"), available_now=True)

    # Of a run with another checkpoint, and of one without: over batch inputs.
    out = near.write_to("parquet", tmp_path / "out", name="near")
    run(out, checkpoint=tmp_path / "ck")
    refused("holds part-000000000", out, checkpoint=str(tmp_path / "ck-2"), available_now=True)
    rows = tg.stream(spark.read.schema(frame.schema).parquet(str(tmp_path / "a")), time="ts", name="a")
    refused("holds part-000000000", rows.write_to("parquet", tmp_path / "out", name="rows"))
    tg.start(rows.write_to("parquet", tmp_path / "rows", name="rows"))
    assert spark.read.parquet(str(tmp_path / "rows")).columns == ["ts", "k", "n", "v"]

    # An output that is new to an old checkpoint; its own files are known.
    more = near.select("k").write_to("parquet", tmp_path / "spark", name="more")
    refused("_spark_metadata", out, more, checkpoint=str(tmp_path / "ck"), available_now=True)
    run(out, checkpoint=tmp_path / "ck")


@pytest.mark.parametrize(
    ("kind", "settings", "files"),
    [
        ("parquet", {}, 1),
        ("parquet", {"partition_by": "k"}, 2),
        ("orc", {"options": {"compression": "none"}}, 1),
        ("json", {}, None),
    ],
    ids=["linked", "partitioned", "orc", "json"],
)
def test_files_of_several_batches_are_published_together_as_few_files(
    spark: SparkSession, tmp_path: Path, kind: str, settings: dict[str, Any], files: int | None
) -> None:
    for name in "ab":
        one_row_files(tmp_path / name, [0, 10, 20])
        one_row_files(tmp_path / name, [30, 40], first=3, key=7)
    near, out = batches(spark, tmp_path), tmp_path / "out"
    output = near.write_to(kind, out, name="near", commit_every="1 hour", **settings)
    query = run(output, checkpoint=tmp_path / "ck")
    found = [path for path in out.rglob("*") if path.is_file()]
    if files is not None:
        assert len(found) == files
    read = spark.read.format(kind).load(str(out))
    assert Counter((row.k, row.batch) for row in read.collect()) == Counter(
        [(1, 0), (1, 1), (1, 2), (7, 3), (7, 4)]
    )
    assert set(read.columns) == {"k", "ts", "batch", "ts_right"}
    # Rows count in the batch that publishes them.
    *earlier, last = [p.latency for p in query.recent_progress]
    assert all(one.p50_seconds is None for one in earlier)
    assert last.p50_seconds is not None


def test_files_are_published_when_their_time_has_come_also_if_no_row_comes(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_inputs(tmp_path)
    out = tmp_path / "out"
    output = batches(spark, tmp_path).write_to("parquet", out, name="near", commit_every="5 seconds")
    with tg.start(output, checkpoint=str(tmp_path / "ck"), instances=2, trigger="200 milliseconds"):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not list(out.glob("part-*")):
            assert time.monotonic() < deadline, "nothing was published"
            time.sleep(0.1)
        found = spark.read.parquet(str(out)).count()
    assert 0 < found <= 3
    assert spark.read.parquet(str(out)).count() == 3


def test_files_on_another_file_system_are_published_the_same_way(spark: SparkSession, tmp_path: Path) -> None:
    write_inputs(tmp_path)
    (tmp_path / "far").mkdir()
    # A file system with a scheme of its own, as Spark's Java side sees it.
    spark.conf.set("fs.viewfs.mounttable.far.link./disk", f"file://{tmp_path}/far")
    near, out = batches(spark, tmp_path), "viewfs://far/disk/out"
    whole = near.write_to("parquet", out, name="whole")
    run(whole, checkpoint=tmp_path / "ck")
    files = sorted(path.name for path in (tmp_path / "far/out").glob("part-*"))
    assert {name[:15] for name in files} >= {f"part-000000000{batch}" for batch in range(3)}
    assert sorted(row.batch for row in spark.read.parquet(out).collect()) == [0, 1, 2]
    with pytest.raises(tg.FlowError, match="OUTPUT_DIRECTORY_IN_USE"):
        tg.start(whole, checkpoint=str(tmp_path / "new"), available_now=True)
    parts = near.write_to("parquet", f"{out}-k", name="parts", partition_by="k", commit_every="1 hour")
    run(parts, checkpoint=tmp_path / "ck-parts")
    assert len(list((tmp_path / "far/out-k").glob("k=1/part-*"))) == 1
    assert sorted(row.batch for row in spark.read.parquet(f"{out}-k").collect()) == [0, 1, 2]
    assert not list((tmp_path / "far").rglob(".tidegate/*"))


def test_stop_publishes_and_another_start_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    write_inputs(tmp_path)
    out = tmp_path / "out"

    def output() -> tg.Output:
        return batches(spark, tmp_path).write_to("parquet", out, name="near", commit_every="1 hour")

    for first in (0, 3):
        if first:
            for name in "ab":
                one_row_files(tmp_path / name, [100, 110], first=first)
        query = tg.start(output(), checkpoint=str(tmp_path / "ck"), instances=2)
        query.process_all_available()
        assert len(list(out.glob("part-*"))) == (3 if first else 0)
        query.stop()
    rows = spark.read.parquet(str(out)).collect()
    assert sorted(row.batch for row in rows) == [0, 1, 2, 3, 4]
    assert not list(out.glob(".tidegate/*"))
