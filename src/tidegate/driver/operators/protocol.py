"""The operator protocol of the driver: what the compiler, a batch and the sinks call.

    describe      api/nodes.OperatorNode     inputs and traits: what the user wrote
    compile       Operator                   made once, from the node, by its builder (`registry.py`)
    per batch     Operator.work ──▶ WorkOrder ──▶ tasks          (worker/runtime/task_runner.py)
                  Operator.frame ──▶ the data frame of its results

A new kind of operator is a node, an `Operator` and its tasks. No other code tests the kind of an operator,
except the control of shed options that only that kind has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidegate.api.nodes import Node, OperatorNode, Output, Union
from tidegate.control.balance.balancing import Balanced
from tidegate.driver.compile.column_pruning import StoredBefore
from tidegate.driver.compile.keys import quoted
from tidegate.driver.compile.ports import Lanes
from tidegate.driver.frames.drop_frames import Passing
from tidegate.driver.frames.frame_cache import Selection
from tidegate.driver.frames.pass_input import PassInput
from tidegate.driver.operators.tap import Entry, PortInput, Tap
from tidegate.model.graph import OperatorTraits, Reader
from tidegate.model.manifest import Manifest
from tidegate.model.pieces import Piece
from tidegate.model.plan import Plan
from tidegate.window.drop import network
from tidegate.worker.runtime.layout import CELL, REPORT
from tidegate.worker.runtime.stage_file import Kept
from tidegate.worker.runtime.state_order import StateOrder
from tidegate.worker.runtime.task_runner import WorkOrder

if TYPE_CHECKING:
    from tidegate.driver.operators.union import UnionPort

#: The schema of tasks that stage; a type, because Spark would parse text in every batch.
REPORTS: T.StructType = T.StructType([T.StructField(REPORT, T.StringType())])


@dataclass(frozen=True)
class BatchOrder:
    """The inputs from which the work orders of one batch are made."""

    plan: Plan
    before: Manifest
    passing: Passing
    #: Tasks report the load of keys, for balancing.
    watch_keys: bool
    store_url: str
    #: Distinguishes this run from an earlier one on the same checkpoint, for workers that outlive both.
    run: str
    #: By operator that stages its results: the place, and how files that stay are written.
    staged: Mapping[str, tuple[str, Kept | None]]
    #: The newest time of a stream that its tasks accept, by the clock of the plan.
    newest_us: Callable[[str | None, Plan], int]
    #: Puts the pieces of an operator into a file, if they are many: from its name, its order and all pieces.
    sent: Callable[[str, StateOrder, Sequence[Piece]], StateOrder] = lambda operator, order, pieces: order

    def staging(self, operator: str) -> dict[str, Any]:
        """Where its tasks stage their results, if they do."""
        if operator not in self.staged:
            return {}
        root, kept_as = self.staged[operator]
        return {"stage_root": root, "kept_as": kept_as}

    def state(self, operator: str, everywhere: tuple[int, ...] = ()) -> StateOrder:
        """What the plan asks of the state of an operator.

        `everywhere`: sides of which every instance may read all rows.
        """
        order = state_order(operator, self.plan, self.before, self.store_url, self.run)
        return self.sent(operator, replace(order, everywhere=everywhere), self.before.pieces)

    def late_before_us(self, operator: str) -> tuple[int, int]:
        """By side of an operator with state: rows below this are late; rows of operators never are."""
        return self.plan.late.inputs[operator]


def state_order(operator: str, plan: Plan, before: Manifest, store_url: str, run: str = "") -> StateOrder:
    """The state order of one operator, from a plan and the manifest before it."""
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
    """One operator of a compiled flow; it does not change from batch to batch."""

    #: Whether its tasks store state and count the rows of the streams they read.
    stateful: bool = True
    #: Whether its tasks reject times too far ahead also for streams that Spark counts.
    judges_observed: bool = False
    #: Whether Spark must reject times too far ahead for streams that it counts.
    needs_judged: bool = False
    #: Whether its tasks report; otherwise Spark alone makes its rows.
    reports: bool = True
    #: Whether it can leave out columns that are not read behind it.
    prunes: bool = False
    #: SQL over its results: the code of a row's group, where groups have windows of their own.
    group_code: str = "0L"

    def __init__(self, name: str, node: OperatorNode, schema: T.StructType):
        self.name: str = name
        self.node: OperatorNode = node
        #: Spark schema of the rows its tasks return, the report last.
        self.schema = schema
        #: By name, in their order: all columns of its rows, also those that its tasks leave out.
        self.columns: dict[str, T.DataType] = {
            field.name: field.dataType for field in schema.fields if field.name not in (REPORT, CELL)
        }

    # -- called by the compiler -----------------------------------------------------------------------

    @property
    @abstractmethod
    def streams(self) -> tuple[str | None, ...]:
        """By input: the source whose rows enter it directly; None if another operator feeds it."""

    def fingerprint(self) -> dict[str, Any] | None:
        """What must not change between two runs on one checkpoint; None: it has no state."""
        return None

    def traits(self, time_from: Sequence[str]) -> OperatorTraits | None:
        """Its traits for planning; `time_from`: by input, the origin of its time. None: it has no state."""
        return None

    def balanced(self) -> Balanced | None:
        """How its instances may be balanced; None: it has no instances."""
        return None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Its own readers of streams, if it can be built again (`prunes`)."""
        return ()

    def needs(self, number: int, rows: DataFrame) -> DataFrame:
        """What it reads of its input of this number; by default all columns."""
        return rows

    @abstractmethod
    def readers(self, sources: Sequence[tuple[str, bool]], drops: bool) -> Iterator[Reader]:
        """Its lines in the receipt. `sources`: by input, the origin of rows and whether no step lies
        between; `drops`: it never skips pairs, so rows go only because windows behind it were dropped."""

    def drop_node(self, sources: Sequence[str]) -> network.Node:
        """Its node in the window drop network: a source, unless times pass through."""
        return network.DropSourceNode(self.name)

    # -- called by a batch ----------------------------------------------------------------------------

    @property
    def is_pruned(self) -> bool:
        """Whether its tasks leave out columns."""
        return not self.columns.keys() <= set(self.schema.names)

    @cached_property
    def rows_only(self) -> Selection:
        """All columns of its rows. Those that tasks leave out are null; nothing behind reads them."""
        return Selection(self._every_column())

    @cached_property
    def rows_and_cells(self) -> Selection:
        """The same with the cell of each row, if they have one."""
        return Selection(self._every_column() + ([CELL] if CELL in self.schema.names else []))

    def _every_column(self) -> list[Column | str]:
        made = set(self.schema.names)
        return [
            quoted(name) if name in made else F.lit(None).cast(kind).alias(name)
            for name, kind in self.columns.items()
        ]

    @abstractmethod
    def work(self, order: BatchOrder, feeding: Sequence[str]) -> WorkOrder:
        """Its work order in a batch; `feeding`: by input, the stream or operator that feeds it."""

    @abstractmethod
    def frame(self, rows: PassInput, work: Any) -> DataFrame | None:
        """Its results and reports in one pass; None if the pass has no input for it."""

    def is_due(self, work: Any) -> bool:
        """Whether its tasks have anything to do in a pass in which no row reaches it."""
        return True

    def counts_rows(self, work: Any) -> bool:
        """Whether Spark counts rows that it drops between readers of streams and the tasks of this operator.

        The action must collect the reports then, because these counts come with them.
        """
        return False

    def shown(self, results: DataFrame) -> DataFrame:
        """The results that pass the condition behind the operator."""
        return results

    def listed(self, work: Any) -> str | None:
        """The column that is stored as lists in staged files."""
        return None

    def close(self) -> None:  # noqa: B027 - most operators send nothing
        """Release what was sent to the workers for the life of the query."""

    # -- called by sinks ------------------------------------------------------------------------------

    @property
    def stages(self) -> bool:
        """Whether its tasks can stage their results."""
        return True

    @property
    def pipes(self) -> bool:
        """Whether its results can go straight on to the one operator that reads them."""
        return self.reports and self.stages

    @property
    def hides_columns(self) -> bool:
        """Whether results have a column that outputs do not write."""
        return False

    @property
    def is_plain(self) -> bool:
        """Whether rows are exactly what tasks produce: no condition of Spark lies behind."""
        return True


