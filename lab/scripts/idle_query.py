#!/usr/bin/env python3
"""How much an idle query writes: files and bytes in its checkpoint and output, at a trigger of a second.

    python lab/scripts/idle_query.py [--from-minute 10] [--to-minute 60] [--json FILE]

A join of two parts of one stream and a window over it, written as Parquet. Rows come at the start only.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import tidegate as tg
from tidegate.driver.session import embedded_session

ROWS, FILES = 5_000, 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--from-minute", type=float, default=10)
    parser.add_argument("--to-minute", type=float, default=60)
    parser.add_argument("--json", type=Path, help="write the samples, one a minute")
    asked = parser.parse_args()
    spark = embedded_session("idle query", memory="1g")
    with tempfile.TemporaryDirectory() as folder:
        samples = observed(spark, Path(folder), asked.to_minute)
    spark.stop()
    first = next(one for one in samples if one["minute"] >= asked.from_minute)
    last = samples[-1]
    print(
        f"minute {first['minute']:.0f} to {last['minute']:.0f}: {last['files'] - first['files']:+,} files, "
        f"{last['bytes'] - first['bytes']:+,} bytes; {last['files']:,} files, {last['bytes']:,} bytes in all"
    )
    if asked.json is not None:
        asked.json.write_text(json.dumps(samples))
    return 0


def observed(spark: SparkSession, folder: Path, minutes: float) -> list[dict[str, float]]:
    """A sample a minute."""
    for number in range(FILES):
        rows = spark.range(ROWS).selectExpr(
            f"timestamp_micros(1767225600000000 + (id + {number * ROWS}) * 1000) ts",
            "id % 99 key",
            "id value",
        )
        rows.coalesce(1).write.mode("append").parquet(str(folder / "in"))
    samples: list[dict[str, float]] = []
    with tg.start(flow(spark, folder), checkpoint=str(folder / "ck"), trigger="1 second") as query:
        query.process_all_available()
        begun = time.monotonic()
        while not samples or samples[-1]["minute"] < minutes:
            if not query.is_active:
                raise SystemExit(f"the query ended: {query.exception()}")
            samples.append({"minute": (time.monotonic() - begun) / 60, **written(folder)})
            time.sleep(min(60.0, minutes * 60))
    return samples


def flow(spark: SparkSession, folder: Path) -> Any:
    read = spark.readStream.schema("ts timestamp, key bigint, value bigint").parquet(str(folder / "in"))
    events = tg.stream(read, name="events", time="ts", lateness="5 seconds")
    odd, even = events.filter("value % 2 = 1"), events.filter("value % 2 = 0")
    pairs = odd.join(even, "key", within="100 milliseconds", name="pairs")
    counts = pairs.window("1 second", by="key", name="counts").agg(n=F.count("*"))
    return counts.write_to("parquet", folder / "out", name="out")


def written(folder: Path) -> dict[str, int]:
    """Files and bytes of the query, hidden ones included."""
    sizes = []
    for part in ("ck", "out"):
        for home, _, names in os.walk(folder / part):
            for name in names:
                with suppress(FileNotFoundError):  # a temporary file that is gone
                    sizes.append(os.stat(os.path.join(home, name)).st_size)
    return {"files": len(sizes), "bytes": sum(sizes)}


if __name__ == "__main__":
    raise SystemExit(main())
