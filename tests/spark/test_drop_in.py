"""A program written for Spark's own stream-stream join gives the same rows with three changed lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import EPOCH_US, add_files, counted, read_files

import tidegate as tg

ORDERS = "ts timestamp, cell long, fare double"
TRACKS = "t_ts timestamp, t_cell long, speed double"
LATENESS = "10 minutes"
BATCHES, ROWS = 4, 150

CONDITION = """cell = t_cell AND speed < 15
    AND t_ts BETWEEN ts - INTERVAL 5 MINUTES AND ts + INTERVAL 1 MINUTE"""


def table(names: tuple[str, str, str], seed: int, batch: int) -> pa.Table:
    """Rows of one file, up to eight minutes out of order."""
    random = np.random.default_rng([seed, batch])
    minutes = 3 * batch - 8 * random.random(ROWS)
    columns = (
        pa.array(EPOCH_US + (minutes * 60e6).astype(np.int64), pa.timestamp("us", "UTC")),
        pa.array(random.integers(0, 12, ROWS)),
        pa.array(np.round(20 * random.random(ROWS), 3)),
    )
    return pa.table(dict(zip(names, columns, strict=True)))


def written_for_spark(orders_df: DataFrame, tracks_df: DataFrame) -> Any:
    orders = orders_df.withWatermark("ts", LATENESS)
    tracks = tracks_df.withWatermark("t_ts", LATENESS)
    return orders.join(tracks, F.expr(CONDITION))


def with_three_lines_changed(orders_df: DataFrame, tracks_df: DataFrame) -> Any:
    orders = tg.stream(orders_df.withWatermark("ts", LATENESS), name="orders")
    tracks = tg.stream(tracks_df.withWatermark("t_ts", LATENESS), name="tracks")
    return orders.join(tracks, F.expr(CONDITION))


def test_three_changed_lines_give_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    add_files(tmp_path / "orders", [table(("ts", "cell", "fare"), 1, batch) for batch in range(BATCHES)])
    add_files(tmp_path / "tracks", [table(("t_ts", "t_cell", "speed"), 2, batch) for batch in range(BATCHES)])
    found = {}
    for program in (written_for_spark, with_three_lines_changed):
        name = program.__name__
        near = program(
            read_files(spark, tmp_path / "orders", ORDERS), read_files(spark, tmp_path / "tracks", TRACKS)
        )
        query = (
            near.writeStream.format("parquet")
            .queryName(name)
            .outputMode("append")
            .option("checkpointLocation", str(tmp_path / f"ck-{name}"))
            .trigger(availableNow=True)
            .start(str(tmp_path / name))
        )
        query.awaitTermination()
        assert query.exception() is None
        rows = spark.read.parquet(str(tmp_path / name))
        found[name] = rows.select("ts", "cell", "fare", "t_ts", "t_cell", "speed").collect()
    own, ours = found.values()
    assert len(own) > 500
    assert counted(ours) == counted(own)


def test_an_option_that_is_not_known_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    add_files(tmp_path / "orders", [table(("ts", "cell", "fare"), 1, 0)])
    orders = tg.stream(
        read_files(spark, tmp_path / "orders", ORDERS), name="orders", time="ts", lateness=LATENESS
    )
    with pytest.raises(tg.FlowError, match=r"OPTION_UNKNOWN.*tidegate\.latencyy"):
        orders.writeStream.option("tidegate.latencyy", "2 seconds")
