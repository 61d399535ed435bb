"""A fourth operator is a node, an operator and a task: nothing in the package is edited for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import (
    PATIENCE_SECONDS,
    STREAM_SCHEMA,
    Sink,
    add_files,
    read_files,
    seconds,
    stream_table,
)
from tests.spark.session_windows import Sessions

import tidegate as tg

GAP_US = 3_000_000
FILES, ROWS = 6, 60


def files(seed: int) -> list[pa.Table]:
    """Rows a little out of order; the last file closes everything."""
    chance = np.random.default_rng(seed)
    tables = []
    for file in range(FILES):
        at = np.sort(chance.uniform(10 * file, 10 * file + 10, ROWS)) - chance.uniform(0, 1, ROWS)
        keys = chance.integers(0, 8, ROWS)
        tables.append(
            stream_table([(seconds(t), int(k), n, 0) for n, (t, k) in enumerate(zip(at, keys, strict=True))])
        )
    return [*tables, stream_table([(seconds(10_000), 99, 0, 0)])]


def sparks_own(spark: SparkSession, folder: Path) -> set[tuple[object, ...]]:
    frame: DataFrame = spark.read.schema(STREAM_SCHEMA).parquet(str(folder)).where("k < 8")
    window = F.session_window("ts", f"{GAP_US // 1_000_000} seconds")
    found = frame.groupBy("k", window).agg(F.count("*").alias("n"))
    return {
        tuple(row) for row in found.select("k", "session_window.start", "session_window.end", "n").collect()
    }


def run(spark: SparkSession, home: Path, sessions: Sink, pairs: Sink) -> None:
    a, b = (
        tg.stream(read_files(spark, home / name, STREAM_SCHEMA), time="ts", name=name, lateness="2 seconds")
        for name in ("a", "b")
    )
    query = tg.start(
        tg.Stream(Sessions(a.filter("n >= 0")._node, GAP_US)).write_to(sessions),
        a.join(b, on="k", within="1 second").select("n", "n_right").write_to(pairs),
        checkpoint=str(home / "ck"),
        available_now=True,
        partitions=4,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    total = query.receipts(by="total").set_index(["kind", "name"])
    assert total.loc["stream", "a"].rows_unexplained == 0
    assert set(total["mode"]) == {"EXACT"}


def test_a_strangers_operator_runs_beside_a_join_and_its_state_survives_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = files(3)
    sessions, again, pairs = Sink("sessions"), Sink("sessions"), Sink("pairs")
    add_files(tmp_path / "a", tables[:3])
    add_files(tmp_path / "b", files(4)[:3])
    run(spark, tmp_path, sessions, pairs)
    assert sessions.rows, "no session closed before the restart"
    add_files(tmp_path / "a", tables[3:])
    add_files(tmp_path / "b", files(4)[3:])
    run(spark, tmp_path, again, pairs)
    found = [*sessions.rows, *again.rows]
    assert len(found) == len(set(found)), "a session came out twice"
    assert set(found) == sparks_own(spark, tmp_path / "a")
    assert pairs.rows
