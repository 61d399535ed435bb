"""The Spark measurements of `tidegate bench sift`: a scan with and without a sifter, and matching.

Contenders take turns, because the speed of a machine drifts; the samples of each are reported.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tidegate as tg
from tidegate.driver.frames.sifter_frames import sifted
from tidegate.sift.construction import Asked, Sample, construct
from tidegate.sift.filter.sifter import Sifter
from tidegate.sift.partition.partitioners import partitioner_for
from tidegate.worker.match.task import MatchWork, Queries
from tidegate.worker.runtime.layout import TIME, MatchLayout
from tidegate_lab.bench.sift.feed import SCHEMA
from tidegate_lab.workloads.sifters import Workload, draw_queries, draw_rows, hits

#: Of the sifters that are timed.
Z, FAIRNESS, SAMPLES = 0.5, 0.5, 1000


@dataclass(frozen=True)
class Measured:
    """One contender: seconds of each round over so many rows."""

    name: str
    rows: int
    seconds: list[float] = field(default_factory=list)
    #: What came out in each round: rows of a scan, pairs of a match.
    found: list[int] = field(default_factory=list)

    @property
    def usual(self) -> float:
        return float(np.median(self.seconds))

    @property
    def rate(self) -> float:
        return self.rows / self.usual


def made_sifter(workload: Workload, regions: int, sift: str) -> Sifter:
    """A sifter of this many regions, from a sample of the workload."""
    drawn, rows = draw_queries(workload), draw_rows(workload, SAMPLES, part=10_000)
    sample = Sample(rows, hits(rows, drawn.boxes))
    built = construct(
        partitioner_for(sift, drawn.weights, drawn.alphas, z=Z, fairness=FAIRNESS),
        workload.domain,
        sample,
        Asked(drawn.boxes, drawn.weights, drawn.alphas),
        regions=regions,
        z=Z,
        fairness=FAIRNESS,
    )
    return Sifter(drawn.boxes.axes, built.regions, built.thresholds, z=Z, fairness=FAIRNESS)


def scans(
    session: SparkSession, folder: Path, workload: Workload, regions: list[int], sift: str, rounds: int
) -> list[Measured]:
    """A scan of all columns, alone and with sifters of so many regions behind it; the sink takes nothing."""
    rows = session.read.schema(SCHEMA).parquet(str(folder))
    count = rows.count()
    contenders: dict[str, DataFrame] = {"scan": rows}
    for number in regions:
        sifter = made_sifter(workload, number, sift)
        work = MatchWork(MatchLayout("bench", None, sifter.axes, b""), _NOBODY, 0, sifter=sifter)
        timed = rows.withColumn(TIME, F.unix_micros("ts"))
        contenders[f"sift-{number}"] = sifted(timed, work).select(*rows.columns)
    found = {name: Measured(name, count) for name in contenders}
    for frame in contenders.values():
        _to_nowhere(frame)
    for _ in range(rounds):
        for name, frame in contenders.items():
            found[name].seconds.append(_seconds(frame))
    for name, frame in contenders.items():
        found[name].found.append(frame.count())
    return list(found.values())


def matching(
    session: SparkSession, folder: Path, queries: list[tg.RangeQuery], name: str, work: Path
) -> Measured:
    """All files, one a batch, through the engine; the first batches, on cold workers, do not count."""
    points = tg.stream(
        session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder)),
        time="ts",
        name="points",
        lateness="0 seconds",
    )
    query = tg.start(
        points.match(queries, name="hits").write_to(_nowhere, name="hits"),
        checkpoint=str(work / name),
        available_now=True,
    )
    query.await_termination()
    rmtree(work / name)
    told = [p for p in query.telemetry if p["input_rows"]][COLD:]
    return Measured(
        name,
        told[0]["input_rows"],
        [progress["duration_seconds"] for progress in told],
        [progress["emitted"]["hits"] for progress in told],
    )


#: Batches in which Java and Python still load and compile: they get faster up to the tenth or so.
COLD = 10


class _Nobody:
    """Queries of a sifter that stands alone."""

    @property
    def value(self) -> Queries:
        raise AssertionError("a scan asks no queries")


_NOBODY = _Nobody()


def _seconds(frame: DataFrame) -> float:
    started = time.perf_counter()
    _to_nowhere(frame)
    return time.perf_counter() - started


def _to_nowhere(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _nowhere(rows: DataFrame, batch: int) -> None:
    """A sink that takes nothing: results are written by the tasks, and that is all that is measured."""
