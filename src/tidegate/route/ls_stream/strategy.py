"""The `ls-stream` strategy: whole partitions move from the straggler to the least loaded instance.

Paper: Ls-Stream (Lightening Stragglers in Join Operators), sections III to V.

    rows come ─▶ input rates without extremes (4) ─▶ load of partitions and instances (7–12)
              ─▶ imbalance LI (13) > α ? ─▶ annealing over the straggler's partitions (algorithm 1)
              ─▶ the table: partition → instance, one entry each

One pair of instances per batch, as in the paper, or more (`pairs`). The pause and the four steps of a
migration in the paper (block, move, rename, release) are the barrier between two batches here.

Guarantees: the table has one entry per partition, however much has moved. At or below the threshold nothing
moves. The imbalance, on the observed loads, never grows, and on constant loads moving ends (`relief.py`). A
partition is never cut, so one that alone exceeds the threshold keeps its instance there, and the other
partitions of that instance leave. The same load, assignment and memory give the same answer.

Ours: `weights` (speed of each instance; the paper says that it supports this but not how), `pairs`,
`history`. Errors in the paper are described in the file that corrects them: `partition_annealing.py` (the
start, min and max, or and and), `partition_load.py` (equation 4, the example).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import REPORT_STATE_BUG, FlowError
from tidegate.route.assignment import Assignment
from tidegate.route.hash_routing import check_instances, first_table
from tidegate.route.load import Load
from tidegate.route.ls_stream.deviation import deviation
from tidegate.route.ls_stream.partition_annealing import PartitionAnnealing
from tidegate.route.ls_stream.partition_load import partition_loads, per_instance, trimmed_rates
from tidegate.route.ls_stream.relief import Partitions, relieved
from tidegate.route.resizing import resettled
from tidegate.route.strategy import Memory


@dataclass(frozen=True)
class LsStreamStrategy:
    """The settings; the first two have the paper's defaults."""

    #: Share of memory in the load, the rest is compute: higher moves big partitions, lower moves busy ones.
    gamma: float = 0.5
    #: The largest accepted imbalance: lower balances better and moves more.
    alpha: float = 1.0
    #: Annealing: how fast it cools, how many temperatures, and the seed of its random numbers.
    cooling: float = 0.75
    steps: int = 20
    seed: int = 0
    #: Relative speed of each instance; None: all the same.
    weights: tuple[float, ...] | None = None
    #: Stragglers relieved between two batches; the paper relieves one.
    pairs: int = 1
    #: Batches whose input rates are averaged; from 3 on without the highest and the lowest.
    history: int = 5

    def __post_init__(self) -> None:
        for name, good, valid in (
            ("gamma", 0 <= self.gamma <= 1, "from 0 (compute only) to 1 (memory only)"),
            ("alpha", 0 <= self.alpha < math.inf, "0 or more; the paper uses 1 and advises 1 to 2"),
            ("cooling", 0 < self.cooling < 1, "more than 0 and less than 1"),
            ("steps", self.steps >= 1, "1 or more"),
            ("seed", self.seed >= 0, "0 or more"),
            ("pairs", self.pairs >= 1, "1 or more"),
            ("history", self.history >= 1, "1 or more"),
        ):
            if not good:
                raise FlowError(
                    f"The setting {name} of ls_stream is out of range",
                    code="BALANCE_SETTING_INVALID",
                    got=getattr(self, name),
                    do=f"Give {valid}",
                )
        if self.weights is not None and not all(0 < weight < math.inf for weight in self.weights):
            raise FlowError(
                "The weights of ls_stream must be positive and finite",
                code="BALANCE_SETTING_INVALID",
                got=self.weights,
                why="They are the relative speeds of the instances",
                do="Give one positive number per instance, such as (1, 1, 2)",
            )

    @property
    def name(self) -> str:
        return "ls_stream"

    def first(self, partitions: int, instances: int) -> Assignment:
        """Neighbouring partitions together, in proportion to the speed of the instance."""
        table = first_table(partitions, instances)
        if self.weights is not None:
            table = _weighted_table(partitions, self._weights(instances))
        return Assignment(instances, table)

    def decide(self, load: Load, current: Assignment, memory: Memory) -> tuple[Assignment, Memory]:
        weights = self._weights(current.instances)
        table = self._table(load, current)
        partitions, remembered = self._partitions(load, table, current.instances, memory)
        moved = False
        for pair in range(self.pairs):
            if deviation(per_instance(partitions.loads, table, len(weights)), weights) <= self.alpha:
                break
            draw = load.batch * self.pairs + pair
            after = relieved(partitions, table, weights, self.alpha, self._annealing, draw)
            if after is None:
                break
            table, moved = after, True
        if not moved:
            return current, {"rates": remembered}
        # Rates are per instance: after a move they belong to other partitions.
        return replace(current, table=tuple(table.tolist())), {"rates": []}

    def resize(self, load: Load, current: Assignment, instances: int) -> Assignment:
        check_instances(len(current.table), instances)
        table = self._table(load, current)
        partitions, _ = self._partitions(load, table, current.instances, {})
        after = resettled(table, partitions.loads, current.instances, instances, self._weights(instances))
        return replace(current, instances=instances, table=tuple(after.tolist()))

    @property
    def _annealing(self) -> PartitionAnnealing:
        return PartitionAnnealing(self.cooling, self.steps, self.seed)

    def _partitions(
        self, load: Load, table: NDArray[np.int64], instances: int, memory: Memory
    ) -> tuple[Partitions, list[list[float]]]:
        """Statistics of each partition, with input rates averaged by instance; and the rates to remember."""
        work = load.partitions
        now = per_instance(work.probes.sum(axis=0).astype(np.float64), table, instances)
        # Rates of another number of instances are from before a resize and do not apply.
        before = [rates for rates in memory.get("rates", []) if len(rates) == instances]
        rates = [*before, now.tolist()][-self.history :]
        usual = trimmed_rates(np.array(rates, np.float64))
        scale = np.divide(usual, now, out=np.ones(instances), where=now > 0)
        coming = np.asarray(work.probes * scale[table], np.float64)
        loads = partition_loads(work, self.gamma, coming)
        return Partitions(loads, coming.sum(axis=0), work.stored.sum(axis=0).astype(np.float64)), rates

    def _weights(self, instances: int) -> NDArray[np.float64]:
        if self.weights is None:
            return np.ones(instances)
        if len(self.weights) != instances:
            raise FlowError(
                "ls_stream needs one weight per instance",
                code="BALANCE_SETTING_INVALID",
                got=f"{len(self.weights)} weights, {instances} instances",
                do=f"Give {instances} weights, or none if all instances are equally fast",
            )
        return np.array(self.weights, np.float64)

    @staticmethod
    def _table(load: Load, current: Assignment) -> NDArray[np.int64]:
        if len(load.partitions) != len(current.table):
            raise FlowError(
                "The measured load does not fit the routing table",
                code="INTERNAL_ARRAYS_INCONSISTENT",
                got=f"{len(load.partitions)} loads, {len(current.table)} partitions",
                do=REPORT_STATE_BUG,
            )
        return np.array(current.table, np.int64)


def _weighted_table(partitions: int, weights: NDArray[np.float64]) -> tuple[int, ...]:
    """Ranges of partitions in proportion to the weights, at least one per instance."""
    n = len(weights)
    ends = np.rint(np.cumsum(weights) / weights.sum() * partitions).astype(np.int64)
    for instance in range(n):
        before = ends[instance - 1] if instance else 0
        ends[instance] = min(max(ends[instance], before + 1), partitions - (n - 1 - instance))
    return tuple(np.repeat(np.arange(n), np.diff(ends, prepend=0)).tolist())
