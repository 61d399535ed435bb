"""One query over files that are all there, on Spark: by this engine, or by Spark's own.

    files ─▶ one per batch ─▶ [ this engine | Spark, state in memory | Spark, state in RocksDB ] ─▶ Parquet

Time is counted from the call that starts the query until it has ended by itself, with all that lies between:
planning, starting, every batch, and the last results.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import tidegate as tg
from tidegate_lab.bench.nexmark.queries import spark_frames, tidegate_flows
from tidegate_lab.bench.nexmark.task import MEMORY, OURS, ROCKSDB, Answer, Task
from tidegate_lab.workloads.nexmark.rows import SPARK_SCHEMA

_STATE = "spark.sql.streaming.stateStore."
_PROVIDER = _STATE + "providerClass"
_PACKAGE = "org.apache.spark.sql.execution.streaming.state."
_PROVIDERS = {MEMORY: "HDFSBackedStateStoreProvider", ROCKSDB: "RocksDBStateStoreProvider"}


def play(spark: SparkSession, task: Task) -> Answer:
    """Run to the end; seconds of the whole and of each batch."""
    frame = read(spark, Path(task.events), max_files=1)
    begun = time.monotonic()
    query = start(spark, task, frame)
    try:
        query.awaitTermination()
        seconds = time.monotonic() - begun
        return {"event": "done", "seconds": seconds, "batches": batch_seconds(query)}
    finally:
        query.stop()
        release(spark)


def read(spark: SparkSession, folder: Path, max_files: int | None = None) -> DataFrame:
    reader = spark.readStream.schema(SPARK_SCHEMA)
    if max_files is not None:
        reader = reader.option("maxFilesPerTrigger", max_files)
    return reader.parquet(str(folder))


def start(spark: SparkSession, task: Task, frame: DataFrame, trigger: str | None = None) -> Any:
    """A running query; `trigger` None: what is available now, and then it ends."""
    work = Path(task.work)
    if task.contender == OURS:
        rows = tidegate_flows.flow(task.query, tidegate_flows.Market.of(frame))
        output = (
            rows.write_to("parquet", work / "out", name="results")
            if task.keep
            else rows.write_to("noop", name="results")
        )
        return tg.start(
            output, checkpoint=str(work / "checkpoint"), trigger=trigger, available_now=trigger is None
        )
    spark.conf.set(_PROVIDER, _PACKAGE + _PROVIDERS[task.contender])
    # Uploads what changed instead of whole snapshots: the faster way, and Spark's advice.
    spark.conf.set(_STATE + "rocksdb.changelogCheckpointing.enabled", "true")
    writer = spark_frames.result(task.query, frame).writeStream.outputMode("append")
    writer = (
        writer.format("parquet").option("path", str(work / "out")) if task.keep else writer.format("noop")
    )
    writer = writer.option("checkpointLocation", str(work / "checkpoint"))
    writer = writer.trigger(availableNow=True) if trigger is None else writer.trigger(processingTime=trigger)
    return writer.start()


def spark_query(query: Any) -> Any:
    """The query that Spark runs: this engine's own runs inside one."""
    return query.spark_query if hasattr(query, "spark_query") else query


def batch_seconds(query: Any) -> list[float]:
    """Spark's time of each batch with rows, from listing files to the commit; the same for all contenders."""
    progress = spark_query(query).recentProgress
    return [one["durationMs"]["triggerExecution"] / 1000 for one in progress if one["numInputRows"]]


def release(spark: SparkSession) -> None:
    """Let go of the state of a query that has ended: Spark would keep it in memory for some minutes."""
    jvm: Any = spark._jvm
    package = jvm.org.apache.spark.sql.execution.streaming.state
    getattr(getattr(package, "StateStore$"), "MODULE$").unloadAll()
    jvm.System.gc()
