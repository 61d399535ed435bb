#!/usr/bin/env python3
"""Records what batches of real Spark did under a goal, for the calibration of the simulator.

    lab/scripts/record_goal_runs.py FOLDER [--seconds 90] [--flows join pairs mixed] [--turns 1 2]

Each flow runs with a goal of two seconds while its rate steps up and down, so that batches differ in rows and
in what they shed. One file per flow and turn: rows, plan, work and time of every batch, from the telemetry of
the checkpoint. `simulate/goal/calibration.py` reads them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tidegate as tg
from tidegate.observe.json_frame import versions
from tidegate.state.checkpoint import Checkpoint
from tidegate_lab.simulate.goal.calibration import recorded_batches

#: Rows a second of each stream at the top; the parts of them that come, second by second of a period.
ROWS, LEVELS, EACH_SECONDS = 12_000, (20, 100, 50, 75, 35, 100), 6
#: Values of x, how near those of a pair are, and how many pairs are as near.
_VALUES, _APART = 999, 20
NEAR = (2 * _APART - 1) / _VALUES
#: By flow: keys of its join, and the window in seconds.
KEYS, WINDOWS = {"join": 2000, "pairs": 12, "mixed": 500}, {"join": 10, "pairs": 4, "mixed": 8}


def rows(spark: SparkSession, name: str, keys: int, rate: int) -> DataFrame:
    """A stream whose rate steps from level to level."""
    source = spark.readStream.format("rate").options(rowsPerSecond=rate, rampUpTime="1s").load()
    level = F.element_at(
        F.array(*map(F.lit, LEVELS)),
        (F.floor(F.unix_timestamp("timestamp") / EACH_SECONDS) % len(LEVELS) + 1).cast("int"),
    )
    kept = source.where(F.pmod(F.hash("value", F.lit(name)), F.lit(100)) < level)
    return kept.select(
        F.col("timestamp").alias("ts"),
        F.pmod(F.hash("value", F.lit(name + "key")), F.lit(keys)).alias("key"),
        F.pmod(F.hash("value", F.lit(name + "x")), F.lit(_VALUES)).alias("x"),
    )


def near(left: Any, right: Any) -> Any:
    """A condition that pandas decides, pair by pair."""
    return abs(left.x - right.x) < _APART


def flow(spark: SparkSession, kind: str, folder: Path) -> list[Any]:
    """The outputs of one flow."""
    keys, window = KEYS[kind], f"{WINDOWS[kind]} seconds"
    rate = ROWS // 4 if kind == "pairs" else ROWS
    a, b = (tg.stream(rows(spark, n, keys, rate), name=n, time="ts", lateness="0 seconds") for n in "ab")
    on: list[Any] = ["key", tg.pairwise(near, ["x"])] if kind == "pairs" else ["key"]
    outputs = [a.join(b, on=on, within=window, name="joined").write_to("parquet", str(folder / "joined"))]
    if kind == "mixed":
        counted = a.window("1 second", by="key", name="counted").agg(n=F.count("*"), most=F.max("x"))
        outputs.append(counted.write_to("parquet", str(folder / "counted"), max_gap=10))
    return outputs


def record(spark: SparkSession, kind: str, seconds: int) -> dict[str, Any]:
    """One run of one flow."""
    folder = Path(tempfile.mkdtemp(prefix="tidegate-recorded-"))
    try:
        checkpoint = str(folder / "checkpoint")
        outputs = flow(spark, kind, folder)
        goal = tg.Goal(latency="2 seconds")
        with tg.start(*outputs, checkpoint=checkpoint, trigger="1 second", goal=goal) as query:
            query.await_termination(seconds)
        opened = Checkpoint(checkpoint)
        telemetry = [opened.telemetry.read(batch) for batch in opened.telemetry.batches()]
        return {
            "flow": kind,
            "versions": versions(),
            "cores": spark.sparkContext.defaultParallelism,
            "window_seconds": WINDOWS[kind],
            "keys": KEYS[kind],
            "density": NEAR if kind == "pairs" else 1.0,
            "batches": recorded_batches(telemetry, "joined"),
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=int, default=90)
    parser.add_argument("--flows", nargs="+", choices=tuple(KEYS), default=tuple(KEYS))
    parser.add_argument("--turns", nargs="+", type=int, default=(1, 2))
    given = parser.parse_args()
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    given.folder.mkdir(parents=True, exist_ok=True)
    for turn in given.turns:
        for kind in given.flows:
            target = given.folder / f"{kind}-{turn}.json"
            target.write_text(json.dumps(record(spark, kind, given.seconds)) + "\n", encoding="utf-8")
            print(target, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
