"""What passes between a match, its sifter and the controller: small values, plain JSON.

A match tries rows against queries (`worker/match/task.py`); its sifter stands in front of it and drops rows
when there is no time for all (`sift/`, `driver/frames/sifter_frames.py`); `control/actuators/sifting.py`
decides how many.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from tidegate.model.pieces import ByteRange, Piece

if TYPE_CHECKING:
    pass


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
    sample: Mapping[str, Any] = field(default_factory=dict)
    #: File of results that wait for the sinks, relative to the state; None where Spark itself has them.
    staged: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {"match": True, **asdict(self)}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> MatchReport:
        fields = {name: value for name, value in raw.items() if name != "match"}
        return cls(**{**fields, "kept": tuple(raw["kept"])})


def is_match_report(raw: Mapping[str, Any]) -> bool:
    """Reports of joins and of matches come back in one column."""
    return "match" in raw


@dataclass(frozen=True)
class PartitionLoad:
    """What one batch did in one base partition of one operator, at one instance."""

    partition: int
    #: New rows that were stored, left and right.
    arrived: tuple[int, int] = (0, 0)
    probed: int = 0
    comparisons: int = 0
    matches: int = 0

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> PartitionLoad:
        return cls(**{**raw, "arrived": tuple(raw["arrived"])})


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

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> KeyLoad:
        return cls(raw["code"], tuple(raw["stored"]), tuple(raw["arrived"]), raw["comparisons"])


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

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Looks:
        by_age = {name: tuple(numbers) for name, numbers in raw.items() if name != "rows"}
        return cls(**{**by_age, "rows": raw["rows"], "sampled": tuple(map(tuple, raw["sampled"]))})


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

    def to_json(self) -> dict[str, Any]:
        # By hand: `asdict` copies all there is, and every task would pay for that in every batch.
        return {
            **vars(self),
            "partitions": [vars(load) for load in self.partitions],
            "added": [piece.to_json() for piece in self.added],
            "matched": {name: vars(bits) for name, bits in self.matched.items()},
            "looks": [vars(looks) for looks in self.looks],
            "keys": [vars(key) for key in self.keys],
            "paid": vars(self.paid),
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> TaskReport:
        pairs = ("offered", "late", "rejected", "keyless", "seen_us", "merged", "dropped", "stale", "strata")
        return cls(
            **{
                **raw,
                **{name: tuple(raw[name]) for name in pairs},
                "partitions": tuple(map(PartitionLoad.from_json, raw["partitions"])),
                "added": tuple(Piece.from_json(p) for p in raw["added"]),
                "matched": {k: ByteRange(**v) for k, v in raw["matched"].items()},
                "looks": tuple(Looks.from_json(one) for one in raw["looks"]),
                "recut": {k: tuple(map(tuple, v)) for k, v in raw["recut"].items()},
                "keys": tuple(map(KeyLoad.from_json, raw["keys"])),
                "paid": Paid(**raw["paid"]),
            }
        )


@dataclass(frozen=True)
class Observed:
    """What was seen of one stream, or in front of one operator, in one batch."""

    offered: int
    rejected: int
    seen_us: int | None
