"""One run of a join over skewed streams under one strategy: what each instance had to do in each batch.

Instances are real Spark tasks, their processor time is measured. They run on fewer cores than there are
instances, so the time of a batch on as many one-core machines is not seen but follows: it is that of the
heaviest instance.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession

import tidegate as tg
from tidegate.spark.bench.skew.feed import SCHEMA, SIDES, WINDOW_BATCHES
from tidegate.spark.query import Query


@dataclass(frozen=True)
class Run:
    """A workload under one strategy."""

    workload: str
    strategy: str
    rows: list[int]
    #: Shape (batches, instances): processor time.
    seconds: NDArray[np.float64]
    #: Shape (batches, instances): comparisons.
    compared: NDArray[np.float64]
    pairs: list[int]
    #: Per batch: rows whose owner changed, rows in the state, entries of the routing table, split keys.
    moved: list[int]
    stored: list[int]
    entries: list[int]
    split_keys: list[int]
    batch_seconds: list[float]

    def settled(self) -> slice:
        """Batches with full windows, and some time to learn."""
        return slice(2 * WINDOW_BATCHES + 1, None)

    @property
    def imbalance(self) -> NDArray[np.float64]:
        """Per batch: heaviest instance over an even share."""
        return np.asarray(self.seconds.max(axis=1) / self.seconds.mean(axis=1))

    @property
    def counted_imbalance(self) -> NDArray[np.float64]:
        """The same in comparisons: exact for single batches, whose times scatter by a third."""
        return np.asarray(self.compared.max(axis=1) / self.compared.mean(axis=1))

    @property
    def steady_imbalance(self) -> float:
        """The same with each instance's median time: what is left without the noise of single batches."""
        usual = np.median(self.seconds[self.settled()], axis=0)
        return float(usual.max() / usual.mean())

    @property
    def throughput(self) -> float:
        """Rows a second on as many one-core machines as there are instances."""
        rows = np.array(self.rows[self.settled()], np.float64)
        return float(np.median(rows / self.seconds[self.settled()].max(axis=1)))

    @property
    def counted_throughput(self) -> float:
        """Rows a comparison of the heaviest instance: the same however fast the machine is."""
        rows = np.array(self.rows[self.settled()], np.float64)
        return float(np.median(rows / np.maximum(self.compared[self.settled()].max(axis=1), 1.0)))

    @property
    def total_seconds(self) -> float:
        """Processor time of all instances in a usual batch."""
        return float(np.median(self.seconds[self.settled()].sum(axis=1)))

    @property
    def moved_share(self) -> float:
        """Rows that changed their owner in the whole run, over the rows of a full state."""
        return sum(self.moved) / max(1, max(self.stored))

    @property
    def migrations(self) -> int:
        return sum(rows > 0 for rows in self.moved)


def play(
    session: SparkSession, feed: Path, workload: str, strategy: str, instances: int, topology: str
) -> Run:
    """All batches of a workload, one after the other."""
    left, right = (
        tg.stream(
            session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(feed / side)),
            time="ts",
            name=side,
        )
        for side in SIDES
    )
    joined = left.join(right, on="k", within=f"{WINDOW_BATCHES} seconds")
    checkpoint = feed / f"checkpoint-{strategy}"
    query = tg.start(
        joined.write_to(_nowhere, name="pairs"),
        checkpoint=str(checkpoint),
        trigger="available now",
        instances=instances,
        partitions=8 * instances,
        balance=tg.Balance(strategy=strategy, topology=topology),
    )
    query.await_termination()
    rmtree(checkpoint)
    return _measured(workload, strategy, query)


def _nowhere(rows: DataFrame, batch: int) -> None:
    """A sink that takes nothing: results are written by the tasks, and that is all that is measured."""


def _measured(workload: str, strategy: str, query: Query) -> Run:
    told: list[dict[str, Any]] = [p for p in query.recent_progress if p["input_rows"]]
    balance = [progress["balance"]["join1"] for progress in told]
    return Run(
        workload,
        strategy,
        rows=[progress["input_rows"] for progress in told],
        seconds=np.array([one["seconds"] for one in balance]),
        compared=np.array([one["comparisons"] for one in balance], np.float64),
        pairs=[progress["emitted"]["join1"] for progress in told],
        moved=[one["moved"]["rows"] if one["moved"] else 0 for one in balance],
        stored=[progress["state_rows"] for progress in told],
        entries=[one["entries"] for one in balance],
        split_keys=[one["split_keys"] for one in balance],
        batch_seconds=[progress["duration_seconds"] for progress in told],
    )
