"""A query network as one small value: nodes, and the arrows that rows take between them.

Paper: window drop, section 2.1: boxes and arrows; rows may be shared by several boxes. A box of the paper
is a stateless step here.

    source ─▶ step ─▶ window ─┬─▶ step ─▶ window ─▶ output
                              └─▶ output

A node names its parents; nodes stand in the order in which rows pass them. What they compute is left out:
only how they change the times of rows is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import lcm

from tidegate.errors import FlowError
from tidegate.model.times import LEFT
from tidegate.window.drop.cohorts import Cohorts
from tidegate.window.drop.source_range import JoinReach, Step
from tidegate.window.spec import UNIT_US, RowsSpec, WindowSpec


@dataclass(frozen=True)
class DropSourceNode:
    """A source of rows."""

    name: str
    #: Of a union: the streams whose rows it passes on.
    united: tuple[str, ...] = ()

    @property
    def parents(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True)
class DropStepNode:
    """A stateless step such as a filter or a map: it handles one row at a time and keeps its time."""

    name: str
    parent: str

    @property
    def parents(self) -> tuple[str, ...]:
        return (self.parent,)


@dataclass(frozen=True)
class DropWindowNode:
    """An aggregate. It emits one row per window and group, with the window's start as its time."""

    name: str
    parent: str
    #: The rows of a `RowsSpec` window depend on the number of rows before.
    spec: WindowSpec | RowsSpec
    by: tuple[str, ...] = ()
    #: If windows of some groups may be dropped: what tells the groups apart. Windows with an equal text have
    #: the same groups of the same rows. None: all groups lose the same windows.
    groups: str | None = None

    @property
    def parents(self) -> tuple[str, ...]:
        return (self.parent,)


@dataclass(frozen=True)
class DropJoinNode:
    """Pairs with lower_us <= right time - left time <= upper_us; a pair has the later time of the two."""

    name: str
    left: str
    right: str
    lower_us: int
    upper_us: int
    #: False where rows may be emitted without a pair (outer, semi and anti joins).
    inner: bool = True

    def __post_init__(self) -> None:
        if self.lower_us > self.upper_us:
            raise FlowError(
                f"The lower bound of the join {self.name!r} lies above the upper one",
                code="DROP_NETWORK_JOIN_INVALID",
                got=f"{self.lower_us} and {self.upper_us} microseconds",
            )

    @property
    def parents(self) -> tuple[str, ...]:
        return (self.left, self.right)

    def reach(self, side: int) -> JoinReach:
        """How much earlier and later than its results a row of a side is needed.

        A left row at t forms pairs from t to t + upper_us, or only from t + lower_us on if that lies behind
        it. Where a row may be emitted unmatched, at its own time, all its possible partners are needed: from
        lower_us to upper_us after a left row.
        """
        lower, upper = (self.lower_us, self.upper_us) if side == LEFT else (-self.upper_us, -self.lower_us)
        return JoinReach(max(0, upper), -max(0, lower) if self.inner else max(0, -lower))


@dataclass(frozen=True)
class DropOutputNode:
    """An output; at most `max_gap` windows in a row may be missing. None: no window may."""

    name: str
    parent: str
    max_gap: int | None = None

    def __post_init__(self) -> None:
        if self.max_gap is not None and self.max_gap < 1:
            raise FlowError(
                f"max_gap of the output {self.name!r} is less than one window",
                code="OUTPUT_MAX_GAP_RANGE",
                got=f"max_gap {self.max_gap}",
                why="With a max_gap of zero, no window can be dropped",
                do="Give max_gap=1 or more, or None if no window may be missing",
            )

    @property
    def parents(self) -> tuple[str, ...]:
        return (self.parent,)


Node = DropSourceNode | DropStepNode | DropWindowNode | DropJoinNode | DropOutputNode


def groups_text(by: Sequence[str], origin: str) -> str:
    """What tells the groups of a window apart: columns, and which rows have them."""
    return f"{', '.join(by)} of {origin}"


def time_window(node: Node) -> WindowSpec | None:
    """The window of a node that aggregates by time."""
    return node.spec if isinstance(node, DropWindowNode) and isinstance(node.spec, WindowSpec) else None


