"""Rows that a join drops at random: in front of the user's steps, counted, and the same in a replay."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import PATIENCE_SECONDS, Sink, add_files, read_files, seconds, start_bounded

import tidegate as tg
from tidegate.driver.compile.compiler import compile_flow

SCHEMA = "ts timestamp, k int, id bigint, tags map<string, int>"
GOAL = tg.Goal(latency="1 hour")
#: Half of the rows of each side, so that a quarter of the pairs is left.
SHED = tg.Shed(join="random_drop", rate=0.25)
ROWS, BATCHES = 600, 3


def table(side: int, batch: int, times: list[float] | None = None, keys: int = 40) -> pa.Table:
    """Rows of one batch, numbered through; by default over ten seconds."""
    rng = np.random.default_rng([side, batch])
    rows = ROWS if times is None else len(times)
    at = rng.uniform(10 * batch, 10 * batch + 10, rows) if times is None else np.array(times)
    first = (side * BATCHES + batch) * ROWS
    return pa.table(
        {
            "ts": pa.array([seconds(one) for one in at.tolist()], pa.timestamp("us", "UTC")),
            "k": pa.array(rng.integers(0, keys, rows), pa.int32()),
            "id": pa.array(np.arange(first, first + rows)),
            "tags": pa.array([[("a", 1)]] * rows, pa.map_(pa.string(), pa.int32())),
        }
    )


def stream(spark: SparkSession, folder: Path, lateness: str = "1 minute") -> tg.Stream:
    return tg.stream(read_files(spark, folder, SCHEMA), time="ts", name=folder.name, lateness=lateness)


def noted(rows: tg.Stream, folder: Path) -> tg.Stream:
    """The same rows behind a function of Python, which notes the rows for which it is called."""
    folder.mkdir()
    place = str(folder)

    def note(number: int) -> int:
        with open(f"{place}/{os.getpid()}", "a") as file:
            file.write(f"{number}\n")
        return number

    return rows.with_column("id", F.udf(lambda number: note(number), "bigint")("id"))


def called_for(folder: Path) -> list[int]:
    return [int(line) for file in folder.iterdir() for line in file.read_text().split()]


#: The keys of the first batch are not counted before there is a plan, which reads all of its rows.
CALM = tg.Balance(strategy="none")


def run(output: tg.Output, *more: tg.Output, checkpoint: Path, **settings: Any) -> Any:
    query = start_bounded(
        output, *more, checkpoint=checkpoint, goal=GOAL, shed=SHED, balance=CALM, **settings
    )
    assert query.await_termination(PATIENCE_SECONDS)
    return query


def joined(home: Path, left: list[int], right: list[int], folders: tuple[str, str]) -> Counter[str]:
    """The exact join of these rows, by DuckDB."""
    with duckdb.connect() as connection:
        for name, folder, ids in zip(("l", "r"), folders, (left, right), strict=True):
            connection.register("kept", pa.table({"id": pa.array(ids, pa.int64())}))
            rows = f"from '{home}/{folder}/*.parquet' where id in (select id from kept)"
            connection.sql(f"create table {name} as {rows}")
        near = "abs(epoch_us(l.ts) - epoch_us(r.ts)) <= 2000000"
        found = connection.sql(f"select l.id, r.id from l join r on l.k = r.k and {near}").fetchall()
    return Counter(map(repr, found))


def shed_by(query: Any, operator: str) -> list[int]:
    """What the tasks of a join report as dropped, by side."""
    lines = [one for p in query.telemetry for one in p["operators"] if one["operator"] == operator]
    return [sum(one["dropped"][side] for one in lines) for side in (0, 1)]


def test_the_steps_see_kept_rows_only_and_what_comes_out_is_their_exact_join(
    spark: SparkSession, tmp_path: Path
) -> None:
    for side, name in enumerate(("a", "b")):
        add_files(tmp_path / name, [table(side, batch) for batch in range(BATCHES)])
    left, right = (noted(stream(spark, tmp_path / name), tmp_path / f"kept_{name}") for name in ("a", "b"))
    sink = Sink()
    pairs = left.join(right, on="k", within="2 seconds", name="near").select("id", "id_right")
    query = run(pairs.write_to(sink), checkpoint=tmp_path / "ck")

    kept = [called_for(tmp_path / f"kept_{name}") for name in ("a", "b")]
    assert all(len(set(ids)) == len(ids) for ids in kept)
    assert all(0.45 < len(ids) / (BATCHES * ROWS) < 0.55 for ids in kept)
    assert sink.counted == joined(tmp_path, kept[0], kept[1], ("a", "b"))
    assert shed_by(query, "near") == [BATCHES * ROWS - len(ids) for ids in kept]
    total = query.receipts(by="total").set_index("name")
    for name, ids in zip(("a", "b"), kept, strict=True):
        line = total.loc[name]
        assert (line.rows_offered, line.rows_processed) == (BATCHES * ROWS, len(ids))
        assert line.rows_shed == BATCHES * ROWS - len(ids)


def test_late_and_rejected_rows_are_no_shed_rows_and_dropped_ones_move_the_watermark(
    spark: SparkSession, tmp_path: Path
) -> None:
    odd = table(0, 1, [1.0] * 300 + [45.0] * 300)
    times = odd.column("ts").to_pylist()
    times[300] = None
    times[301] = times[301].replace(year=3000)
    odd = odd.set_column(0, "ts", pa.array(times, pa.timestamp("us", "UTC")))
    # The newest time of the last batch is that of one row, which some seeds drop.
    add_files(tmp_path / "a", [table(0, 0, [30.0] * 300), odd, table(0, 2, [50.0])])
    add_files(tmp_path / "b", [table(1, 0, [30.0]), table(1, 1, [45.0]), table(1, 2, [50.0])])
    newest, dropped = set(), 0
    for seed in range(4):
        left, right = (stream(spark, tmp_path / name, "1 second") for name in ("a", "b"))
        pairs = left.join(right, on="k", within="2 seconds", name="near")
        query = run(pairs.write_to(Sink()), checkpoint=tmp_path / f"ck{seed}", seed=seed, watermark="own")
        line = query.receipts(by="total").set_index("name").loc["a"]
        assert line.rows_offered == 901
        assert (line.rows_late, line.rows_rejected) == (300, 2)
        assert 250 < line.rows_shed < 350
        assert line.rows_processed == 901 - 302 - line.rows_shed
        newest.add(query.telemetry[-1]["watermarks"]["a"])
        dropped += query.telemetry[2]["operators"][0]["dropped"][0]
    assert dropped
    assert len(newest) == 1


def test_of_two_readers_of_a_stream_one_drops_and_the_other_does_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    for side, name in enumerate(("a", "b")):
        add_files(tmp_path / name, [table(side, batch) for batch in range(BATCHES)])
    a, b = (stream(spark, tmp_path / name) for name in ("a", "b"))
    pairs, counts = Sink("pairs"), Sink("counts")
    query = run(
        a.join(b, on="k", within="2 seconds", name="near").write_to(pairs, name="pairs"),
        a.window("1 hour", name="all").agg(n=F.count("*")).write_to(counts, name="counts"),
        a.filter("k < 20").join(b, on="k", within="1 second", how="left", name="whole").write_to(Sink()),
        checkpoint=tmp_path / "ck",
    )
    assert 0.4 * BATCHES * ROWS < shed_by(query, "near")[0] < 0.6 * BATCHES * ROWS
    assert shed_by(query, "all") == shed_by(query, "whole") == [0, 0]
    taken = [one for p in query.telemetry for one in p["operators"] if one["operator"] == "all"]
    assert sum(one["offered"][0] for one in taken) == BATCHES * ROWS
    assert query.receipts(by="total").set_index("name").loc["a"].rows_offered == BATCHES * ROWS


@pytest.mark.parametrize("apart", [False, True], ids=["in one scan", "read apart"])
def test_the_same_stream_on_both_sides_draws_twice(spark: SparkSession, tmp_path: Path, apart: bool) -> None:
    add_files(tmp_path / "a", [table(0, batch) for batch in range(BATCHES)])
    a = stream(spark, tmp_path / "a")
    left, right = a.select("ts", "k", "id"), a.select("ts", "k", "id")
    if apart:
        left, right = noted(left, tmp_path / "kept_l"), noted(right, tmp_path / "kept_r")
    sink = Sink()
    pairs = left.join(right, on="id", within="1 second", name="near").select("id")
    query = run(pairs.write_to(sink), checkpoint=tmp_path / "ck")
    rows = BATCHES * ROWS
    kept = [rows - dropped for dropped in shed_by(query, "near")]
    assert all(0.45 < one / rows < 0.55 for one in kept)
    assert 0.2 < len(sink.rows) / rows < 0.3, "a row is its own partner where both sides keep it"
    assert len(sink.rows) == len(sink.counted)
    if apart:
        assert [len(called_for(tmp_path / f"kept_{side}")) for side in "lr"] == kept
        both = set(called_for(tmp_path / "kept_l")) & set(called_for(tmp_path / "kept_r"))
        assert {row[0] for row in sink.rows} == both


@pytest.mark.parametrize("into", ["a function", "files"])
def test_a_join_of_a_join_drops_results_in_front_of_its_shuffle(
    spark: SparkSession, tmp_path: Path, into: str
) -> None:
    for side, name in enumerate(("a", "b")):
        add_files(tmp_path / name, [table(side, batch) for batch in range(BATCHES)])
    a, b = (stream(spark, tmp_path / name) for name in ("a", "b"))
    first = a.join(b, on="k", within="2 seconds", name="first").select("ts", "k", "id", "id_right")
    second = first.join(
        b.select("ts", "k", F.col("id").alias("third")), on="k", within="1 second", name="second"
    )
    sink = Sink()
    output = second.write_to(sink) if into == "a function" else second.write_to("json", str(tmp_path / "out"))
    query = run(output, checkpoint=tmp_path / "ck")
    reports = [one for p in query.telemetry for one in p["operators"]]
    emitted = sum(one["emitted"] for one in reports if one["operator"] == "first")
    offered = [sum(one["offered"][side] for one in reports if one["operator"] == "second") for side in (0, 1)]
    assert offered == [emitted, BATCHES * ROWS]
    assert all(0.4 < d / o < 0.6 for d, o in zip(shed_by(query, "second"), offered, strict=True))
    if into == "files":
        assert list((tmp_path / "out").rglob("*.json"))


def test_a_replay_drops_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    for side, name in enumerate(("a", "b")):
        add_files(tmp_path / name, [table(side, batch) for batch in range(BATCHES)])
    seen: dict[int, list[Counter[str]]] = {}
    calls: list[int] = []

    def sink(frame: Any, batch: int) -> None:
        seen.setdefault(batch, []).append(Counter(map(repr, frame.collect())))
        calls.append(batch)
        if calls.count(batch) == 1 and batch == 1:
            raise RuntimeError("the disk is full")

    def started(**settings: Any) -> Any:
        a, b = (stream(spark, tmp_path / name) for name in ("a", "b"))
        pairs = a.join(b, on="k", within="2 seconds", name="near").select("id", "id_right")
        return start_bounded(
            pairs.write_to(sink, name="out"), checkpoint=tmp_path / "ck", goal=GOAL, shed=SHED, **settings
        )

    with pytest.raises(tg.TidegateError, match="disk is full"):
        started(seed=3).await_termination(PATIENCE_SECONDS)
    # The plan of the batch holds whatever is asked for now.
    assert started(seed=4).await_termination(PATIENCE_SECONDS)
    assert len(seen[1]) == 2
    assert seen[1][0] == seen[1][1]
    assert seen[1][0]


def test_the_draw_reads_no_column_that_nothing_else_reads(spark: SparkSession, tmp_path: Path) -> None:
    for side, name in enumerate(("a", "b")):
        add_files(tmp_path / name, [table(side, 0)])
    a, b = (stream(spark, tmp_path / name) for name in ("a", "b"))
    flow = a.with_column("n", F.expr("id + 1")).join(b, on="k", within="1 second").select("n")
    (join,) = compile_flow([flow.write_to("noop", name="out")], 4).joins
    for entry in join.entries:
        assert {"k", "id"} <= entry.reads
        assert "tags" not in entry.reads
