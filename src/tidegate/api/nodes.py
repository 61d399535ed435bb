"""The frozen description of a flow: sources, stateless steps, operators, refused rows, outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from tidegate.api.joins.conditions import Condition, JoinKey
from tidegate.api.names import operator_name
from tidegate.api.range_queries import RangeQuery
from tidegate.errors import FlowError
from tidegate.join.within import Tumbling, Unbounded, Within
from tidegate.quantities import Duration
from tidegate.redaction import without_secrets
from tidegate.window.spec import RowsSpec, WindowSpec

if TYPE_CHECKING:
    from tidegate.api.joins.sql_conditions import SqlTemplate

#: Joins for which fewer input rows mean fewer, still correct, output rows.
MAY_LOSE = ("inner", "left_semi")


class OperatorNode(ABC):
    """An operator of a flow: its inputs, and the traits that checks read (`model/graph.FlowTraits`)."""

    #: For messages: "A join takes the results of an approximate window".
    label: ClassVar[str] = "operator"
    #: The user's name for it; None: a name is made of its inputs and `named_by`.
    name: str | None = None
    #: What it can shed: "pairs", "rows" in front of it, "windows".
    sheds: ClassVar[str | None] = None
    #: Rows leave in the batch in which they arrived, with their time unchanged.
    passes_through: ClassVar[bool] = False

    @property
    @abstractmethod
    def inputs(self) -> tuple[Node, ...]:
        """The nodes whose rows it reads."""

    @property
    def named_by(self) -> tuple[str, ...]:
        """What its default name has behind the names of its inputs."""
        return (self.label,)

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
    #: The user's name of the operator; None: it gets one from its input and keys.
    name: str | None = None
    #: If windows are dropped: each group has windows of its own that go, or all groups lose the same.
    drops_groups: bool = False

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.parent,)

    @property
    def named_by(self) -> tuple[str, ...]:
        return (self.label, *self.by)

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
    #: The column with the time at which a row became available; None: it is not known by row.
    available_at: str | None = None

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
    #: Of a user's function: changes when its meaning does.
    version: str | None = None

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
    keys: tuple[JoinKey, ...]
    within: Within | Tumbling | Unbounded
    how: str
    where: Any
    #: A condition besides equal keys; there may be no keys.
    condition: Condition | None = None
    #: The name that the user gave it.
    name: str | None = None
    #: Added to the names of right columns that are taken.
    suffix: str = "_right"
    #: What an SQL condition says besides keys and time; holds together with `where`.
    rest: SqlTemplate | None = None
    #: `within` was read from SQL bounds on the event-time columns.
    timed_by_sql: bool = False

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.left, self.right

    @property
    def is_conditional(self) -> bool:
        """Whether pairs must satisfy a residual condition: `where`, or the rest of an SQL condition."""
        return self.where is not None or self.rest is not None

    @property
    def named_by(self) -> tuple[str, ...]:
        compared = () if self.condition is None else tuple(left for left, _ in self.condition.columns)
        return (*(key.label for key in self.keys), *compared)

    @property
    def fewer_in_fewer_out(self) -> bool:
        return self.how in MAY_LOSE

    @property
    def repairable(self) -> bool:
        # A left semi join with a residual condition emits its rows in a second step, which does not know the
        # batch they belong to.
        return not (self.how == "left_semi" and self.is_conditional)


@dataclass(frozen=True, eq=False)
class Match(OperatorNode):
    """A stream and the continuous queries that are evaluated on its rows."""

    label: ClassVar[str] = "match"
    sheds: ClassVar[str | None] = "rows"
    passes_through: ClassVar[bool] = True

    parent: Node
    queries: tuple[RangeQuery, ...]
    #: Folder in which sifters are published to the sources, and the column in which these mark samples.
    publish_to: str | None = None
    sample_column: str | None = None
    name: str | None = None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.parent,)

    @property
    def fewer_in_fewer_out(self) -> bool:
        return True


@dataclass(frozen=True, eq=False)
class Union(OperatorNode):
    """The rows of several streams as one; columns are found by name. Spark runs it."""

    label: ClassVar[str] = "union_by_name"
    passes_through: ClassVar[bool] = True

    parents: tuple[Node, ...]
    #: Columns that an input does not have are null in its rows.
    allow_missing_columns: bool = False
    name: str | None = None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.parents

    @property
    def named_by(self) -> tuple[str, ...]:
        return ()

    @property
    def fewer_in_fewer_out(self) -> bool:
        return True

    @property
    def sources(self) -> tuple[Source, ...]:
        """The source of each input, in order; those of a union among the inputs in its place."""
        found: list[Source] = []
        for node in self.parents:
            while isinstance(node, StatelessStep):
                node = node.parent
            if isinstance(node, Source):
                found.append(node)
            elif isinstance(node, Union):
                found += node.sources
        return tuple(found)


@dataclass(frozen=True, eq=False)
class Refused:
    """Rows that a source did not accept: kind is `late` or `rejected`."""

    parent: Source
    kind: str

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.parent,)


Node = Source | StatelessStep | Refused | OperatorNode


@dataclass(frozen=True, eq=False, repr=False)
class Output:
    """Where the rows of a stream go; made by `Stream.write_to` and `Stream.write_to_table`.

    A function of (data frame, batch id), a Spark format with or without a path, or a table.

    >>> orders.write_to("parquet", "out/orders")
    <tidegate.Output 'orders': parquet to out/orders>
    """

    node: Node
    #: The user's name for it; None: the name of what it writes.
    given_name: str | None = None
    function: Callable[..., None] | None = None
    format: str | None = None
    path: str | None = None
    table: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    #: The longest run of missing windows, as a number or a duration; None: none may be missing.
    max_gap: int | Duration | None = None
    #: The largest share of its results that may be shed; None: as the goal says.
    max_loss: float | None = None
    #: The weight of its loss against that of other outputs.
    priority: float = 1.0
    #: The column that says which batch skipped a repaired row; None: there is no such column.
    repair_column: str | None = None
    #: Files of several batches are published together after this long; None: those of each batch at once.
    commit_every_us: int | None = None

    @property
    def name(self) -> str:
        """The name in checkpoint, progress, receipts and metrics."""
        return self.given_name or name_of(self.node)

    def __repr__(self) -> str:
        sink = f"table {self.table}" if self.table else self.format or "function"
        return without_secrets(
            f"<tidegate.Output {self.name!r}: {sink}{f' to {self.path}' if self.path else ''}>"
        )


def name_of(node: Node, former: Mapping[str, str] | None = None) -> str:
    """The name of the stream or operator that the rows of a node come from.

    The default name of an operator is made of its inputs and keys, so it does not depend on paths or on the
    order of outputs. `former`: by name, what it was before; then the name that the node had.
    """
    former = former or {}
    if isinstance(node, StatelessStep):
        return name_of(node.parent, former)
    if isinstance(node, Refused):
        return f"{name_of(node.parent, former)}_{node.kind}"
    if isinstance(node, Source) or node.name is not None:
        return former.get(str(node.name), str(node.name))
    inputs = [name_of(one, former) for one in node.inputs]
    name = "_".join((*inputs, *node.named_by))
    return former.get(name_of(node), name) if former else name


def union_node(left: Node, right: object, allow_missing_columns: bool, name: str | None) -> Union:
    """The union of two nodes."""
    if not isinstance(right, Node):
        raise FlowError(
            "A stream is united with a stream",
            code="UNION_OTHER_INVALID",
            got=type(right).__name__,
            do="Make one of a data frame: tg.stream(frame, …)",
        )
    for node in (left, right):
        _refuse_operator(node)
    return Union((left, right), allow_missing_columns, operator_name(name, "union_by_name"))


def _refuse_operator(node: Node) -> None:
    while isinstance(node, StatelessStep):
        node = node.parent
    if isinstance(node, OperatorNode) and not isinstance(node, Union):
        raise FlowError(
            f"A union cannot take the results of a {node.label}",
            code="UNION_OF_OPERATOR",
            got=name_of(node),
            why="It unites source streams, where rows enter",
            do=f"Unite the streams before the {node.label}, or write the results to two outputs",
        )
