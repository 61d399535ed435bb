"""What passes between a match, its sifter and the controller: small values, plain JSON.

A match tries rows against queries (`worker/match/task.py`); its sifter stands in front of it and drops rows
when there is no time for all (`sift/`, `driver/frames/sifter_frames.py`); `control/actuators/sifting.py`
decides how many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tidegate.model.codec import decode, encode
from tidegate.model.pieces import ByteRange, Piece
from tidegate.model.samples import Sampled


@dataclass(frozen=True)
class MatchReport:
    """The one telemetry row of a task of a match."""

    operator: str
    #: Rows that reached the task: on time, late, and too far ahead.
    received: int
    late: int
    rejected: int
    #: Newest usable event time among them.
    seen_us: int | None
    #: Rows that satisfy a query, and (row, query) pairs.
    matched: int
    emitted: int
    cpu_seconds: float
    #: Rows by region that the sifter let through, rows of no region last; empty without a sifter.
    kept: tuple[int, ...] = ()
    #: Rows that passed as samples; not among `kept`.
    sampled: int = 0
    #: Rows that were tried against the queries.
    tried: int = 0
    sample: Sampled | None = None
    #: File of results that wait for the sinks, relative to the state; None where Spark itself has them.
    staged: str | None = None


@dataclass(frozen=True)
class PartitionLoad:
    """What one batch did in one base partition of one operator, at one instance."""

    partition: int
    #: New rows that were stored, left and right.
    arrived: tuple[int, int] = (0, 0)
    probed: int = 0
    comparisons: int = 0
    matches: int = 0


@dataclass(frozen=True)
class KeyLoad:
    """What one batch did with one key at one instance; only of keys that are watched."""

    code: int
    #: Rows in the state after the batch, left and right.
    stored: tuple[int, int]
    #: New rows that were stored, left and right.
    arrived: tuple[int, int]
    #: Stored rows that were looked at: pairs, where the key alone decides.
    comparisons: int


@dataclass(frozen=True)
class Looks:
    """Pairs of a new row and a stored row of one window, by age of basic window."""

    #: All pairs that the window condition allows; an estimate where rows are found by key.
    in_reach: tuple[int, ...]
    #: Pairs that rows looked at as the plan says, and pairs that matched.
    chosen: tuple[int, ...]
    chosen_matches: tuple[float, ...]
    #: The same for rows that explore.
    explored: tuple[int, ...]
    explored_matches: tuple[float, ...]
    #: Where some rows are a sample of all: rows that looked, those of the sample by group, and the matches of
    #: these by age and group (see control/receipts/recall.py).
    rows: int = 0
    sample: tuple[int, ...] = ()
    sampled: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Paid:
    """Owed work that an instance did in one batch; no other count of its report has it, but `emitted`."""

    comparisons: int = 0
    matches: int = 0
    cpu_seconds: float = 0.0


@dataclass(frozen=True)
class TaskReport:
    """The one telemetry row of an operator's instance in a batch, with the state changes it made."""

    operator: str
    instance: int
    #: Per side: rows offered, late, rejected (no usable time), keyless; highest event time or None.
    offered: tuple[int, int]
    late: tuple[int, int]
    rejected: tuple[int, int]
    keyless: tuple[int, int]
    seen_us: tuple[int | None, int | None]
    stored: int
    probed: int
    comparisons: int
    matches: int
    emitted: int
    cpu_seconds: float
    bytes_read: int
    bytes_written: int
    partitions: tuple[PartitionLoad, ...]
    added: tuple[Piece, ...]
    #: Names of pieces whose rows (of this instance's partitions) were rewritten into `added`.
    merged: tuple[str, ...]
    #: Piece name → this instance's new matched bits.
    matched: Mapping[str, ByteRange]
    #: File of results that wait for the sinks, relative to the state; None where Spark itself has them.
    staged: str | None = None
    #: Per side: rows that the plan did not let in; and others that were too old for it.
    dropped: tuple[int, int] = (0, 0)
    stale: tuple[int, int] = (0, 0)
    #: Per window (left, right): what was looked at; empty where nobody asks.
    looks: tuple[Looks, ...] = ()
    #: Piece name → (partition, start, stop) of all its rows, where the plan cut keys out of it.
    recut: Mapping[str, tuple[tuple[int, int, int], ...]] = field(default_factory=dict)
    #: Processor time that finding the rows of those keys took; not part of `cpu_seconds`.
    recut_seconds: float = 0.0
    #: Keys that make up much of the work.
    keys: tuple[KeyLoad, ...] = ()
    #: Where rows chose by content: comparisons that their looks are charged for, estimates included.
    charged: int = 0
    paid: Paid = Paid()
    #: Of approximate windows: rows that were kept, per stratum of groups.
    strata: tuple[int, ...] = ()
    #: Of `cpu_seconds`: what was spent on pairs, not on rows as they come and go.
    looking_seconds: float = 0.0
    #: Looks of new rows at stored runs that a key filter made unnecessary: their key is not there.
    spared: int = 0


@dataclass(frozen=True)
class _Line:
    """One of the two: reports of all operators come back in one column."""

    task: TaskReport | None = None
    match: MatchReport | None = None

    def __post_init__(self) -> None:
        if (self.task is None) == (self.match is None):
            raise ValueError("A report is that of a task or that of a match")


def report_text(report: TaskReport | MatchReport) -> str:
    """The report as a task sends it."""
    line = _Line(match=report) if isinstance(report, MatchReport) else _Line(task=report)
    return encode(line).decode()


def reports_in(texts: Iterable[str]) -> tuple[list[TaskReport], list[MatchReport]]:
    """The reports that tasks sent, those of matches apart."""
    lines = [decode(_Line, text) for text in texts]
    tasks = [line.task for line in lines if line.task is not None]
    return tasks, [line.match for line in lines if line.match is not None]


@dataclass(frozen=True)
class Observed:
    """What was seen of one stream, or in front of one operator, in one batch."""

    offered: int
    rejected: int
    seen_us: int | None
