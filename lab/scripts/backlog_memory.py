#!/usr/bin/env python3
"""How much memory do workers take for a backlog without a goal, and is the result exact?

    lab/scripts/backlog_memory.py [--rows 1000000 10000000] [--flow join] [--file-rows 500000] [--folder DIR]

For each number of rows, a program of its own (two cores, driver heap 2 GB) runs over all of them as available
now. `join`: two streams with half of the rows each, joined by key within a time; the live state is the same
for any number of rows. `window`: one stream, counted by key and second. The files lie in a folder under
DIR that is removed at the end. Printed: seconds, batches, the largest batch, the sum of the peaks of the
anonymous memory of all Python workers, the peak of that of the Java process, and whether counts and sums
are those that the formulas of the input give.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

#: A row of each stream every 10 microseconds of event time. A key comes again after KEYS rows.
STEP_US, KEYS, PRIME = 10, 100_003, 7_919
#: A row meets the rows of its key of one round before and after: 1.5 rounds.
WITHIN_US = KEYS * STEP_US * 3 // 2
EPOCH_US = 1_700_000_000_000_000
SCHEMA = "ts timestamp, k long, n long, v double"
LATENESS_US = 10**6
SAMPLE_SECONDS = 0.05


def write(folder: Path, rows: int, per_file: int, seed: int) -> None:
    """A stream as files, in order of time."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(seed)
    for number, first in enumerate(range(0, rows, per_file)):
        n = np.arange(first, min(rows, first + per_file))
        table = pa.table(
            {
                "ts": pa.array(EPOCH_US + n * STEP_US, pa.timestamp("us", tz="UTC")),
                "k": n % KEYS * PRIME % KEYS,
                "n": n,
                "v": random.random(len(n)),
            }
        )
        path = folder / f"{number:05d}.parquet"
        pq.write_table(table, path)
        os.utime(path, (EPOCH_US // 10**6 + number,) * 2)


def expected(flow: str, rows: int) -> list[int]:
    """Rows of the result, and the sums of its numbers."""
    if flow == "window":
        # The last windows stay open: those that the watermark has not passed.
        closed = ((rows - 1) * STEP_US - LATENESS_US) // 10**6 * (10**6 // STEP_US)
        return [closed, closed]
    half = rows // 2
    # With its own number, with the row of a round before (from KEYS on) and with that of a round after.
    numbers = sum(range(half)) + sum(range(KEYS, half)) + sum(range(half - KEYS))
    return [3 * half - 2 * KEYS, numbers, numbers]


def run(flow: str, home: Path) -> None:
    """Run one backlog; prints a line of JSON."""
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import functions as F

    import tidegate as tg

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.local.dir", str(home / "spark"))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    found = [0, 0, 0]

    def add(rows: DataFrame, batch: int) -> None:
        sums = [F.sum(name) for name in rows.columns if name in ("n", "n_right")]
        for i, value in enumerate(rows.agg(F.count("*"), *sums).collect()[0]):
            found[i] += value or 0

    def stream(name: str) -> tg.Stream:
        rows = spark.readStream.schema(SCHEMA).parquet(str(home / name))
        return tg.stream(rows, name=name, time="ts", lateness=f"{LATENESS_US} microseconds")

    if flow == "join":
        result = stream("left").join(stream("right"), on="k", within=f"{WITHIN_US} microseconds")
        result = result.select("n", "n_right", "v")
    else:
        result = stream("left").window("1 second", by=["k"]).agg(n=F.count("*"))
    peaks = Peaks()
    since = time.monotonic()
    query = tg.start(result.write_to(add), checkpoint=str(home / "ck"), available_now=True)
    query.await_termination()
    seconds = time.monotonic() - since
    batches = [sum(one["offered"].values()) for one in query.telemetry if one["input_rows"]]
    workers, java = peaks.end()
    told: dict[str, Any] = {"seconds": round(seconds, 1), "batches": len(batches), "largest": max(batches)}
    told |= {"workers_mb": sum(workers) >> 20, "each_mb": [one >> 20 for one in workers]}
    print(json.dumps({**told, "java_mb": java >> 20, "found": found}))
    spark.stop()


class Peaks:
    """Samples the anonymous memory of the processes below this one."""

    def __init__(self) -> None:
        self._most: dict[int, int] = {}
        self._java: set[int] = set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            parents = {}
            for entry in os.listdir("/proc"):
                if entry.isdigit():
                    parents[int(entry)] = _parent(int(entry))
            for pid in parents:
                if pid != os.getpid() and _below(pid, parents, os.getpid()):
                    anonymous, name = _anonymous(pid)
                    self._most[pid] = max(self._most.get(pid, 0), anonymous)
                    if name == "java":
                        self._java.add(pid)

    def end(self) -> tuple[list[int], int]:
        """The peaks of all workers, the largest first, and that of Java."""
        self._ended.set()
        self._thread.join()
        java = sum(most for pid, most in self._most.items() if pid in self._java)
        workers = [most for pid, most in self._most.items() if pid not in self._java]
        return sorted(workers, reverse=True), java


def _parent(pid: int) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    return int(stat.rpartition(")")[2].split()[1])


def _below(pid: int, parents: dict[int, int], root: int) -> bool:
    while pid > 1:
        pid = parents.get(pid, 0)
        if pid == root:
            return True
    return False


def _anonymous(pid: int) -> tuple[int, str]:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0, ""
    fields: dict[str, Any] = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    return int(fields.get("RssAnon", "0 kB").split()[0]) << 10, fields["Name"]


def measure(flow: str, rows: int, per_file: int, folder: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=folder, prefix="backlog-") as home:
        sides = ("left", "right") if flow == "join" else ("left",)
        for seed, side in enumerate(sides):
            write(Path(home) / side, rows // len(sides), per_file, seed)
        command = [sys.executable, __file__, "--flow", flow, "--run", home]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr[-3000:])
        told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    wanted = expected(flow, rows)
    return {**told, "exact": told.pop("found")[: len(wanted)] == wanted}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--flow", choices=("join", "window"), default="join")
    parser.add_argument("--file-rows", type=int, default=500_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run is not None:
        run(given.flow, given.run)
        return
    told = []
    for rows in given.rows:
        told.append(measure(given.flow, rows, given.file_rows, given.folder))
        print(f"{rows:,} rows: {told[-1]}", flush=True)
    ratio = told[-1]["workers_mb"] / told[0]["workers_mb"]
    print(f"workers' memory of the last over the first: {ratio:.2f} (bar 1.2)")


if __name__ == "__main__":
    main()
