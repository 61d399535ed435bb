"""The frozen description of a flow: sources, stateless steps, operators, refused rows, outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidegate.api.join_conditions import Condition
from tidegate.api.range_queries import Query
from tidegate.join.within import Tumbling, Unbounded, Within
from tidegate.window.spec import RowsSpec, WindowSpec

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, eq=False)
class Window:
    """A stream's windows, the columns that tell groups apart, and named aggregates."""

    parent: Node
    spec: WindowSpec | RowsSpec
    by: tuple[str, ...]
    aggregates: tuple[tuple[str, Any], ...]
    #: Rows may be sampled, and results are estimates with intervals.
    approximate: bool = False


@dataclass(frozen=True, eq=False)
class Source:
    """One input data frame and how its time is to be read."""

    frame: Any
    time: str
    name: str
    lateness_us: int
    idle_timeout_us: int | None
    max_ahead_us: int | None


@dataclass(frozen=True, eq=False)
class Box:
    """A stateless step: a function from data frame to data frame."""

    parent: Node
    kind: str
    apply: Callable[[Any], Any]
    #: What a select keeps, where that is nothing but columns by their names; None where nobody knows.
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True, eq=False)
class Join:
    """Two streams, the keys that must be equal, the time condition, and what becomes of lonely rows."""

    left: Node
    right: Node
    keys: tuple[tuple[str, str], ...]
    within: Within | Tumbling | Unbounded
    how: str
    where: Any
    #: What pairs must meet besides equal keys, which there may be none of.
    condition: Condition | None = None


@dataclass(frozen=True, eq=False)
class Match:
    """A stream and the continuous queries that its rows are tried against."""

    parent: Node
    queries: tuple[Query, ...]
    #: Folder through which sifters go to the sources, and the column in which these mark samples.
    sources: str | None = None
    mark: str | None = None


@dataclass(frozen=True, eq=False)
class Refused:
    """Rows that a source could not take: kind is `late` or `rejected`."""

    parent: Source
    kind: str


Node = Source | Box | Join | Match | Window | Refused


@dataclass(frozen=True, eq=False)
class Output:
    """Where the rows of a stream go: a function of (data frame, batch id), or a Spark format and a path."""

    node: Node
    name: str
    function: Callable[[Any, int], None] | None = None
    format: str | None = None
    path: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    #: Results of windows that may be missing in a row, as a number or a duration; None: none may.
    max_gap: int | str | None = None
