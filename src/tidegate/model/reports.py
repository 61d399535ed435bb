"""What tasks report to the driver: `TaskReport` of joins and windows, `MatchReport` of matches, as JSON text.

A match tries rows against queries (`worker/match/task.py`); the sifter in front of it drops rows when there
is no time for all (`sift/`, `driver/frames/sifter_frames.py`); `control/actuators/sifting.py` decides how
many.
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
    #: Rows by region that the sifter let through; empty without a sifter.
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
    #: Stored rows that were probed: pairs, where the key alone decides.
    comparisons: int


@dataclass(frozen=True)
class ProbeCounts:
    """Pairs of a new row and a stored row of one window, by age of basic window."""

    #: Candidate pairs: all that the window condition allows; an estimate where rows are found by key.
    candidates: tuple[int, ...]
    #: Pairs that were probed as the plan says, and pairs that matched.
    chosen: tuple[int, ...]
    chosen_matches: tuple[float, ...]
    #: The same for rows that explore.
    explored: tuple[int, ...]
    explored_matches: tuple[float, ...]
    #: Where some rows are a sample of all: rows that probed, those of the sample by group, and the matches of
    #: these by age and group (see control/receipts/recall.py).
    rows: int = 0
    sample: tuple[int, ...] = ()
    sampled: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Repaired:
    """Skipped pairs of earlier batches that an instance probed in this one.

    Of the other counts of its report, only `emitted` includes them.
    """

    comparisons: int = 0
    matches: int = 0
    cpu_seconds: float = 0.0


@dataclass(frozen=True)
class SideRows:
    """What became of the rows that came to an instance, left and right."""

    offered: tuple[int, int] = (0, 0)
    late: tuple[int, int] = (0, 0)
    #: Their time cannot be used.
    rejected: tuple[int, int] = (0, 0)
    keyless: tuple[int, int] = (0, 0)
    #: Not admitted by the plan; and others that were too old for it.
    dropped: tuple[int, int] = (0, 0)
    stale: tuple[int, int] = (0, 0)
    #: Highest event time, or None.
    seen_us: tuple[int | None, int | None] = (None, None)


@dataclass(frozen=True)
class WorkCounts:
    """What an instance did with rows and pairs."""

    stored: int = 0
    probed: int = 0
    comparisons: int = 0
    matches: int = 0
    #: Where rows chose by content: comparisons that their probes are charged for, estimates included.
    charged: int = 0
    #: Probes of stored runs that a key filter made unnecessary: their key is not there.
    spared: int = 0


@dataclass(frozen=True)
class TaskSeconds:
    """Processor time of an instance."""

    cpu: float = 0.0
    #: Of `cpu`: spent on pairs, not on rows as they come and go.
    probing: float = 0.0
    #: Spent on finding the rows of keys that the plan cuts out; not part of `cpu`.
    recut: float = 0.0


@dataclass(frozen=True)
class TaskMemory:
    """Memory of a task and of its worker, in bytes."""

    #: Rows as the task received them.
    received_bytes: int = 0
    #: The most anonymous memory that its worker was seen to have; 0 if the system does not say.
    peak_bytes: int = 0
    #: What it holds of received rows at a time; 0: unknown.
    room_bytes: int = 0


@dataclass(frozen=True)
class StateChange:
    """What an instance read and changed of the state."""

    bytes_read: int = 0
    bytes_written: int = 0
    added: tuple[Piece, ...] = ()
    #: Names of pieces whose rows (of this instance's partitions) were rewritten into `added`.
    merged: tuple[str, ...] = ()
    #: Piece name → this instance's new matched bits.
    matched: Mapping[str, ByteRange] = field(default_factory=dict)
    #: Piece name → (partition, start, stop) of all its rows, where the plan cut keys out of it.
    recut: Mapping[str, tuple[tuple[int, int, int], ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class TaskReport:
    """The one telemetry row of an operator's instance in a batch, with the state changes it made."""

    operator: str
    instance: int
    rows: SideRows = SideRows()
    work: WorkCounts = WorkCounts()
    seconds: TaskSeconds = TaskSeconds()
    state: StateChange = field(default_factory=StateChange)
    emitted: int = 0
    #: File of results that wait for the sinks, relative to the state; None where Spark itself has them.
    staged: str | None = None
    partitions: tuple[PartitionLoad, ...] = ()
    #: Keys that make up much of the work.
    keys: tuple[KeyLoad, ...] = ()
    #: Per window (left, right): what was probed; empty where nothing may be skipped.
    probes: tuple[ProbeCounts, ...] = ()
    repaired: Repaired = Repaired()
    #: Of approximate windows: rows that were kept, per stratum of groups.
    strata: tuple[int, ...] = ()
    memory: TaskMemory = TaskMemory()


@dataclass(frozen=True)
class _Line:
    """A report of either kind: reports of all operators come back in one column."""

    task: TaskReport | None = None
    match: MatchReport | None = None

    def __post_init__(self) -> None:
        if (self.task is None) == (self.match is None):
            raise ValueError("A report needs exactly one of task and match")


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
