"""DuckDB as a contender: joins the finished data at once.

It has no batches, no state and no commits, so its rate is a reference, not a comparison. Its result is the
one that the streaming engines are checked against.
"""

from __future__ import annotations

import time
from pathlib import Path

from tidegate_lab.bench.join.spec import EventLog, Task
from tidegate_lab.workloads.join_data import checksum_sql


def run(task: Task, log: EventLog) -> None:
    try:
        import duckdb
    except ImportError as error:
        log.write("absent", why=str(error))
        return
    connection = duckdb.connect()
    connection.execute(f"set threads = {task.cores}")
    connection.execute(f"set temp_directory = '{Path(task.work) / 'spill'}'")
    begun = time.monotonic()
    pairs, checksum = connection.execute(query(task)).fetchall()[0]
    seconds = time.monotonic() - begun
    log.write(
        "done",
        whole_seconds=seconds,
        rows=task.rows_per_batch * task.batches,
        pairs=int(pairs),
        checksum=int(checksum or 0),
    )


def query(task: Task) -> str:
    """Times as integers: a range of timestamps and intervals takes DuckDB a slower way."""
    sides = {
        side: f"select *, epoch_ms(ts) ms from read_parquet('{Path(task.data) / side}/*.parquet')"
        for side in ("left", "right")
    }
    value = checksum_sql("l.ms", "r.ms", task.payload_bytes).replace("k %", "l.k %")
    return (
        f"select count(*), sum({value}) from ({sides['left']}) l join ({sides['right']}) r "
        f"on l.k = r.k and l.ms - r.ms between -{task.window_ms} and {task.window_ms}"
    )
