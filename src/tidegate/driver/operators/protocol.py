"""The operator protocol of the driver: what the compiler, a batch and the sinks ask of an operator.

    describe      api/nodes.OperatorNode     inputs and traits: what the user wrote
    compile       Operator                   made once, from the node, by its builder (`registry.py`)
    per batch     Operator.work ──▶ WorkOrder ──▶ tasks          (worker/runtime/task_runner.py)
                  Operator.frame ──▶ the data frame of its results

A new kind of operator is a node, an `Operator` and its tasks. Nothing else in the package asks which kind an
operator is, except the control of what only that kind can shed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T

from tidegate.api.nodes import Node, OperatorNode, Output, StatelessStep
from tidegate.control.balance.balancing import Balanced
from tidegate.driver.frames.drop_frames import Passing
from tidegate.driver.frames.pass_input import PassInput
from tidegate.driver.operators.tap import PortInput, Tap
from tidegate.model.graph import OperatorTraits, Reader
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.times import BEGINNING_US
from tidegate.window.drop import network
from tidegate.worker.runtime.layout import REPORT
from tidegate.worker.runtime.state_order import StateOrder
from tidegate.worker.runtime.task_runner import WorkOrder

#: What tasks return that stage their results; as a type, because Spark would parse a text in every batch.
REPORTS = T.StructType([T.StructField(REPORT, T.StringType())])


@dataclass(frozen=True)
class BatchOrder:
    """What the work orders of one batch are made from."""

    plan: Plan
    before: Manifest
    passing: Passing
    #: Somebody balances the load and wants to know which keys make it.
    watch_keys: bool
    store_url: str
    #: Tells this run from an earlier one on the same checkpoint, for workers that outlive both.
    run: str
    #: By operator that stages its results: where, and with which compression.
    staged: Mapping[str, tuple[str, str | None]]
    #: The newest time of a stream that its tasks believe, by the clock of the plan.
    newest_us: Callable[[str | None, Plan], int]

    def staging(self, operator: str) -> dict[str, Any]:
        """Where its tasks write their results, if they do."""
        if operator not in self.staged:
            return {}
        root, kept_as = self.staged[operator]
        return {"stage_root": root, "kept_as": kept_as}

    def state(self, operator: str) -> StateOrder:
        """What the plan asks of the state of an operator."""
        return state_order(operator, self.plan, self.before, self.store_url, self.run)

    def late_before_us(self, stream: str | None) -> int:
        """Rows of a stream below this are late; what operators emit never is."""
        return BEGINNING_US if stream is None else self.plan.watermarks_us[stream]


def state_order(operator: str, plan: Plan, before: Manifest, store_url: str, run: str = "") -> StateOrder:
    """What a plan, on top of what was before it, asks of the state of one operator."""
    return StateOrder(
        store_url=store_url,
        batch=plan.batch,
        settle_us=plan.settle_us[operator],
        settled_us=before.settled_us[operator],
        routing=plan.routing[operator],
        pieces=tuple(piece for piece in before.pieces if piece.operator == operator),
        merges=tuple(plan.rewrites.merges.get(operator, {}).items()),
        cuts=plan.rewrites.cuts.get(operator, ()),
        flush=plan.flush,
        run=run,
    )


class Operator(ABC):
    """One operator of a compiled flow. Static: nothing in it changes from batch to batch."""

    #: True: its tasks count the rows of the streams they read, and store state.
    stateful: bool = True
    #: Its tasks judge times too far ahead also of streams that Spark counts.
    judges_observed: bool = False
    #: Times of streams that it reads must be judged by Spark where Spark counts them.
    needs_judged: bool = False

    def __init__(self, name: str, node: OperatorNode, schema: T.StructType):
        self.name, self.node = name, node
        #: Spark schema of the rows its tasks return, the report last.
        self.schema = schema

    # -- what the compiler asks ----------------------------------------------------------------------

    @property
    @abstractmethod
    def streams(self) -> tuple[str | None, ...]:
        """By input: the source whose rows enter it directly; None where another operator feeds it."""

    def fingerprint(self) -> dict[str, Any] | None:
        """What must not change between two runs on one checkpoint; None: it keeps nothing there."""
        return None

    def traits(self, time_from: Sequence[str]) -> OperatorTraits | None:
        """What planning knows of it; `time_from`: by input, what gives it time. None: it has no state."""
        return None

    def balanced(self) -> Balanced | None:
        """How its instances may be balanced; None: it has none."""
        return None

    @abstractmethod
    def readers(self, sources: Sequence[tuple[str, bool]], drops: bool) -> Iterator[Reader]:
        """Its lines in the ledger. `sources`: by input, where rows come from and whether no step stands
        between; `drops`: windows behind it may be dropped."""

    def drop_node(self, sources: Sequence[str]) -> network.Node:
        """What window drop knows of it: a source of its own, unless times pass through."""
        return network.DropSourceNode(self.name)

    # -- what a batch asks ---------------------------------------------------------------------------

    @abstractmethod
    def work(self, order: BatchOrder, feeding: Sequence[str]) -> WorkOrder:
        """What a batch asks of its tasks; `feeding`: by input, the stream or operator that feeds it."""

    @abstractmethod
    def frame(self, rows: PassInput, work: Any) -> DataFrame | None:
        """Its results and reports in one pass; None where the pass brings nothing for it."""

    def shown(self, results: DataFrame) -> DataFrame:
        """Results without what a condition behind the operator refuses."""
        return results

    def listed(self, work: Any) -> str | None:
        """The column whose values stand in lists in staged files."""
        return None

    def close(self) -> None:  # noqa: B027 - most operators send nothing
        """Give back what was sent to the workers for the life of the query."""

    # -- what sinks ask ------------------------------------------------------------------------------

    @property
    def stages(self) -> bool:
        """Can its tasks write their results to files?"""
        return True

    @property
    def hides_columns(self) -> bool:
        """Do results hold a column that outputs do not show?"""
        return False

    def as_made(self, steps: Sequence[StatelessStep]) -> bool:
        """Are rows behind these steps just those that tasks make?"""
        return not steps


class Builder(Protocol):
    """What the compiler offers to those who build operators."""

    spark: SparkSession
    outputs: Sequence[Output]
    partitions: int
    #: Rows of inner joins say where they were found, for whoever values them.
    cells: bool

    def frame(self, node: Node) -> DataFrame:
        """A frame with the columns of a node, and no rows where an operator makes them."""
        ...

    def time_type(self, node: Node) -> T.DataType:
        """The type of the event time of a node."""
        ...

    def needs_time(self, name: str) -> bool:
        """Does an operator behind go by the event time of its rows?"""
        ...

    def repairs(self, name: str) -> bool:
        """May its rows come later than they should?"""
        ...

    def port(
        self, node: Node, stored: Sequence[tuple[str, Column, T.DataType]], code: Column, keyless: Column
    ) -> PortInput:
        """Let the rows of a node enter as columns of the shared layout, with a key code."""
        ...

    def tap(
        self,
        node: Node,
        observed_as: str | None = None,
        without: str | None = None,
        only: Collection[str] | None = None,
    ) -> Tap | None:
        """Let the rows of a node enter as they are; None where another operator feeds it."""
        ...
