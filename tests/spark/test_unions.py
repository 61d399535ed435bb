"""The union of streams gives what Spark's unionByName of the finished data gives, through every operator."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import (
    PATIENCE_SECONDS,
    STREAM_SCHEMA,
    Sink,
    add_files,
    counted,
    read_files,
    seconds,
    start_bounded,
    stream_table,
)
from tests.spark.test_goals import UNREACHABLE

import tidegate as tg

FILES, ROWS = 6, 50
#: Every file of a stream covers this many seconds: `slow` lies far behind `fast` in every batch.
SPEEDS = {"fast": 20.0, "slow": 7.0, "tracks": 12.0}
END = 10_000
OUTPUTS = ("pairs", "counts", "found", "rows", "odd")


def files(name: str, seed: int) -> list[pa.Table]:
    """Rows out of order within the lateness of two seconds; the last file closes everything."""
    chance = np.random.default_rng(seed)
    pace, tables = SPEEDS[name], []
    for file in range(FILES):
        at = np.sort(chance.uniform(pace * file, pace * (file + 1), ROWS)) - chance.uniform(0, 1.9, ROWS)
        keys = chance.integers(0, 5, ROWS)
        rows = [
            (seconds(t), int(k), 100 * file + n, 0) for n, (t, k) in enumerate(zip(at, keys, strict=True))
        ]
        tables.append(stream_table(rows))
    return [*tables, stream_table([(seconds(END), None, -1, 0)])]


def sources(spark: SparkSession, home: Path) -> dict[str, tg.Stream]:
    return {
        name: tg.stream(
            read_files(spark, home / name, STREAM_SCHEMA), time="ts", name=name, lateness="2 seconds"
        )
        for name in SPEEDS
    }


def finished(spark: SparkSession, home: Path, name: str) -> DataFrame:
    return spark.read.schema(STREAM_SCHEMA).parquet(str(home / name))


def flow(streams: dict[str, tg.Stream]) -> dict[str, tg.Stream]:
    fast = streams["fast"].filter("n % 7 != 0").with_column("origin", F.lit("fast"))
    slow = streams["slow"].select("v", "n", "k", "ts").with_column("origin", F.lit("slow"))
    both = fast.union_by_name(slow)
    return {
        "pairs": both.filter("n >= 0").join(streams["tracks"], "k", within="1 second", how="left"),
        "counts": both.window("5 seconds", by="k").agg(n=F.count("*"), first=F.min("n")),
        "found": both.match([tg.RangeQuery("low", "n < 120"), tg.RangeQuery("high", "n > 380")]),
        "rows": both,
        "odd": both.filter("n % 2 = 1").select("origin", "n"),
    }


def run(spark: SparkSession, home: Path, sinks: dict[str, Sink]) -> Any:
    outputs = [stream.write_to(sinks[name], name=name) for name, stream in flow(sources(spark, home)).items()]
    query = tg.start(*outputs, checkpoint=str(home / "ck"), available_now=True, partitions=4)
    assert query.await_termination(PATIENCE_SECONDS)
    return query


def sparks_own(spark: SparkSession, home: Path) -> dict[str, Counter[str]]:
    fast, slow, tracks = (finished(spark, home, name) for name in SPEEDS)
    fast = fast.where("n % 7 != 0").withColumn("origin", F.lit("fast"))
    both = fast.unionByName(slow.select("v", "n", "k", "ts").withColumn("origin", F.lit("slow")))
    left, right = both.where("n >= 0").alias("l"), tracks.alias("r")
    near = "l.k = r.k AND abs(unix_micros(l.ts) - unix_micros(r.ts)) <= 1000000"
    shown = ["l.k", "l.ts", "l.n", "l.v", "l.origin", "r.ts", "r.n", "r.v"]
    window = F.window("ts", "5 seconds")
    groups = both.groupBy("k", window).agg(F.count("*"), F.min("n"))
    answers = {
        "pairs": left.join(right, F.expr(near), "left").select(*shown),
        "counts": groups.select("window.start", "window.end", "k", "count(1)", "min(n)"),
        "found": both.where("n < 120 OR n > 380").selectExpr("*", "if(n < 120, 'low', 'high') AS query_name"),
        "rows": both,
        "odd": both.where("n % 2 = 1").select("origin", "n"),
    }
    return {name: counted(frame.collect()) for name, frame in answers.items()}


def test_a_union_feeds_joins_windows_matches_and_outputs_across_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = {name: files(name, seed) for seed, name in enumerate(SPEEDS)}
    first, second = ({name: Sink(name) for name in OUTPUTS} for _ in range(2))
    for name in SPEEDS:
        add_files(tmp_path / name, tables[name][:3])
    run(spark, tmp_path, first)
    for name in SPEEDS:
        add_files(tmp_path / name, tables[name][3:])
    query = run(spark, tmp_path, second)
    expected = sparks_own(spark, tmp_path)
    # The windows of the end itself never close.
    closed = {name: first[name].counted + second[name].counted for name in first}
    missing = {name: expected[name] - closed[name] for name in first}
    assert {name: closed[name] - expected[name] for name in first} == {name: Counter() for name in first}
    assert {name: len(rows) for name, rows in missing.items()} == dict.fromkeys(first, 0) | {"counts": 1}
    assert all(sink.rows for sink in first.values()), "nothing came before the restart"
    total = query.receipts(by="total").set_index(["kind", "name"])
    assert set(total["rows_unexplained"]) == {0}
    assert set(total["mode"]) == {"EXACT"}
    for name in SPEEDS:
        line = total.loc["stream", name]
        assert (line.rows_offered, line.rows_late, line.rows_rejected) == (FILES * ROWS + 1, 0, 0)
    written = {name: len(first[name].rows) + len(second[name].rows) for name in ("rows", "found")}
    assert {name: total.loc["output", name].rows_written for name in written} == written


def stream_of(spark: SparkSession, folder: Path, schema: str = STREAM_SCHEMA, **settings: Any) -> tg.Stream:
    frame = read_files(spark, folder, schema)
    return tg.stream(frame, time="ts", name=folder.name, lateness="2 seconds", **settings)


def test_every_stream_of_a_union_has_its_own_late_and_rejected_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    # In the second batch a row at 5 is late in `a`, whose newest is 60, but not in `b` or `c`.
    for name, newest in (("a", 60), ("b", 3), ("c", 4)):
        rows = [(seconds(newest), 1, 0, 0), (None, 1, 1, 0)]
        again = [(seconds(5), 1, 2, 0), (seconds(70), 1, 3, 0)]
        tables = [stream_table(rows), stream_table(again)]
        if name == "b":
            tables = [one.drop_columns(["v"]).append_column("w", one.column("v")) for one in tables]
        add_files(tmp_path / name, tables)
    a, c = (stream_of(spark, tmp_path / name) for name in "ac")
    b = stream_of(spark, tmp_path / "b", "ts timestamp, k long, n long, w long")
    both = a.union_by_name(b, allow_missing_columns=True)
    three = both.filter("n < 9").drop("w").unionByName(c)
    sinks = {name: Sink(name) for name in ("three", "both", "windows", "late")}
    query = tg.start(
        three.write_to(sinks["three"], name="three"),
        both.write_to(sinks["both"], name="both"),
        three.window("10 seconds").agg(n=F.count("*")).write_to(sinks["windows"], name="windows"),
        a.late.write_to(sinks["late"], name="late"),
        checkpoint=str(tmp_path / "ck"),
        available_now=True,
        partitions=4,
        watermark="own",
    )
    assert query.await_termination(PATIENCE_SECONDS)
    assert sinks["both"].columns == ["ts", "k", "n", "v", "w"]
    assert Counter((row[2], row[3], row[4]) for row in sinks["both"].rows) == Counter(
        {(0, 0, None): 1, (3, 0, None): 1, (0, None, 0): 1, (2, None, 0): 1, (3, None, 0): 1}
    )
    assert Counter(row[2] for row in sinks["three"].rows) == Counter({0: 3, 2: 2, 3: 3})
    assert [row[2] for row in sinks["late"].rows] == [2]
    assert [row[2] for row in sinks["windows"].rows] == [4]
    total = query.receipts(by="total").set_index(["kind", "name"])
    assert set(total["rows_unexplained"]) == {0}
    columns = ["rows_offered", "rows_late", "rows_rejected", "rows_processed"]
    found = {name: tuple(total.loc[("stream", name), columns]) for name in "abc"}
    assert found == {"a": (4, 1, 1, 2), "b": (4, 0, 1, 3), "c": (4, 0, 1, 3)}
    assert not total.loc[("output", "windows"), "complete"]
    progress = query.last_progress
    assert progress is not None
    assert set(progress.inputs) == {"a", "b", "c"}
    assert list(progress.operators) == ["a_b_c_window"]


def test_a_silent_stream_holds_a_union_back_until_it_is_idle(spark: SparkSession, tmp_path: Path) -> None:
    rows = [stream_table([(seconds(10 * file), 1, file, 0)]) for file in range(4)]
    add_files(tmp_path / "a", rows)
    add_files(tmp_path / "b", [stream_table([])])
    closed = {}
    for name, timeout in (("waits", None), ("goes on", "1 millisecond")):
        a = stream_of(spark, tmp_path / "a")
        b = stream_of(spark, tmp_path / "b", idle_timeout=timeout)
        sink = Sink()
        counts = a.union_by_name(b, name="both").window("5 seconds").agg(n=F.count("*"))
        query = tg.start(
            counts.write_to(sink), checkpoint=str(tmp_path / name), available_now=True, partitions=2
        )
        assert query.await_termination(PATIENCE_SECONDS)
        closed[name] = [row[2] for row in sink.rows]
    assert closed == {"waits": [], "goes on": [1, 1, 1]}


def test_what_is_shed_behind_a_union_is_accounted_for(spark: SparkSession, tmp_path: Path) -> None:
    for seed, name in enumerate(SPEEDS):
        add_files(tmp_path / name, files(name, seed))
    streams = sources(spark, tmp_path)
    both = streams["fast"].union_by_name(streams["slow"])
    pairs, counts = Sink("pairs"), Sink("counts")
    query = start_bounded(
        both.join(streams["tracks"], "k", within="1 second").write_to(pairs, name="pairs"),
        both.window("1 second").agg(n=F.count("*")).write_to(counts, name="counts", max_gap=4),
        checkpoint=str(tmp_path / "ck"),
        goal=UNREACHABLE,
        shed=tg.Shed(join="random_drop"),
    )
    assert query.await_termination(PATIENCE_SECONDS)
    total = query.receipts(by="total").set_index(["kind", "name"])
    assert set(total["rows_unexplained"]) == {0}
    rows = 2 * (FILES * ROWS + 1)
    assert total.loc["output", "counts"].rows_offered == rows
    assert total.loc["output", "pairs"].rows_offered == rows + FILES * ROWS + 1
    assert total.loc["output", "pairs"].rows_shed > 0
    assert total.loc["output", "pairs"]["mode"] == "SUBSET"
    assert {total.loc["stream", name].rows_offered for name in SPEEDS} == {FILES * ROWS + 1}


def test_a_union_of_batch_inputs_is_sparks_own(spark: SparkSession) -> None:
    left = spark.range(5).selectExpr("timestamp_seconds(id) AS ts", "cast(id AS int) AS k", "'x' AS only")
    right = spark.range(3).selectExpr("id AS K", "timestamp_seconds(id + 100) AS ts")
    a, b = tg.stream(left, time="ts", name="a"), tg.stream(right, time="ts", name="b")
    united = a.union_by_name(b, allow_missing_columns=True)
    expected = left.unionByName(right, allowMissingColumns=True)
    assert united.schema.simpleString() == expected.schema.simpleString()
    assert counted(united.to_dataframe().collect()) == counted(expected.collect())
    pairs = united.join(b, "k", within=tg.between("-1 day", "1 day"))
    assert len(pairs.to_dataframe().collect()) == 3 + 3


def test_unions_that_cannot_be_are_refused(spark: SparkSession) -> None:
    left = spark.range(1).selectExpr("timestamp_seconds(id) AS ts", "id AS k", "1 AS x")
    a = tg.stream(left, time="ts", name="a")
    b = tg.stream(left.selectExpr("ts", "k", "2 AS y"), time="ts", name="b")
    with pytest.raises(tg.FlowError, match="only before: x; only in b: y") as raised:
        _ = a.union_by_name(b).schema
    assert raised.value.code == "UNION_COLUMNS_DIFFER"
    c = tg.stream(left.selectExpr("cast(ts AS timestamp_ntz) AS ts", "k", "x"), time="ts", name="c")
    with pytest.raises(tg.FlowError, match="a: timestamp, c: timestamp_ntz") as raised:
        _ = a.union_by_name(c).schema
    assert raised.value.code == "UNION_TIME_TYPES_DIFFER"
    d = tg.stream(left.selectExpr("ts", "k", "array(1) AS x"), time="ts", name="d")
    with pytest.raises(tg.FlowError) as raised:
        _ = a.union_by_name(d).schema
    assert raised.value.code == "UNION_INVALID"
