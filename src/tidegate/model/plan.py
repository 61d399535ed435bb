"""The plan of a batch: every decision about it, made and written before it runs.

All values here are frozen and encode to plain JSON that decodes to equal values. Times are UTC microseconds
since the epoch, as Python ints; names that hold a time end in `_us`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.model.debts import DebtRepair
from tidegate.model.manifest import NO_BATCH_YET, SparkBatch
from tidegate.model.routing import Cut, Routing
from tidegate.model.skip_plan import Skipping
from tidegate.model.times import BEGINNING_US


@dataclass(frozen=True)
class ShedPlan:
    """What a batch leaves out."""

    #: Per join that may skip work: which parts of basic windows it probes.
    skipping: Mapping[str, Skipping] = field(default_factory=dict)
    #: Per match that may drop rows: the sifter in front of it, as JSON.
    sifters: Mapping[str, Any] = field(default_factory=dict)
    #: Per drop of windows: which were decided to go, and with which drop ratio, as JSON.
    dropping: Mapping[str, Any] = field(default_factory=dict)
    #: Per approximate window: how likely a row of each stratum is kept, and what was left out, as JSON.
    estimating: Mapping[str, Any] = field(default_factory=dict)
    #: Under a goal that only observes: what would have been left out; the fields above leave out nothing more
    #: than earlier batches did. None: the fields above were decided for the goal.
    would: ShedPlan | None = None


@dataclass(frozen=True)
class RepairPlan:
    """What a batch does about skipped pairs."""

    #: What is skipped becomes debt, and so many bytes may outlive their windows for it; None: it is lost.
    bytes_max: int | None = None
    #: Per operator: skipped pairs of earlier batches that this batch repairs.
    repairs: Mapping[str, tuple[DebtRepair, ...]] = field(default_factory=dict)
    #: True: after the rows, every debt is repaired, because no other batch may come to do it.
    repair_all: bool = False


@dataclass(frozen=True)
class Rewrites:
    """Stored rows that a batch rewrites."""

    #: Per operator and instance: groups of piece names; what the instance owns of a group becomes one piece.
    merges: Mapping[str, Mapping[str, tuple[tuple[str, ...], ...]]] = field(default_factory=dict)
    #: Per operator: keys whose stored rows change their partition with this batch.
    cuts: Mapping[str, tuple[Cut, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class LateRows:
    """Which rows of a batch are late: those below these times."""

    #: Per stream, for outputs and matches that read it directly.
    streams: Mapping[str, int]
    #: Per operator with state, and per union that feeds one: of each side.
    inputs: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    #: Per operator with state: the watermark by which rows of the next batch are late.
    next_us: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Shuffles:
    """How rows reach the tasks of operators with state."""

    #: Windows whose rows are shuffled as they are, because partial aggregation would not make them fewer.
    by_row: tuple[str, ...] = ()
    #: One task runs all instances of an operator, without a shuffle: the batch is small.
    one_task: bool = False


@dataclass(frozen=True)
class PlanDecisions:
    """What the controllers decided for a batch; the plan adds what follows from the last manifest."""

    #: When the run that makes the plan began: silence of a stream before that does not count.
    awake_us: int = BEGINNING_US
    #: True: no row will ever follow, everything is settled after the batch.
    flush: bool = False
    seed: int = 0
    #: The Spark batch that brings the rows; None: no rows come, everything that the watermark releases is
    #: emitted, in as many passes as that takes.
    spark_batch: SparkBatch | None = NO_BATCH_YET
    #: Where rows lie; None: as before.
    routing: Mapping[str, Routing] | None = None
    cuts: Mapping[str, tuple[Cut, ...]] = field(default_factory=dict)
    balance: Mapping[str, Any] = field(default_factory=dict)
    shuffles: Shuffles = Shuffles()
    shed: ShedPlan = ShedPlan()
    repair: RepairPlan = RepairPlan()


@dataclass(frozen=True)
class Plan:
    """Everything that may differ from batch to batch, decided and written before the batch runs."""

    #: The number of its commit.
    batch: int
    #: Wall clock at the moment of planning; the only clock that a batch may read.
    now_us: int
    late: LateRows
    #: Per operator: rows whose partners must be older than this are settled in this batch.
    settle_us: Mapping[str, int]
    #: Per operator: where rows lie, and which instances probe them.
    routing: Mapping[str, Routing]
    rewrites: Rewrites = Rewrites()
    #: As in `PlanDecisions`.
    flush: bool = False
    awake_us: int = BEGINNING_US
    seed: int = 0
    spark_batch: SparkBatch | None = NO_BATCH_YET
    shuffles: Shuffles = Shuffles()
    #: What the routing was made from: where balancing wants rows to lie, and what it remembers.
    balance: Mapping[str, Any] = field(default_factory=dict)
    shed: ShedPlan = ShedPlan()
    repair: RepairPlan = RepairPlan()

    @property
    def settles(self) -> bool:
        """Whether no rows come, and everything that the watermark releases is emitted."""
        return self.spark_batch is None
