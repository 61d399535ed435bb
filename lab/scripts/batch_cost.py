#!/usr/bin/env python3
"""What a small batch costs, whatever its rows: idle, with one operator, and with three.

    idle              a trigger in which no row came
    one operator      a join, 20,000 rows a batch
    three operators   a join, a window over it, a window over that, 20,000 rows a batch

Each is Spark's own time of `addBatch`, median of the batches after a warm-up. Beside each stands a bare job
of Spark over rows of the same number, with as many shuffles and Python stages, in the same process.

    python lab/scripts/batch_cost.py [--batches 200] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tidegate as tg
from tidegate.driver.session import embedded_session

ROWS = 20_000
WARM_UP = 30
SCHEMA = "ts timestamp, key bigint, value bigint"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--batches", type=int, default=200, help="that count, of each kind")
    parser.add_argument("--json", type=Path, help="write the medians and all samples")
    asked = parser.parse_args()
    spark = embedded_session("batch cost", memory="3g", spark_sql_streaming_numRecentProgressUpdates="2000")
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, operators in (("idle", 1), ("one operator", 1), ("three operators", 3)):
            found[name] = measured(spark, Path(folder) / name, operators, asked.batches, idle=name == "idle")
            print(
                f"{name:16} {found[name]['median']:.3f} s, a bare job {found[name]['bare']:.3f} s", flush=True
            )
    spark.stop()
    if asked.json is not None:
        asked.json.write_text(json.dumps(found))
    return 0


def measured(spark: SparkSession, folder: Path, operators: int, batches: int, idle: bool) -> dict[str, Any]:
    files = WARM_UP + (1 if idle else batches)
    for number in range(files):
        rows(spark, number).coalesce(1).write.parquet(str(folder / "drafts" / f"{number:05d}"))
    (folder / "in").mkdir()
    publish(folder, range(1))
    query = tg.start(flow(spark, folder, operators), checkpoint=str(folder / "ck"), trigger=None)
    with query:
        taken = 1
        while taken < files:
            seen = with_rows(query)
            if len(seen) >= taken:
                publish(folder, range(taken, taken + 1))
                taken += 1
            time.sleep(0.01)
        query.process_all_available()
        if idle:
            time.sleep(2)
            begun = len(progress(query))
            while len(progress(query)) < begun + batches:
                time.sleep(0.1)
            samples = [added(one) for one in progress(query)[begun : begun + batches]]
        else:
            samples = [added(one) for one in with_rows(query)][WARM_UP:]
    bare = [bare_seconds(spark, folder, 0 if idle else operators) for _ in range(40)][10:]
    return {
        "median": statistics.median(samples),
        "p95": statistics.quantiles(samples, n=20)[-1],
        "bare": statistics.median(bare),
        "samples": samples,
    }


def rows(spark: SparkSession, number: int) -> DataFrame:
    start = 1767225600 + number * 10
    frame = spark.range(ROWS).selectExpr(
        f"timestamp_micros({start}000000 + id * 10000000 div {ROWS}) ts",
        f"(id * 7919 + {number}) % 4999 key",
        "id % 100 value",
    )
    return frame


def publish(folder: Path, numbers: range) -> None:
    for number in numbers:
        (draft,) = (folder / "drafts" / f"{number:05d}").glob("*.parquet")
        draft.rename(folder / "in" / f"{number:05d}.parquet")


def flow(spark: SparkSession, folder: Path, operators: int) -> Any:
    read = spark.readStream.schema(SCHEMA).parquet(str(folder / "in"))
    events = tg.stream(read, name="events", time="ts", lateness="5 seconds")
    asked, given = events.filter("value < 50"), events.filter("value >= 50")
    made = asked.join(given, "key", within="10 seconds", name="pairs")
    if operators == 3:
        counts = made.window("10 seconds", by="key", name="counts").agg(n=F.count("*"))
        made = counts.window("30 seconds", name="most").agg(most=F.max("n"))
    return made.write_to("noop", name="out")


def progress(query: tg.StreamingQuery) -> list[dict[str, Any]]:
    inner: Any = query.spark_query
    return list(inner.recentProgress)


def with_rows(query: tg.StreamingQuery) -> list[dict[str, Any]]:
    return [one for one in progress(query) if one["numInputRows"] >= ROWS]


def added(one: dict[str, Any]) -> float:
    return float(one["durationMs"].get("addBatch", 0)) / 1000


def bare_seconds(spark: SparkSession, folder: Path, shuffles: int) -> float:
    """A job with so many shuffles and Python stages, over rows of one file; none: one task without rows."""

    def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    frame = spark.read.schema(SCHEMA).parquet(str(next((folder / "in").iterdir())))
    begun = time.monotonic()
    made = frame.limit(0).coalesce(1) if not shuffles else frame
    for _ in range(shuffles):
        made = made.repartition(2, "key").mapInArrow(same, frame.schema)
    made.write.format("noop").mode("overwrite").save()
    return time.monotonic() - begun


if __name__ == "__main__":
    sys.exit(main())
