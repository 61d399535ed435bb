"""A query continues on a copy of its checkpoint that was made while it ran, with the same results."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession
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
from tidegate.cli.main import main
from tidegate.state.checkpoint import Checkpoint

#: Spark writes its list of source files as one entry with every tenth batch.
FILES, ROWS = 24, 20


def flow(spark: SparkSession, home: Path) -> tg.Stream:
    frame = read_files(spark, home / "rows", STREAM_SCHEMA)
    rows = tg.stream(frame, name="rows", time="ts", lateness="2 seconds")
    return rows.window("10 seconds", by="k").agg(n=F.count("*"), total=F.sum("n"))


def test_a_query_continues_on_a_copy_made_while_it_ran(spark: SparkSession, tmp_path: Path) -> None:
    chance = np.random.default_rng(4)
    tables = [
        stream_table([(seconds(4.0 * file + 0.2 * n), int(chance.integers(3)), n, 0) for n in range(ROWS)])
        for file in range(FILES)
    ]
    add_files(tmp_path / "rows", [*tables, stream_table([(seconds(1000), None, -1, 0)])])
    copy, torn, first = tmp_path / "copy", tmp_path / "torn", Sink()
    query = tg.start(flow(spark, tmp_path).write_to(first, name="out"), checkpoint=str(tmp_path / "ck"))
    with query:
        checkpoint, patience = Checkpoint(str(tmp_path / "ck")), time.monotonic() + PATIENCE_SECONDS
        while (checkpoint.manifests.latest_batch() or 0) < FILES // 2 and time.monotonic() < patience:
            time.sleep(0.05)
        assert main(["checkpoint", "copy", str(tmp_path / "ck"), str(copy)]) == 0
        query.process_all_available()
    begun = Checkpoint(str(copy)).manifests.latest_batch()
    assert begun is not None
    assert FILES // 2 <= begun < FILES
    # A hand that copied Spark's part long before the rest.
    shutil.copytree(tmp_path / "ck", torn)
    shutil.rmtree(torn / "spark")
    shutil.copytree(copy / "spark", torn / "spark")
    later = Sink()
    output = flow(spark, tmp_path).write_to(later, name="out")
    with pytest.raises(tg.StateError, match=r"CHECKPOINT_SPARK_LOG_OUTDATED.*offsets/"):
        tg.start(output, checkpoint=str(torn), available_now=True)
    again = tg.start(output, checkpoint=str(copy), available_now=True)
    assert again.await_termination(PATIENCE_SECONDS)
    kept = [row for batch, rows in first.batches.items() if batch <= begun for row in rows]
    wanted = (
        spark.read.schema(STREAM_SCHEMA)
        .parquet(str(tmp_path / "rows"))
        .where("n >= 0")
        .groupBy(F.window("ts", "10 seconds").alias("w"), "k")
        .agg(F.count("*").alias("n"), F.sum("n").alias("total"))
        .select("w.start", "w.end", "k", "n", "total")
    )
    assert counted(first.rows) == counted(map(tuple, wanted.collect()))
    assert counted([*kept, *later.rows]) == first.counted
    assert again.receipts(by="total")["rows_processed"].max() == FILES * ROWS + 1
