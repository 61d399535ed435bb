"""One run of a join over skewed streams under one strategy: the work of each instance in each batch.

Instances are real Spark tasks with measured processor time. They run on fewer cores than there are instances,
so the time of a batch on as many one-core machines is derived: it is that of the heaviest instance.

    files that arrived   ▪▪        ▪▪▪▪           ▪▪▪▪▪▪
    hash, …, auto         ─▶ ─▶ ─▶     ◀─ ◀─ ◀─          ─▶ ─▶ ─▶

Processor time for the same work varies by a fifth from minute to minute, so contenders go through a workload
together, a few batches at a time. Of eight instances one is disturbed in nearly every batch, so the longest
time of a batch reflects the machine more than the strategy. Disturbance only adds time, so each instance
counts with the 10th percentile of its batch times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession

import tidegate as tg
from tidegate.api.balance import StrategyName, Topology
from tidegate_lab.bench.skew.feed import SCHEMA, SIDES, WINDOW_BATCHES, arrive, put_back

#: Batches of a turn.
TURN_BATCHES = 4
#: The part of the batches of an instance that are taken to be undisturbed.
QUIET = 0.1


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
    def usual_seconds(self) -> NDArray[np.float64]:
        """Each instance's time when nothing disturbs it."""
        return np.asarray(np.quantile(self.seconds[self.settled()], QUIET, axis=0))

    @property
    def usual_compared(self) -> NDArray[np.float64]:
        """Each instance's comparisons, which do not depend on the machine, in the middle."""
        return np.maximum(np.median(self.compared[self.settled()], axis=0), 1.0)

    @property
    def steady_imbalance(self) -> float:
        """Heaviest instance over an even share, in usual batches."""
        return float(self.usual_seconds.max() / self.usual_seconds.mean())

    @property
    def throughput(self) -> float:
        """Rows a second on as many one-core machines as there are instances."""
        return float(np.median(self.rows[self.settled()]) / self.usual_seconds.max())

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


class Contender:
    """A strategy at work: a query for every few batches, on one checkpoint."""

    def __init__(
        self, session: SparkSession, feed: Path, workload: str, strategy: str, instances: int, topology: str
    ) -> None:
        self._session, self._feed, self._workload, self._strategy = session, feed, workload, strategy
        self._instances, self._topology = instances, topology
        self._checkpoint = feed / f"checkpoint-{strategy}"
        self._told: list[dict[str, Any]] = []

    def go_on(self) -> None:
        """Take what has arrived since, batch by batch."""
        left, right = (
            tg.stream(
                self._session.readStream.schema(SCHEMA)
                .option("maxFilesPerTrigger", 1)
                .parquet(str(self._feed / side)),
                time="ts",
                name=side,
                lateness="0 seconds",
            )
            for side in SIDES
        )
        query = tg.start(
            left.join(right, on="k", within=f"{WINDOW_BATCHES} seconds", name="pairs").write_to(
                _nowhere, name="pairs"
            ),
            checkpoint=str(self._checkpoint),
            available_now=True,
            instances=self._instances,
            partitions=8 * self._instances,
            balance=tg.Balance(
                strategy=cast(StrategyName, self._strategy), topology=cast(Topology, self._topology)
            ),
        )
        query.await_termination()
        self._told += [progress for progress in query.telemetry if progress["input_rows"]]

    def end(self) -> Run:
        """What was measured; its state is removed."""
        rmtree(self._checkpoint)
        return _measured(self._workload, self._strategy, self._told)


def play(
    session: SparkSession,
    feed: Path,
    workload: str,
    batches: int,
    strategies: Sequence[str],
    instances: int,
    topology: str,
) -> dict[str, Run]:
    """All strategies once through a workload, a few batches at a time, there and back."""
    contenders = {
        strategy: Contender(session, feed, workload, strategy, instances, topology) for strategy in strategies
    }
    # One that is alone has nobody to take turns with.
    leg = TURN_BATCHES if len(contenders) > 1 else batches
    for number, first in enumerate(range(0, batches, leg)):
        arrive(feed, range(first, min(first + leg, batches)))
        for strategy in strategies[:: -1 if number % 2 else 1]:
            contenders[strategy].go_on()
    put_back(feed)
    return {strategy: one.end() for strategy, one in contenders.items()}


def _nowhere(rows: DataFrame, batch: int) -> None:
    """A sink that takes nothing: results are written by the tasks, and that is all that is measured."""


def _measured(workload: str, strategy: str, told: list[dict[str, Any]]) -> Run:
    balance = [progress["balance"]["pairs"] for progress in told]
    return Run(
        workload,
        strategy,
        rows=[progress["input_rows"] for progress in told],
        seconds=np.array([one["seconds"] for one in balance]),
        compared=np.array([one["comparisons"] for one in balance], np.float64),
        pairs=[progress["emitted"]["pairs"] for progress in told],
        moved=[one["moved"]["rows"] if one["moved"] else 0 for one in balance],
        stored=[progress["state_rows"] for progress in told],
        entries=[one["entries"] for one in balance],
        split_keys=[one["split_keys"] for one in balance],
        batch_seconds=[progress["duration_seconds"] for progress in told],
    )