def steps_of(node: Node, side: int) -> tuple[Step, ...]:
    """How a node changes the needed times, on the way up to one of its parents."""
    if isinstance(node, DropJoinNode):
        return (node.reach(side),)
    spec = time_window(node)
    return () if spec is None else (spec,)


@dataclass(frozen=True)
class Network:
    """Nodes, each behind its parents."""

    nodes: tuple[Node, ...]

    def __post_init__(self) -> None:
        known: set[str] = set()
        for node in self.nodes:
            missing = [parent for parent in node.parents if parent not in known]
            if missing or node.name in known:
                raise FlowError(
                    "The nodes of a network need different names, and each must follow its parents",
                    code="DROP_NETWORK_INVALID",
                    got=f"{node.name!r} with parents {list(node.parents)} behind {sorted(known)}",
                )
            known.add(node.name)

    @cached_property
    def by_name(self) -> dict[str, Node]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def children(self) -> dict[str, tuple[Node, ...]]:
        """Per node: the nodes that its rows go to."""
        return {
            node.name: tuple(child for child in self.nodes if node.name in child.parents)
            for node in self.nodes
        }

    @property
    def outputs(self) -> tuple[DropOutputNode, ...]:
        return tuple(node for node in self.nodes if isinstance(node, DropOutputNode))

    def above(self, name: str) -> frozenset[str]:
        """The node and all nodes that its rows come from."""
        node = self.by_name[name]
        return frozenset({name}).union(*(self.above(parent) for parent in node.parents))

    def without(self, outputs: frozenset[str]) -> Network:
        """The network without these outputs, and without nodes that only they need."""
        left = [output.name for output in self.outputs if output.name not in outputs]
        needed = frozenset[str]().union(*(self.above(name) for name in left))
        return Network(tuple(node for node in self.nodes if node.name in needed))

    def shown_by(self, name: str) -> Node:
        """The node whose results a node passes on as they are: in front of steps, and of an output."""
        node = self.by_name[name]
        while isinstance(node, DropStepNode | DropOutputNode):
            node = self.by_name[node.parent]
        return node

    def result_spec(self, name: str) -> WindowSpec | None:
        """The windows that leave a node, or that an output shows; None: these are no windows of time."""
        return time_window(self.shown_by(name))

    @cached_property
    def cohorts(self) -> Cohorts | None:
        """Where the times of groups lie that lose other windows than others; None: there are none."""
        if not any(isinstance(node, DropWindowNode) and node.groups for node in self.nodes):
            return None
        return Cohorts.of_slide(lcm(*(spec.slide_us for node in self.nodes if (spec := time_window(node)))))

    def groups_of(self, name: str) -> str | None:
        """Which groups of the rows that leave a node may be missing; None: all are alike."""
        node = self.shown_by(name)
        return node.groups if isinstance(node, DropWindowNode) else None

    def groups_on(self, parent: str, child: str) -> str | None:
        """By which groups rows are dropped on an arrow: those of the window behind it."""
        node = self.by_name[child]
        if isinstance(node, DropWindowNode):
            return node.groups
        return None if isinstance(node, DropJoinNode) else self.groups_of(parent)

    def cohorts_of(self, name: str) -> Cohorts | None:
        return self.cohorts if self.groups_of(name) else None

    def cohorts_on(self, parent: str, child: str) -> Cohorts | None:
        return self.cohorts if self.groups_on(parent, child) else None

    def grid_us(self, name: str) -> int:
        """The distance between the times of rows that leave a node: behind a window, its slide."""
        spec = self.result_spec(name)
        return UNIT_US if spec is None else spec.slide_us

    def paths(self, output: str, name: str) -> Iterator[tuple[Step, ...]]:
        """The steps between an output and the rows that leave a node, path by path."""
        if output == name:
            yield ()
            return
        node = self.by_name[output]
        for side, parent in enumerate(node.parents):
            for rest in self.paths(parent, name):
                yield *steps_of(node, side), *rest

    def paths_by(self, output: str, parent: str, child: str) -> Iterator[tuple[Step, ...]]:
        """The paths that use one arrow, from a node to one of its children."""
        node = self.by_name[child]
        for path in self.paths(output, child):
            for side, other in enumerate(node.parents):
                if other == parent:
                    yield *path, *steps_of(node, side)
