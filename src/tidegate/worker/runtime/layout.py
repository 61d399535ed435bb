"""Row layouts of joins, windows and matches: built once when a query starts.

All inputs of a join share one wide row, so that one shuffle carries them:

    tag    which port the row belongs to (twice its number, plus one for a row with a null key)
    time   event time in microseconds; BEGINNING_US for a row without a usable time
    code   64-bit code of the key (XXH64); for a null key, any number that spreads rows
    l0, l1, …   lanes: one per column type and occurrence, shared by the ports of an operator

A stored row has `code`, `time`, `batch` and the columns of its side. The event-time column itself is not
stored: it is `time`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from tidegate.api.joins.conditions import Condition
from tidegate.join.within import Tumbling, Unbounded, Within
from tidegate.sift.queries.axes import Axis
from tidegate.window.aggregate.aggregates import AggregatePart, Merge
from tidegate.window.aggregate.udaf import Udaf
from tidegate.window.spec import RowsSpec, WindowSpec

TAG, TIME, CODE, BATCH = "_tidegate_tag", "_tidegate_time", "_tidegate_code", "_tidegate_batch"
#: Tag of marker rows, one per instance, whose code is the number of the instance. In a union of several joins
#: or passes Spark numbers tasks consecutively, so its task number cannot be used.
MARKER = -2
#: Target instance of a copy of a row; dropped before rows reach the tasks.
INSTANCE = "_tidegate_instance"
#: Role of the instance for its copy of a row (route/targets.py), if rows have several copies.
ROLE = "_tidegate_role"
#: Identity: hash of all columns of a row. Distinguishes rows of the same key and time if copies must be
#: recognised or rows need a fixed order. Stored with the row.
ROW = "_tidegate_row"
#: The visible column that a match adds.
QUERY_NAME = "query_name"
#: The visible column that a join with repair adds: the batch that skipped the row, null in rows that were
#: not skipped.
REPAIRED = "_tidegate_repaired"
#: Carries one task report per operator and instance beside the result rows, null in every other row.
REPORT = "_tidegate_report"
#: Between the two steps of a join with a residual condition: positions of a pair's rows, and the result.
LEFT_RUN, LEFT_ROW = "_tidegate_left_run", "_tidegate_left_row"
RIGHT_RUN, RIGHT_ROW = "_tidegate_right_run", "_tidegate_right_row"
OK = "_tidegate_ok"
#: The part of the window in which a pair was found, if pairs differ in value.
CELL = "_tidegate_cell"
#: True in sample rows, which pass every sifter so that the controller sees an unbiased sample.
SAMPLE = "_tidegate_sample"
#: The hash for hash sampling, if the sifter is too large for Spark and the tasks apply it.
HASH = "_tidegate_hash"
#: Of pane partials: a second code of the group, the pane, the number of rows, their newest time.
CHECK, PANE = "_tidegate_check", "_tidegate_pane"
ROWS, SEEN = "_tidegate_rows", "_tidegate_seen"
#: Of approximate windows: the probability that a row of this group is kept, and the weight of a kept row.
SHARE, WEIGHT = "_tidegate_share", "_tidegate_weight"


@dataclass(frozen=True)
class SideLayout:
    """One input of a join."""

    #: Rows of this side carry `tag`, or `tag + 1` when their key is null.
    tag: int
    #: Name of the source stream, or None if another operator feeds this side.
    stream: str | None
    #: Stored columns and their lanes.
    columns: tuple[str, ...]
    lanes: tuple[str, ...]


@dataclass(frozen=True)
class ComparedKey:
    """Stored columns of the two sides whose values must be equal."""

    left: str
    right: str
    #: Null equals null.
    null_safe: bool = False


@dataclass(frozen=True)
class Comparison:
    """A column of the joined row compared with another, or with a whole number; null is never true."""

    left: str
    operator: str
    right: str | int


@dataclass(frozen=True)
class OutputColumn:
    """One column of the joined row: from the left row, the right row, or (keys) whichever exists.

    `left` and `right` name stored columns; TIME stands for the event time. REPAIRED comes from neither.
    """

    name: str
    left: str | None
    right: str | None


@dataclass(frozen=True)
class MatchLayout:
    """The parts of a match that are the same in every batch."""

    operator: str
    #: Name of the source stream, or None where another operator feeds it.
    stream: str | None
    #: The columns that queries use, as axes of the data space.
    axes: tuple[Axis, ...]
    #: Arrow schema of the output, serialised: the row's columns, QUERY_NAME, perhaps TIME, and REPORT last.
    schema: bytes
    #: The event-time column, which is sent as TIME only; None if there is none.
    time: str | None = None


@dataclass(frozen=True)
class WindowResult:
    """One result column: its formula, and the partial columns it reads."""

    name: str
    final: str
    columns: tuple[str, ...]
    #: The quantiles, if the formula computes any.
    percentages: tuple[float, ...] = ()


@dataclass(frozen=True)
class UdafLayout:
    """A user-defined aggregate; only workers unpickle its functions."""

    udaf: Udaf
    #: Arrow schema of a state, serialised: a column per field.
    state: bytes
    #: The same as recorded in checkpoints.
    declared: str


@dataclass(frozen=True)
class WindowLayout:
    """The parts of a window aggregate that are the same in every batch."""

    operator: str
    #: Name of the source stream, or None where another operator feeds it.
    stream: str | None
    spec: WindowSpec | RowsSpec
    by: tuple[str, ...]
    #: Partials with their columns; aggregates share equal partials.
    parts: tuple[tuple[AggregatePart, tuple[str, ...]], ...]
    results: tuple[WindowResult, ...]
    partitions: int
    #: Arrow schema of the output, serialised; its last column is REPORT.
    schema: bytes
    #: User-defined aggregates, by the names of their results.
    udafs: Mapping[str, UdafLayout] = field(default_factory=dict)
    #: Approximate: rows may be sampled, and results have intervals.
    approximate: bool = False
    #: For single rows, by partial: the column to read it from, or its constant value. Other partials are sent
    #: as columns of their own.
    carried: Mapping[str, str | int] = field(default_factory=dict)
    how: str = "window"

    @property
    def time_spec(self) -> WindowSpec:
        """Its time windows, if it has such."""
        return cast(WindowSpec, self.spec)

    @property
    def partials(self) -> tuple[str, ...]:
        return tuple(name for _, names in self.parts for name in names)

    @property
    def makes_states(self) -> bool:
        """Whether rows become states of a user-defined aggregate before they are stored."""
        return any(part.merge is Merge.STATES for part, _ in self.parts)

    @property
    def sides(self) -> tuple[SideLayout, SideLayout]:
        """As in a join whose other side has no input."""
        return SideLayout(0, self.stream, (), ()), SideLayout(0, None, (), ())


@dataclass(frozen=True)
class JoinLayout:
    """The parts of a join that are the same in every batch."""

    operator: str
    how: str
    within: Within | Tumbling | Unbounded
    partitions: int
    left: SideLayout
    right: SideLayout
    #: Stored columns to compare on every candidate pair; empty if codes cannot collide.
    verify: tuple[ComparedKey, ...]
    output: tuple[OutputColumn, ...]
    #: Arrow schema of the output, serialised; its last column is REPORT.
    schema: bytes
    #: True: Spark still has to evaluate a residual condition, so pairs carry references to their rows.
    residual: bool = False
    #: Condition on pairs besides equal keys and close times.
    condition: Condition | None = None
    #: There is no key: any instance may store a row, and new rows probe on every instance.
    spread: bool = False
    #: Result rows carry CELL.
    cells: bool = False
    #: What a pair must fulfil to be returned, if tasks evaluate the residual condition.
    shown: tuple[Comparison, ...] = ()

    @property
    def sides(self) -> tuple[SideLayout, SideLayout]:
        return (self.left, self.right)

    @property
    def preserved(self) -> tuple[bool, bool]:
        """Per side: whether unmatched rows are emitted."""
        return (self.how in ("left", "full", "left_anti"), self.how in ("right", "full"))

    @property
    def tracked(self) -> tuple[bool, bool]:
        """Per side: whether the state tracks which rows have matched."""
        left, right = self.preserved
        return (left or self.how == "left_semi", right)

    @property
    def emits_pairs(self) -> bool:
        return self.how not in ("left_semi", "left_anti")