@dataclass(frozen=True)
class RunNeeds:
    """What the goal and the policies of a run need of its operators."""

    #: Rows of inner joins carry the cell in which they were found, for a utility.
    cells: bool = False
    #: Rows may be dropped in front of matches, so that Spark must count them.
    sifts: bool = False
    #: Joins repair skipped pairs; their rows carry the batch that skipped them where an output shows it.
    repairs: bool = False
    #: Length of the basic windows of joins; None: a tenth of the window.
    basic_us: int | None = None


class Builder(Protocol):
    """What the compiler offers to builders of operators."""

    spark: SparkSession
    outputs: Sequence[Output]
    partitions: int
    needs: RunNeeds

    def frame(self, node: Node) -> DataFrame:
        """A frame with the columns of a node; empty for an operator."""

    def time_type(self, node: Node) -> T.DataType:
        """The type of the event time of a node."""

    def needs_time(self, name: str) -> bool:
        """Whether an operator behind needs the event time of its rows."""

    def repairs(self, name: str) -> bool:
        """Whether skipped pairs of this operator are repaired."""

    def wanted(self, name: str) -> frozenset[str] | None:
        """The columns of an operator that are read behind it; None: all, as far as is known."""

    def basic_us(self, name: str) -> int | None:
        """Length of the basic windows of a join; None: a tenth of the window."""

    def stored(self, name: str, side: int) -> StoredBefore | None:
        """What an earlier run on the checkpoint stores of a side of a join; None: there was none."""

    def port(
        self,
        node: Node,
        stored: Sequence[tuple[str, Column, T.DataType]],
        code: Column,
        keyless: Column,
        lanes: Lanes,
    ) -> PortInput:
        """Add a port: rows of a node enter with a key code and as lanes, which an operator's ports share."""

    def tap(
        self,
        node: Node,
        observed_as: str | None = None,
        without: str | None = None,
        only: Collection[str] | None = None,
    ) -> Tap | None:
        """Add a tap: rows of a node enter without a key; None if another operator feeds it."""

    def union(self, node: Union, name: str) -> tuple[UnionPort, list[T.StructField]]:
        """Add the entry of a union; and its visible columns."""
