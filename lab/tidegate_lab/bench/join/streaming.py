"""The contenders that run micro-batches on Spark: this engine, Spark's own join, and the floor.

    files ─▶ source ─▶ [ engine: tidegate | stream-stream join | floor ] ─▶ Parquet files

Each engine writes its pairs as its users would: Spark with its file sink, this engine with
`write_to("parquet", …)`. Count and checksum are computed from the files after the timed part.

The floor (`floor_job.py`) has the same scan, row layout, shuffle and Arrow transfer, and a kernel that only
counts.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidegate.driver.session import LOCAL_CONF
from tidegate_lab.bench.join.probe import Probe, Running
from tidegate_lab.bench.join.running import SparkRunning, TidegateRunning
from tidegate_lab.bench.join.spec import EventLog, Task
from tidegate_lab.workloads.join_data import checksum_sql, spark_schema

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def run(task: Task, log: EventLog) -> None:
    spark = session(task)
    start = {"tidegate": start_tidegate, "floor": start_floor}.get(task.engine, start_spark)
    probe = Probe(spark, task, log)
    spark.streams.addListener(probe)
    query = start(spark, task, probe)
    query.wait()
    batches = query.batches()
    probe.wait_for(batches)
    probe.finish(batches, *written(spark, task))
    spark.stop()


def session(task: Task) -> SparkSession:
    builder = SparkSession.builder.master(f"local[{task.cores}]").appName(f"bench join: {task.engine}")
    settings = {
        "spark.driver.memory": task.heap,
        # Death should be quick and plain; a run that only creeps is ended by the time limit.
        "spark.driver.extraJavaOptions": "-XX:+ExitOnOutOfMemoryError",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.local.dir": str(Path(task.work) / "local"),
        "spark.sql.warehouse.dir": str(Path(task.work) / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(task.cores),
        "spark.sql.streaming.numRecentProgressUpdates": str(task.batches + 100),
        **(LOCAL_CONF if task.engine == "floor" else {}),  # the engine sets it by itself
        **state_settings(task.engine),
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def state_settings(engine: str) -> dict[str, str]:
    if not engine.startswith("spark-rocksdb"):
        return {}
    return {
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        # Uploads what changed instead of whole snapshots: the faster way, and Spark's advice.
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.join.stateFormatVersion": engine.rpartition("-")[2],
    }


def read(spark: SparkSession, task: Task, side: str) -> DataFrame:
    reader = spark.readStream.schema(spark_schema(side, task.payload_bytes)).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(Path(task.data) / side))


def output(task: Task) -> Path:
    return Path(task.work) / "out"


def written(spark: SparkSession, task: Task) -> tuple[int, int]:
    """Count and checksum of the pairs that an engine has written."""
    if not any(output(task).rglob("*.parquet")):
        return 0, 0
    value = checksum_sql("unix_millis(ts)", "unix_millis(ts_right)", task.payload_bytes)
    found = spark.read.parquet(str(output(task))).agg(F.count("*"), F.sum(F.expr(value))).collect()[0]
    return int(found[0]), int(found[1] or 0)


def start_spark(spark: SparkSession, task: Task, probe: Probe) -> Running:
    left = read(spark, task, "left").withWatermark("ts", "0 seconds").alias("l")
    right = read(spark, task, "right").withWatermark("ts", "0 seconds").alias("r")
    span = f"interval '{task.window_ms / 1000}' second"
    near = f"l.k = r.k and l.ts >= r.ts - {span} and l.ts <= r.ts + {span}"
    joined = left.join(right, F.expr(near))
    columns = ["l.k", "l.ts", "r.ts as ts_right", "a", "b"] + (["pa", "pb"] if task.payload_bytes else [])
    files = joined.selectExpr(*columns).writeStream.format("parquet").option("path", str(output(task)))
    return start_query(files, task)


def start_floor(spark: SparkSession, task: Task, probe: Probe) -> Running:
    # Imported here: the engine and its kernels have no place in the processes of the others.
    from tidegate_lab.bench.join.floor_job import count_by_instance

    sides = [read(spark, task, side) for side in ("left", "right")]

    def sink(rows: DataFrame, batch: int) -> None:
        probe.counted += count_by_instance(rows, task.cores)

    renamed = [side.toDF("ts", "k", "n", *(["p"] if task.payload_bytes else [])) for side in sides]
    tagged = [side.withColumn("tag", F.lit(tag).cast("byte")) for tag, side in enumerate(renamed)]
    return start_query(tagged[0].unionByName(tagged[1]).writeStream.foreachBatch(sink), task)


def start_query(writer: DataStreamWriter, task: Task) -> Running:
    writer = writer.option("checkpointLocation", str(Path(task.work) / "checkpoint"))
    return SparkRunning(writer.trigger(availableNow=True).start(), task)


def start_tidegate(spark: SparkSession, task: Task, probe: Probe) -> Running:
    import tidegate as tg

    left = tg.stream(read(spark, task, "left"), time="ts", name="left", lateness="0 seconds")
    right = tg.stream(read(spark, task, "right"), time="ts", name="right", lateness="0 seconds")
    pairs = left.join(right, on="k", within=f"{task.window_ms} milliseconds")
    query = tg.start(
        pairs.write_to("parquet", str(output(task)), name="pairs"),
        checkpoint=str(Path(task.work) / "checkpoint"),
        available_now=True,
        seed=task.seed,
    )
    return TidegateRunning(query, task)
