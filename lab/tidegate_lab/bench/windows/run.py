"""One contender over the batches of a scenario: seconds of each batch, and the windows written.

Batches run back to back, as with a backlog; both engines report their own times, from trigger to commit. The
first batches, in which Java and Python load and compile, do not count. Sinks discard their input.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from statistics import fmean, median

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tidegate as tg
from tidegate_lab.bench.windows.feed import FILES, SCHEMA, Scenario

OURS, MEMORY, ROCKSDB = "tidegate", "spark", "spark-rocksdb"
#: Ours where windows may be missing, ten in a row, and none is; and where every other one is.
READY, HALF = "tidegate p=0", "tidegate p=0.5"
_SHARES = {READY: 0.0, HALF: 0.5}
MAX_GAP = 10
CONTENDERS = (OURS, MEMORY, ROCKSDB)
COLD = 2
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_PROVIDERS = {
    MEMORY: "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    ROCKSDB: "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}


@dataclass(frozen=True)
class Run:
    """One contender on one scenario."""

    scenario: Scenario
    contender: str
    seconds: list[float]
    #: The part of the rows of each batch that was dropped.
    dropped: list[float]

    @property
    def usual(self) -> float:
        return median(self.seconds[COLD:])

    @property
    def mean(self) -> float:
        """Where batches differ on purpose, because some are dropped."""
        return fmean(self.seconds[COLD:])

    @property
    def share(self) -> float:
        """The part of all rows that was dropped."""
        return fmean(self.dropped[COLD:])

    @property
    def rate(self) -> float:
        return self.scenario.rows / self.usual


def play(
    session: SparkSession, folder: Path, scenario: Scenario, contender: str, work: Path, seed: int
) -> Run:
    """All batches of a scenario, one after the other; `seed` says which windows are dropped."""
    rows = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", FILES).parquet(str(folder))
    checkpoint = work / f"checkpoint-{scenario.name}-{contender}"
    if contender in _PROVIDERS:
        seconds = _sparks(session, rows, scenario, contender, checkpoint)
        dropped = [0.0] * len(seconds)
    else:
        seconds, dropped = _ours(rows, scenario, contender, checkpoint, seed)
    rmtree(checkpoint, ignore_errors=True)
    return Run(scenario, contender, seconds[: scenario.batches], dropped[: scenario.batches])


def _ours(
    rows: DataFrame, scenario: Scenario, contender: str, checkpoint: Path, seed: int
) -> tuple[list[float], list[float]]:
    windows = tg.stream(rows, time="ts", name="rows", lateness="0 seconds").window(
        scenario.size, slide=scenario.slide, by="k"
    )
    drops = contender in _SHARES
    query = tg.start(
        windows.agg(n=F.count("*"), total=F.sum("v"), top=F.max("v")).write_to(
            _nowhere, name="windows", max_gap=MAX_GAP if drops else None
        ),
        checkpoint=str(checkpoint),
        goal=tg.Goal(latency="1 hour") if drops else None,
        shed=tg.Shed(window=_SHARES.get(contender, "none")),
        seed=seed,
    )
    query.process_all_available()
    query.stop()
    told = [progress for progress in query.telemetry if progress["input_rows"]]
    dropped = [sum(one["dropped"][0] for one in progress["operators"]) for progress in told]
    return [progress["duration_seconds"] for progress in told], [rows / scenario.rows for rows in dropped]


def _sparks(
    session: SparkSession, rows: DataFrame, scenario: Scenario, contender: str, checkpoint: Path
) -> list[float]:
    session.conf.set(_PROVIDER, _PROVIDERS[contender])
    window = F.window("ts", scenario.size, scenario.slide)
    counted = rows.withWatermark("ts", "0 seconds").groupBy(window, "k")
    query = (
        counted.agg(F.count("*"), F.sum("v"), F.max("v"))
        .writeStream.format("noop")
        .outputMode("append")
        .option("checkpointLocation", str(checkpoint))
        .start()
    )
    query.processAllAvailable()
    query.stop()
    session.conf.unset(_PROVIDER)
    told = [progress for progress in query.recentProgress if progress["numInputRows"]]
    return [progress["durationMs"]["triggerExecution"] / 1000 for progress in told]


def _nowhere(rows: DataFrame, batch: int) -> None:
    """A sink that takes nothing: results are written by the tasks, and that is all that is measured."""
