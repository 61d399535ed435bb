"""Streaming joins of random data give what DuckDB and Spark's own stream-stream join give."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
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
    stream_table,
)

import tidegate as tg
from tidegate.api.joins.join_node import How

HOWS: tuple[How, ...] = ("inner", "left", "right", "full", "left_semi", "left_anti")
LATENESS_SECONDS = 4
#: Long after everything else and with keys of their own: they move time on and are never seen themselves.
SENTINEL_SECONDS = 100_000

PAIR = "coalesce(a.k, b.k), a.ts, a.n, a.v, b.ts, b.n, b.v"


@dataclass(frozen=True)
class Case:
    """Two random streams on disk, and the same rows as tables."""

    folder: Path
    tables: dict[str, pa.Table]
    #: Seconds that a row may come late.
    lateness: int

    def stream(self, spark: SparkSession, side: str, per_batch: int) -> DataFrame:
        return read_files(spark, self.folder / side, STREAM_SCHEMA, per_batch)


def made(folder: Path, seed: int, files: int = 3, rows: int = 60, slower: int = 1) -> Case:
    """Disorder within lateness, a hot key, null keys, equal times, a file without rows.

    `slower`: by how much all times lie further apart.
    """
    rng = random.Random(seed)
    tables = {}
    for number, side in enumerate("ab"):
        now, parts = 0.0, []
        for file in range(files):
            batch = []
            for n in range(0 if file == 1 + number else rows):
                now += rng.choice([0, 0, 0.5, 1])
                time = seconds(slower * (now - rng.choice([0, 0, rng.randint(0, LATENESS_SECONDS)])))
                batch.append(
                    (time, rng.choice([1, 1, 1, *range(2, 12), None]), 1000 * file + n, rng.randint(0, 3))
                )
            parts.append(stream_table(batch))
        sentinel = stream_table([(seconds(SENTINEL_SECONDS), -1 - number, -1, 0)])
        add_files(folder / side, [*parts, sentinel])
        tables[side] = pa.concat_tables(parts)
    return Case(folder, tables, slower * LATENESS_SECONDS)


def by_duckdb(case: Case, how: str, near: str) -> Counter[str]:
    kind = {"left_semi": "SEMI", "left_anti": "ANTI"}.get(how, how)
    columns = "a.k, a.ts, a.n, a.v" if how.startswith("left_") else PAIR
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for side, table in case.tables.items():
            # Spark hands out timestamps without a zone.
            plain = table.set_column(0, "ts", table.column("ts").cast(pa.timestamp("us")))
            connection.register(side, plain)
        rows = connection.execute(f"SELECT {columns} FROM a {kind} JOIN b ON a.k = b.k AND {near}").fetchall()
    return counted(rows)


def by_tidegate(
    spark: SparkSession, case: Case, folder: Path, per_batch: int, **join: Any
) -> dict[str, Counter[str]]:
    """All six kinds of join in one query, so two streams feed six joins and six outputs."""
    a, b = (
        tg.stream(
            case.stream(spark, side, per_batch), time="ts", name=side, lateness=f"{case.lateness} seconds"
        )
        for side in "ab"
    )
    sinks = {how: Sink(how) for how in HOWS}
    query = tg.start(
        *(a.join(b, on="k", how=how, name=how, **join).write_to(sink) for how, sink in sinks.items()),
        checkpoint=str(folder),
        available_now=True,
        partitions=5,
        instances=2,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    assert sum(sum(progress["late"].values()) for progress in query.telemetry) == 0
    assert len(query.telemetry) >= 4 // per_batch
    return {how: sink.counted for how, sink in sinks.items()}


def by_spark(spark: SparkSession, case: Case, folder: Path, how: str, near: str) -> Counter[str]:
    """Spark's own stream-stream join. It waits for the sentinels as we do."""
    lateness = f"{case.lateness} seconds"
    a, b = (case.stream(spark, side, 100).withWatermark("ts", lateness) for side in "ab")
    if how == "full":
        # Spark 4.3 joins null keys with null keys in this kind of streaming join, and in no other.
        a, b = (frame.filter("k IS NOT NULL") for frame in (a, b))
    a, b = a.alias("a"), b.alias("b")
    joined = a.join(b, F.expr(f"a.k = b.k AND {near}"), how)
    columns = ["coalesce(a.k, b.k)", *PAIR.split(", ")[2:]]
    own = ["k", "ts", "n", "v"]
    shown = joined.select(*own) if how == "left_semi" else joined.selectExpr(*columns)
    sink = Sink()
    query = shown.writeStream.foreachBatch(sink).option("checkpointLocation", str(folder))
    assert query.trigger(availableNow=True).start().awaitTermination(PATIENCE_SECONDS)
    return sink.counted


def with_keys(rows: Counter[str]) -> Counter[str]:
    """Rows whose key, the first column, is not null."""
    return Counter({row: count for row, count in rows.items() if not row.startswith("(None,")})


@pytest.mark.parametrize(
    ("lower", "upper", "slower", "spark_hows"),
    [
        # Spark has no anti join of streams.
        ("-2 seconds", "3 seconds", 1, HOWS[:-1]),
        # Three hours of rows that come up to ten minutes late.
        ("1 hour", "2 hours", 150, ("inner", "left")),
    ],
)
def test_every_kind_of_join_equals_duckdb_and_spark(
    spark: SparkSession, tmp_path: Path, lower: str, upper: str, slower: int, spark_hows: tuple[How, ...]
) -> None:
    case = made(tmp_path / "in", seed=1, slower=slower)
    ours = by_tidegate(spark, case, tmp_path / "ours", 1, within=tg.between(lower, upper))
    near = f"b.ts BETWEEN a.ts + INTERVAL '{lower}' AND a.ts + INTERVAL '{upper}'"
    assert ours["inner"], "a test without pairs"
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    try:
        for how in HOWS:
            assert ours[how] == by_duckdb(case, how, near), how
            if how in spark_hows:
                theirs = by_spark(spark, case, tmp_path / f"spark-{how}", how, near)
                assert (with_keys(ours[how]) if how == "full" else ours[how]) == theirs, how
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", partitions or "200")


@pytest.mark.parametrize(("seed", "per_batch"), [(2, 2), (3, 4)])
def test_a_residual_condition_decides_for_every_kind_of_join(
    spark: SparkSession, tmp_path: Path, seed: int, per_batch: int
) -> None:
    case = made(tmp_path / "in", seed)
    ours = by_tidegate(
        spark, case, tmp_path / "ours", per_batch, within=tg.same_window("10 seconds"), where="v < v_right"
    )
    near = "epoch_us(a.ts) // 10000000 = epoch_us(b.ts) // 10000000 AND a.v < b.v"
    assert ours == {how: by_duckdb(case, how, near) for how in HOWS}
