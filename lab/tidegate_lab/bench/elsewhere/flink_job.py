"""Flink as a contender: its SQL interval join over the same rows, in an interpreter that has PyFlink.

That interpreter runs this file as a script, so it imports nothing of Tidegate. The pip package cannot read
Parquet, so the rows are first copied to CSV (not timed). The join runs once to warm up Java, then again
timed. There is one file per stream, because files read in parallel would be out of order.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

SIDES = {"left": ("l", "a", "pa"), "right": ("r", "b", "pb")}


def main(task_path: str) -> None:
    task = json.loads(Path(task_path).read_text(encoding="utf-8"))
    # Read by PyFlink when it starts Java, so it must be there before the import.
    os.environ["JVM_ARGS"] = f"-Xmx{task['heap']}"
    try:
        from pyflink.table import (  # type: ignore[import-not-found,unused-ignore]
            EnvironmentSettings,
            TableEnvironment,
        )
    except ImportError as error:
        write_event(task, {"event": "absent", "why": str(error)})
        return
    write_csv(task)
    for _ in ("warm", "timed"):
        tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        tables.get_config().set("parallelism.default", str(task["cores"]))
        tables.get_config().set("table.local-time-zone", "UTC")
        for side in SIDES:
            tables.execute_sql(table(task, side))
        begun = time.monotonic()
        with tables.execute_sql(query(task)).collect() as found:
            rows = [tuple(row) for row in found]
        seconds = time.monotonic() - begun
    write_event(
        task,
        {
            "event": "done",
            "whole_seconds": seconds,
            "rows": task["rows_per_batch"] * task["batches"],
            "pairs": sum(row[1] for row in rows),
            "checksum": sum(row[2] for row in rows),
        },
    )


def write_csv(task: dict[str, Any]) -> None:
    """`work/left.csv` and `work/right.csv`: milliseconds, key, number and, if any, payload."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    for side in SIDES:
        target = None
        for path in sorted((Path(task["data"]) / side).iterdir()):
            rows = pa.parquet.read_table(path)
            millis = rows["ts"].cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64())
            rows = rows.set_column(0, "ms", millis)
            if target is None:
                options = pa.csv.WriteOptions(include_header=task["engine"] == "pathway")
                path_csv = Path(task["work"]) / f"{side}.csv"
                target = pa.csv.CSVWriter(path_csv, rows.schema, write_options=options)
            target.write_table(rows)
        if target is not None:
            target.close()


def table(task: dict[str, Any], side: str) -> str:
    name, number, text = SIDES[side]
    payload = f"{text} STRING, " if task["payload_bytes"] else ""
    path = Path(task["work"]) / f"{side}.csv"
    return (
        f"CREATE TEMPORARY TABLE {name} ({name}ms BIGINT, k BIGINT, {number} BIGINT, {payload}"
        f"ts AS TO_TIMESTAMP_LTZ({name}ms, 3), WATERMARK FOR ts AS ts) "
        f"WITH ('connector' = 'filesystem', 'path' = 'file://{path}', 'format' = 'csv')"
    )


def query(task: dict[str, Any]) -> str:
    """Pairs are summed in windows of an hour: a running total would emit a change for every pair."""
    seconds, millis = divmod(task["window_ms"], 1000)
    clock = time.strftime("%H:%M:%S", time.gmtime(seconds % 86_400))
    span = f"INTERVAL '{seconds // 86_400} {clock}.{millis:03d}' DAY TO SECOND"
    value = task["checksum"].replace("length(", "char_length(").replace("k %", "l.k %")
    return (
        f"WITH p AS (SELECT l.ts AS ts, {value} AS v FROM l JOIN r ON l.k = r.k "
        f"AND l.ts BETWEEN r.ts - {span} AND r.ts + {span}) "
        "SELECT window_start, COUNT(*), SUM(v) "
        "FROM TABLE(TUMBLE(TABLE p, DESCRIPTOR(ts), INTERVAL '1' HOUR)) "
        "GROUP BY window_start, window_end"
    )


def write_event(task: dict[str, Any], event: dict[str, Any]) -> None:
    with (Path(task["work"]) / "events.jsonl").open("a", encoding="utf-8") as out:
        out.write(json.dumps(event) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
