"""The join that is killed: two streams of files, and conditions on their pairs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from tests.spark.crash_input import LATENESS_US, SCHEMA, WITHIN_US

import tidegate as tg
from tidegate.api.joins.join_node import How

FAILING_BATCHES = ("0", "3")


def joined(spark: SparkSession, home: Path, how: How, where: Any, within_us: int = WITHIN_US) -> tg.Stream:
    """The flow under test."""
    return source(spark, home, "left").join(
        source(spark, home, "right"), on="k", within=f"{within_us} microseconds", how=how, where=where
    )


def source(spark: SparkSession, home: Path, side: str, schema: str | None = None) -> tg.Stream:
    columns = schema or (SCHEMA if side == "left" else SCHEMA.replace("v double", "w double"))
    frame = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1).parquet(str(home / side))
    return tg.stream(frame, time="ts", name=side, lateness=f"{LATENESS_US} microseconds")


def failing_at_first() -> Column:
    """WHERE as a function that raises, in some batches, wherever a task is run for the first time."""

    def judged(v: float | None, w: float | None) -> bool | None:
        task = TaskContext.get()
        batch = None if task is None else task.getLocalProperty("streaming.sql.batchId")
        if task is not None and task.attemptNumber() == 0 and str(batch) in FAILING_BATCHES:
            time.sleep(0.5)  # the join, a step before us, has given its rows and closes its file
            raise RuntimeError("the first attempt fails, as it was told to")
        return None if v is None or w is None else v + w > 0.6

    return F.udf(judged, "boolean")("v", "w")
