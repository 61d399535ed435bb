#!/usr/bin/env python3
"""Works off a backlog in Kafka under a goal: how long batches are, how many rows they take, is it exact?

    lab/scripts/kafka_backlog.py BROKER JARS [rows]      (with the Python that has Tidegate)

BROKER is host:port of a broker that may be written to: two topics of new names are made. JARS are those of
Spark's Kafka connector (spark-sql-kafka-0-10, spark-token-provider-kafka-0-10, kafka-clients, commons-pool2),
comma-separated. Two streams of JSON rows (2,000,000 each unless said) wait when the query starts; they are
joined within ±2 s under a goal of 2 s, a batch a second. Printed are the batches, and at the end the pairs
found and the pairs there are.
"""

from __future__ import annotations

import sys
import time
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tidegate as tg

KEYS = 500_000
#: A row every 20 microseconds; JSON keeps milliseconds, of which 2,000 are the window.
STEP_US, WITHIN_MS = 20, 2_000
GIVEN_UP_SECONDS = 600


def key(stream: str) -> str:
    return f"pmod(xxhash64(id, '{stream}'), {KEYS})"


def write(spark: SparkSession, broker: str, stream: str, rows: int) -> str:
    """The topic that it was written to."""
    topic = f"{stream}-{time.time_ns()}"
    at = f"timestamp_micros(1700000000000000 + id * {STEP_US})"
    row = f"to_json(named_struct('ts', {at}, 'k', {key(stream)}, 'n', id)) AS value"
    made = spark.range(0, rows, 1, 1).selectExpr(row)
    made.write.format("kafka").option("kafka.bootstrap.servers", broker).option("topic", topic).save()
    return topic


def stream_of(spark: SparkSession, broker: str, name: str, topic: str) -> tg.Stream:
    raw = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker)
    raw = raw.option("subscribe", topic).option("startingOffsets", "earliest")
    parsed = F.from_json(F.col("value").cast("string"), "ts timestamp, k long, n long")
    return tg.stream(
        raw.load().select(parsed.alias("row")).select("row.*"), time="ts", name=name, lateness="30 seconds"
    )


def exact(spark: SparkSession, rows: int) -> int:
    left, right = (
        spark.range(rows).selectExpr(f"id * {STEP_US} div 1000 AS {name}_ms", f"{key(name)} AS k")
        for name in ("orders", "taxis")
    )
    return left.join(right, "k").where(f"abs(orders_ms - taxis_ms) <= {WITHIN_MS}").count()


def run(spark: SparkSession, broker: str, rows: int, checkpoint: str) -> int:
    """All pairs that came out."""
    found = [0]

    def count(pairs: DataFrame, batch: int) -> None:
        found[0] += pairs.count()

    orders, taxis = (
        stream_of(spark, broker, name, write(spark, broker, name, rows)) for name in ("orders", "taxis")
    )
    pairs = orders.join(taxis, on="k", within="2 seconds").select("n", "n_right")
    goal = tg.Goal(latency="2 seconds")
    query = tg.start(pairs.write_to(count), checkpoint=checkpoint, trigger="1 second", goal=goal)
    told, since = -1, time.monotonic()
    try:
        while time.monotonic() - since < GIVEN_UP_SECONDS:
            time.sleep(0.2)
            for one in query.telemetry:
                if one["batch"] > told:
                    told = one["batch"]
                    print(_line(one), flush=True)
            if told > 3 and not query.telemetry[-1]["input_rows"]:
                break
    finally:
        query.stop()
    return found[0]


def _line(one: dict[str, Any]) -> str:
    rows, waiting = sum(one["offered"].values()), one["goal"]["waiting"]
    return f"batch {one['batch']:3}  {one['duration_seconds']:6.2f} s  {rows:9,} rows, {waiting:11,.0f} wait"


def main(broker: str, jars: str, rows: int) -> None:
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "3g")
    spark = builder.config("spark.jars", jars).config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        with TemporaryDirectory() as folder:
            found = run(spark, broker, rows, f"{folder}/checkpoint")
        print(f"\n{found:,} pairs found, of {exact(spark, rows):,}")
    finally:
        spark.stop()


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) == 4 else 2_000_000)
