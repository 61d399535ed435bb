"""The frozen description of a flow: sources, stateless steps, operators, refused rows, outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tidegate.api.join_conditions import Condition
from tidegate.api.range_queries import Query
from tidegate.join.within import Tumbling, Unbounded, Within
from tidegate.window.spec import RowsSpec, WindowSpec

#: Joins for which fewer input rows mean fewer, still correct, output rows.
MAY_LOSE = ("inner", "left_semi")


class OperatorNode(ABC):
    """An operator of a flow: its inputs, and the traits that checks read (`model/graph.FlowTraits`)."""

    #: Names are made of this and a number.
    label: ClassVar[str] = "operator"
    #: What it can shed: "pairs", "rows" in front of it, "windows".
    sheds: ClassVar[str | None] = None
    #: Rows leave in the batch in which they arrived, with their time unchanged.
    passes_through: ClassVar[bool] = False

    @property
    @abstractmethod
    def inputs(self) -> tuple[Node, ...]:
        """The nodes whose rows it reads."""

    @property
    def fewer_in_fewer_out(self) -> bool:
        """Whether fewer input rows mean fewer, still correct, output rows."""
        return False

    @property
    def estimates(self) -> bool:
        """Whether its results are estimates."""
        return False

    @property
    def repairable(self) -> bool:
        """Whether skipped results may be emitted in a later batch."""
        return False

    @property
    def filters_behind(self) -> bool:
        """Whether a filter behind the operator selects its rows."""
        return False


@dataclass(frozen=True, eq=False)
class Window(OperatorNode):
    """A stream's windows, the grouping columns, and named aggregates."""

    label: ClassVar[str] = "window"
    sheds: ClassVar[str | None] = "windows"

    parent: Node
    spec: WindowSpec | RowsSpec
    by: tuple[str, ...]
    aggregates: tuple[tuple[str, Any], ...]
    #: Rows may be sampled, and results are estimates with intervals.
    approximate: bool = False

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.parent,)

    @property
    def estimates(self) -> bool:
        return self.approximate


@dataclass(frozen=True, eq=False)
class Source:
    """One input data frame and how its time is read."""

    frame: Any
    time: str
    name: str
    lateness_us: int
    idle_timeout_us: int | None
    max_ahead_us: int | None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()


@dataclass(frozen=True, eq=False)
class StatelessStep:
    """A function from data frame to data frame."""

    parent: Node
    kind: str
    apply: Callable[[Any], Any]
    #: The columns that a select keeps, if all are given by name; None otherwise.
    columns: tuple[str, ...] | None = None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.parent,)


@dataclass(frozen=True, eq=False)
class Join(OperatorNode):
    """Two streams, the keys that must be equal, the time condition, and how unmatched rows are treated."""

    label: ClassVar[str] = "join"
    sheds: ClassVar[str | None] = "pairs"

    left: Node
    right: Node
    keys: tuple[tuple[str, str], ...]
    within: Within | Tumbling | Unbounded
    how: str
    where: Any
    #: A condition besides equal keys; there may be no keys.
    condition: Condition | None = None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.left, self.right

    @property
    def fewer_in_fewer_out(self) -> bool:
        return self.how in MAY_LOSE

    @property
    def repairable(self) -> bool:
        # A left semi join with a residual condition emits its rows in a second step, which does not know the
        # batch they belong to.
        return not (self.how == "left_semi" and self.where is not None)

    @property
    def filters_behind(self) -> bool:
        return self.how == "inner" and self.where is not None


@dataclass(frozen=True, eq=False)
class Match(OperatorNode):
    """A stream and the continuous queries that are evaluated on its rows."""

    label: ClassVar[str] = "match"
    sheds: ClassVar[str | None] = "rows"
    passes_through: ClassVar[bool] = True

    parent: Node
    queries: tuple[Query, ...]
    #: Folder in which sifters are published to the sources, and the column in which these mark samples.
    sources: str | None = None
    mark: str | None = None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.parent,)

    @property
    def fewer_in_fewer_out(self) -> bool:
        return True


@dataclass(frozen=True, eq=False)
class Refused:
    """Rows that a source did not accept: kind is `late` or `rejected`."""

    parent: Source
    kind: str

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.parent,)


Node = Source | StatelessStep | Refused | OperatorNode


@dataclass(frozen=True, eq=False)
class Output:
    """Where the rows of a stream go: a function of (data frame, batch id), or a Spark format and a path."""

    node: Node
    name: str
    function: Callable[[Any, int], None] | None = None
    format: str | None = None
    path: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    #: The longest run of missing windows, as a number or a duration; None: none may be missing.
    max_gap: int | str | None = None
