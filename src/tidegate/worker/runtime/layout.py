"""How the rows of a join travel and are stored: plain descriptions, made once when a query starts.

All inputs of a query share one wide row, so that one scan and one shuffle carry them:

    tag    which port the row belongs to (twice its number, plus one for a row with a null key)
    time   event time in microseconds; BEGINNING_US for a row whose time cannot be used
    code   64-bit code of the key (XXH64); of a null key, any number that spreads rows
    l0, l1, …   lanes: one per column type and occurrence, shared by all ports

A stored row has `code`, `time`, `batch` and the columns of its side. The event-time column itself is not
stored: it is `time`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from tidegate.api.join_conditions import Condition
from tidegate.join.within import Tumbling, Unbounded, Within
from tidegate.sift.queries.axes import Axis
from tidegate.window.aggregate.aggregates import AggregatePart, Merge
from tidegate.window.aggregate.udaf import Udaf
from tidegate.window.spec import RowsSpec, WindowSpec

TAG, TIME, CODE, BATCH = "_tidegate_tag", "_tidegate_time", "_tidegate_code", "_tidegate_batch"
#: Tag of the rows, one per instance, that tell a task which instance it is: their code is the number. Where
#: several joins or passes meet in a union, Spark's task number will not do: tasks are numbered through.
MARKER = -2
#: Which instance a copy of a row is for, where each gets one; it does not reach the tasks.
INSTANCE = "_tidegate_instance"
#: What the instance does with its copy of a row (route/targets.py), where rows have several copies.
ROLE = "_tidegate_role"
#: Hash of all columns of a row: tells it from others with the same key and time, where copies of it must be
#: recognised or rows must have one order. Stored with the row.
ROW = "_tidegate_row"
#: The visible column that a match adds.
QUERY_ID = "query_id"
#: The visible column that a join adds where left out work is made up for: the batch that the row should have
#: come in, null in rows that came in time.
REPAIRED = "repaired_batch"
#: Carries one task report per operator and instance beside the result rows, null in every other row.
REPORT = "_tidegate_report"
#: Between the two steps of a join with a residual condition: where a pair's rows lie, and the verdict.
LEFT_RUN, LEFT_ROW = "_tidegate_left_run", "_tidegate_left_row"
RIGHT_RUN, RIGHT_ROW = "_tidegate_right_run", "_tidegate_right_row"
OK = "_tidegate_ok"
#: Which part of which window a pair was found in, where pairs differ in what they are worth.
CELL = "_tidegate_cell"
#: True in rows that pass the sifter whatever it says, so that the server sees what data is really like.
SAMPLE = "_tidegate_sample"
#: The hash that decides about a row, where the sifter is too large for Spark and the tasks decide.
HASH = "_tidegate_hash"
#: Of pane partials: a second code of the group, its pane, how many rows there are behind it, the newest time.
CHECK, PANE = "_tidegate_check", "_tidegate_pane"
ROWS, SEEN = "_tidegate_rows", "_tidegate_seen"
#: Of approximate windows: how likely a row of this group is kept, and how many rows each kept one stands for.
SHARE, WEIGHT = "_tidegate_share", "_tidegate_weight"


@dataclass(frozen=True)
class SideLayout:
    """One input of a join."""

    #: Rows of this side carry `tag`, or `tag + 1` when their key is null.
    tag: int
    #: Name of the source stream, or None where another operator feeds this side.
    stream: str | None
    #: Stored columns and the lane each one travels in.
    columns: tuple[str, ...]
    lanes: tuple[str, ...]


@dataclass(frozen=True)
class OutputColumn:
    """One column of the joined row: taken from the left row, or the right, or (keys) whichever is there.

    `left` and `right` name stored columns; TIME stands for the event time. REPAIRED is taken from neither.
    """

    name: str
    left: str | None
    right: str | None


@dataclass(frozen=True)
class MatchLayout:
    """Everything about a match that does not change from batch to batch."""

    operator: str
    #: Name of the source stream, or None where another operator feeds it.
    stream: str | None
    #: The columns that queries name, as axes of the space they live in.
    axes: tuple[Axis, ...]
    #: Arrow schema of the output, serialised: the row's columns, QUERY_ID, perhaps TIME, and REPORT last.
    schema: bytes
    #: The column of the row that is its event time, which travels as TIME alone; None where there is none.
    time: str | None = None


@dataclass(frozen=True)
class WindowResult:
    """One result column: its formula, and the partial columns that it takes."""

    name: str
    final: str
    columns: tuple[str, ...]
    #: Which quantiles, where the formula is about those.
    percentages: tuple[float, ...] = ()


@dataclass(frozen=True)
class UdafLayout:
    """A user-defined aggregate; only workers ever see its functions pickled."""

    udaf: Udaf
    #: Arrow schema of a state, serialised: a column per field.
    state: bytes
    #: The same as a checkpoint remembers it.
    declared: str


@dataclass(frozen=True)
class WindowLayout:
    """Everything about a window aggregate that does not change from batch to batch."""

    operator: str
    #: Name of the source stream, or None where another operator feeds it.
    stream: str | None
    spec: WindowSpec | RowsSpec
    by: tuple[str, ...]
    #: Parts of aggregates, each with its columns; those that aggregates share are there once.
    parts: tuple[tuple[AggregatePart, tuple[str, ...]], ...]
    results: tuple[WindowResult, ...]
    partitions: int
    #: Arrow schema of the output, serialised; its last column is REPORT.
    schema: bytes
    #: User-defined aggregates, by the names of their results.
    udafs: Mapping[str, UdafLayout] = field(default_factory=dict)
    #: Rows may be sampled: results have intervals.
    approximate: bool = False
    #: Of single rows, by partial: the column that it travels as, or the number that it is in every row. Those
    #: that are not named travel as themselves.
    carried: Mapping[str, str | int] = field(default_factory=dict)
    how: str = "window"

    @property
    def time_spec(self) -> WindowSpec:
        """Its windows of time, where it has such."""
        return cast(WindowSpec, self.spec)

    @property
    def partials(self) -> tuple[str, ...]:
        return tuple(name for _, names in self.parts for name in names)

    @property
    def makes_states(self) -> bool:
        """Do rows become states of a user-defined aggregate before they are stored?"""
        return any(part.merge is Merge.STATES for part, _ in self.parts)

    @property
    def sides(self) -> tuple[SideLayout, SideLayout]:
        """As of a join, whose other side nothing feeds."""
        return SideLayout(0, self.stream, (), ()), SideLayout(0, None, (), ())


@dataclass(frozen=True)
class JoinLayout:
    """Everything about a join that does not change from batch to batch."""

    operator: str
    how: str
    within: Within | Tumbling | Unbounded
    partitions: int
    left: SideLayout
    right: SideLayout
    #: Stored columns to compare on every candidate pair; empty where the code alone tells keys apart.
    verify: tuple[tuple[str, str], ...]
    output: tuple[OutputColumn, ...]
    #: Arrow schema of the output, serialised; its last column is REPORT.
    schema: bytes
    #: True: a residual condition is still to be judged, so pairs go out with their references.
    residual: bool = False
    #: What pairs must meet besides equal keys and close times.
    condition: Condition | None = None
    #: There is no key: rows lie anywhere, and new rows look for partners at every instance.
    spread: bool = False
    #: Result rows carry CELL.
    cells: bool = False

    @property
    def sides(self) -> tuple[SideLayout, SideLayout]:
        return (self.left, self.right)

    @property
    def preserved(self) -> tuple[bool, bool]:
        """Per side: does a lonely row come out?"""
        return (self.how in ("left", "full", "left_anti"), self.how in ("right", "full"))

    @property
    def tracked(self) -> tuple[bool, bool]:
        """Per side: must the state remember which rows have matched?"""
        left, right = self.preserved
        return (left or self.how == "left_semi", right)

    @property
    def emits_pairs(self) -> bool:
        return self.how not in ("left_semi", "left_anti")
