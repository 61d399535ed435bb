"""Pathway as a contender: its interval join over the same rows, in an interpreter that has the package.

That interpreter runs this file as a script, so it imports nothing of Tidegate (only the script beside it).
The rows are first copied to CSV (not timed) and read in static mode, which saves Pathway all streaming work:
this is its best case.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

MODULUS = 1_000_003


def main(task_path: str) -> None:
    from flink_job import write_csv, write_event  # type: ignore[import-not-found]

    task = json.loads(Path(task_path).read_text(encoding="utf-8"))
    # Read by Pathway's core when it starts.
    os.environ["PATHWAY_THREADS"] = str(task["cores"])
    try:
        import pathway  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        write_event(task, {"event": "absent", "why": str(error)})
        return
    write_csv(task)
    begun = time.monotonic()
    total = joined(pathway, task)
    found = pathway.debug.table_to_pandas(total, include_id=False)
    seconds = time.monotonic() - begun
    write_event(
        task,
        {
            "event": "done",
            "whole_seconds": seconds,
            "rows": task["rows_per_batch"] * task["batches"],
            "pairs": int(found["pairs"].sum()),
            "checksum": int(found["checksum"].sum()),
        },
    )


def joined(pw: Any, task: dict[str, Any]) -> Any:
    left = source(pw, task, "left", "a", "pa")
    right = source(pw, task, "right", "b", "pb")
    span = task["window_ms"]
    near = pw.temporal.interval_join(
        left, right, left.ms, right.ms, pw.temporal.interval(-span, span), left.k == right.k
    )
    # The formula of lab/tidegate_lab/workloads/join_data.py, in Pathway's words.
    value = (left.a % MODULUS) * (right.b % MODULUS) + left.k % MODULUS
    value += 3 * (left.ms % MODULUS) + 5 * (right.ms % MODULUS)
    if task["payload_bytes"]:
        for factor, text in ((7, left.pa), (11, right.pb)):
            value += factor * ((text.str.slice(0, 9).str.parse_int() + text.str.len()) % MODULUS)
    pairs = near.select(v=value % MODULUS)
    return pairs.reduce(pairs=pw.reducers.count(), checksum=pw.reducers.sum(pairs.v))


def source(pw: Any, task: dict[str, Any], side: str, number: str, text: str) -> Any:
    columns: dict[str, Any] = {"ms": int, "k": int, number: int}
    if task["payload_bytes"]:
        columns[text] = str
    schema = pw.schema_from_types(**columns)
    return pw.io.csv.read(str(Path(task["work"]) / f"{side}.csv"), schema=schema, mode="static")


if __name__ == "__main__":
    main(sys.argv[1])
