"""A user's script: joins two small streams; arguments: what goes wrong (sink, column, function or nothing).

Run in a process of its own, in an environment that does not name a Python for the workers.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import tidegate as tg


def main(mistakes: list[str], master: str) -> None:
    spark = SparkSession.builder.master(master).config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    # Everything before this line is Spark's greeting.
    print("READY", file=sys.stderr, flush=True)
    found = []
    for mistake in mistakes:
        with tempfile.TemporaryDirectory() as folder:
            try:
                run(spark, Path(folder), mistake)
                found.append("")
            except tg.TidegateError as error:
                found.append(error.code)
                print(f"RAISED {error}", flush=True)
    print(f"FOUND {json.dumps(found)}", flush=True)
    # A cluster that is shut down logs errors of its own.
    print("DONE", file=sys.stderr, flush=True)
    spark.stop()


def run(spark: SparkSession, folder: Path, mistake: str) -> None:
    @F.udf("long", useArrow=False)
    def checked(k: int) -> int:
        return k // 0 if mistake == "function" else k

    def write(frame: Any, batch: int) -> None:
        assert frame.count() == 2
        if mistake == "sink":
            raise ValueError("no such table")
        if mistake == "column":
            frame.select("fair").count()

    streams = []
    for name in ("a", "b"):
        (folder / name).mkdir()
        times = pa.array([1_700_000_000_000_000] * 2, pa.timestamp("us", "UTC"))
        pq.write_table(
            pa.table({"ts": times, "k": pa.array([1, 2], pa.int64())}), folder / name / "0.parquet"
        )
        frame = spark.readStream.schema("ts timestamp, k long").parquet(str(folder / name))
        streams.append(tg.stream(frame, time="ts", name=name, lateness="0 seconds"))
    left = streams[0].with_column("k", checked("k"))
    joined = left.join(streams[1], on="k", within="1 second")
    query = tg.start(joined.write_to(write, name="near"), checkpoint=str(folder / "ck"), available_now=True)
    query.await_termination()


if __name__ == "__main__":
    main(sys.argv[2:], sys.argv[1])
