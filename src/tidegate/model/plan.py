"""The small values that pass between stages, state and engine.

All are frozen, all become plain JSON and come back equal: what decides a batch (`Plan`) and what a batch
left behind (`Manifest`) must be readable by a person and by a later version. Times are UTC microseconds
since the epoch, as Python ints; names that hold a time end in `_us`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from tidegate.model.routing import Cut, Routing

#: Below every event time: the watermark of a stream that has shown no row yet.
BEGINNING_US = -(2**63)
#: Above every event time: the watermark that closes everything.
END_US = 2**63 - 1

LEFT, RIGHT = 0, 1
SIDES = ("left", "right")


@dataclass(frozen=True)
class ByteRange:
    """Where one blob lies: a range of an immutable file, with the checksum of exactly those bytes."""

    file: str
    offset: int
    length: int
    checksum: str


@dataclass(frozen=True)
class Piece:
    """Stored rows of one operator, side and slot: one sorted run inside one segment file.

    Rows are sorted by (code as unsigned, time). The partition of a row is monotone in its code, so the rows
    of one partition are one contiguous range, or two around a key that was cut out: partition
    `partitions[i]` has the rows `bounds[2 * i]:bounds[2 * i + 1]`. Which instance reads them is the routing
    table's affair, not the file's: a partition moves by name alone. A partition whose rows were rewritten
    elsewhere is taken off the list, and a piece without partitions is gone.
    """

    operator: str
    side: int
    #: Number of the slot (basic window) that all rows fall into; None where rows span several.
    slot: int | None
    #: How often the rows have been rewritten: merging pieces of level k gives one of level k + 1.
    level: int
    rows: int
    first_us: int
    last_us: int
    first_batch: int
    last_batch: int
    #: Rows whose key is null: never probed, kept for the outer side only.
    keyless: bool
    partitions: tuple[int, ...]
    bounds: tuple[int, ...]
    data: ByteRange
    #: Bit per row, set when the row has found a partner; one blob per instance that ever wrote one.
    matched: Mapping[str, ByteRange] = field(default_factory=dict)
    #: No rows to join, but the identities of rows that found a partner at an instance that does not store
    #: them; see worker/runtime/marks.py.
    marks: bool = False

    @property
    def name(self) -> str:
        """Identity of the piece: its place on disk, which is never used twice."""
        return f"{self.data.file}@{self.data.offset}"

    @property
    def ranges(self) -> list[tuple[int, int, int]]:
        """(partition, start, stop) of every range of rows."""
        return list(zip(self.partitions, self.bounds[::2], self.bounds[1::2], strict=True))

    def with_ranges(self, ranges: Iterable[tuple[int, int, int]]) -> Piece:
        """The same rows, in other partitions."""
        ranges = list(ranges)
        bounds = tuple(bound for _, start, stop in ranges for bound in (start, stop))
        return replace(self, partitions=tuple(label for label, _, _ in ranges), bounds=bounds)

    def slices(self, owned: Container[int]) -> list[tuple[int, int]]:
        """Row ranges of the owned partitions, neighbours joined."""
        ranges: list[tuple[int, int]] = []
        for i, partition in enumerate(self.partitions):
            if partition in owned:
                start, stop = self.bounds[2 * i], self.bounds[2 * i + 1]
                if ranges and ranges[-1][1] == start:
                    start = ranges.pop()[0]
                ranges.append((start, stop))
        return ranges

    def without(self, gone: Container[int]) -> Piece | None:
        """The piece less those partitions; None when nothing is left."""
        kept = [i for i, partition in enumerate(self.partitions) if partition not in gone]
        if not kept:
            return None
        bounds = tuple(b for i in kept for b in self.bounds[2 * i : 2 * i + 2])
        return replace(self, partitions=tuple(self.partitions[i] for i in kept), bounds=bounds)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Piece:
        return cls(
            **{
                **raw,
                "partitions": tuple(raw["partitions"]),
                "bounds": tuple(raw["bounds"]),
                "data": ByteRange(**raw["data"]),
                "matched": {k: ByteRange(**v) for k, v in raw["matched"].items()},
            }
        )


@dataclass(frozen=True)
class Skipping:
    """What one join leaves out in one batch. With all parts at 1 it leaves out nothing, and only counts."""

    #: r: the part of all work that is done.
    fraction: float
    #: Per window (left, right) and age of basic window: the newest part of it that new rows of the other
    #: side look at; see join/selective/reach.py.
    shares: tuple[tuple[float, ...], tuple[float, ...]]
    #: Rows that look at a part of every basic window, to learn what the others miss; and how large a part.
    explore_share: float = 0.0
    explore_depth: float = 1.0
    #: Rows that enter the join at all.
    keep_share: float = 1.0
    #: Per side: new rows below this time are stale and do not enter, because only the freshest fit.
    fresh_us: tuple[int, int] = (BEGINNING_US, BEGINNING_US)
    #: Per side: stored rows below this time are given up before their window ends.
    forget_us: tuple[int, int] = (BEGINNING_US, BEGINNING_US)
    #: Per side: the newest stored row when the plan was made; basic windows that end later are still filled.
    filled_us: tuple[int, int] = (END_US, END_US)
    #: The part of all work that rows, but for those that explore, spend where it is best for each of them, by
    #: content (join/selective/content_choice.py); the shares are 0 then. None: the shares say what they look at.
    content: float | None = None
    #: For people, since shares say it all: r of the left and the right window, and the order of their ages.
    fractions: tuple[float, float] = (1.0, 1.0)
    orders: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Skipping:
        left, right = (tuple(shares) for shares in raw["shares"])
        first, second = (tuple(order) for order in raw["orders"])
        named = ("fresh_us", "forget_us", "filled_us", "fractions")
        pairs = {name: tuple(raw[name]) for name in named if name in raw}
        return cls(**{**raw, **pairs, "shares": (left, right), "orders": (first, second)})


class OwedCell(NamedTuple):
    """Pairs of one batch's rows with one basic window, by age, that were left out. A tuple: they are many."""

    #: Side of the stored rows, and age of their basic window seen from the rows of the batch.
    window: int
    age: int
    #: An estimate where rows are found by key; with it, what the pairs are expected to give.
    comparisons: int
    matches: float
    #: Rows of the batch whose lot lies below this have been made up for.
    paid: float = 0.0


@dataclass(frozen=True)
class Debt:
    """Work that a join left out in one batch: rows of the batch × what was stored by then; join/selective/skipped_ranges.py."""

    operator: str
    batch: int
    #: What the plan of that batch said, and the seed that it drew lots with.
    skipping: Skipping
    seed: int
    #: Per side: first and last time of the stored rows that are needed to pay it.
    spans: tuple[tuple[int, int], tuple[int, int]]
    #: What is still owed.
    cells: tuple[OwedCell, ...]

    @property
    def comparisons(self) -> float:
        return sum((1 - cell.paid) * cell.comparisons for cell in self.cells)

    @property
    def matches(self) -> float:
        return sum((1 - cell.paid) * cell.matches for cell in self.cells)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Debt:
        left, right = ((span[0], span[1]) for span in raw["spans"])
        return cls(
            raw["operator"],
            raw["batch"],
            Skipping.from_json(raw["skipping"]),
            raw["seed"],
            (left, right),
            tuple(OwedCell(*cell) for cell in raw["cells"]),
        )


class PaidCell(NamedTuple):
    """A cell of a debt, for the rows of its batch whose lots lie in [since, until)."""

    window: int
    age: int
    since: float
    until: float


@dataclass(frozen=True)
class Payment:
    """What one batch makes up for of the debt of an earlier one."""

    batch: int
    cells: tuple[PaidCell, ...]

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Payment:
        return cls(raw["batch"], tuple(PaidCell(*cell) for cell in raw["cells"]))


@dataclass(frozen=True)
class Plan:
    """Everything that may differ from batch to batch, decided and written before the batch runs."""

    batch: int
    #: Wall clock at the moment of planning; the only clock that a batch may look at.
    now_us: int
    #: Per stream: rows older than this are late.
    watermarks_us: Mapping[str, int]
    #: Per operator: rows whose partners must be older than this are settled in this batch.
    settle_us: Mapping[str, int]
    #: Per operator: where rows lie, and who looks at them.
    routing: Mapping[str, Routing]
    #: Per operator and instance: groups of piece names; what the instance owns of a group becomes one piece.
    merges: Mapping[str, Mapping[str, tuple[tuple[str, ...], ...]]] = field(default_factory=dict)
    #: True: no row will ever follow, everything is settled after the batch.
    flush: bool = False
    #: True: after the rows, settle once more with the watermark that they moved.
    settle_after: bool = False
    #: When the run that made the plan began: silence of a stream before that does not count.
    awake_us: int = BEGINNING_US
    seed: int = 0
    #: Per operator that may skip work: what it leaves out.
    skipping: Mapping[str, Skipping] = field(default_factory=dict)
    #: Per operator: keys whose stored rows change their partition with this batch.
    cuts: Mapping[str, tuple[Cut, ...]] = field(default_factory=dict)
    #: Windows whose rows are shuffled as they are, because adding them up before would not make them fewer.
    by_row: tuple[str, ...] = ()
    #: Per match that may drop rows: the sifter in front of it, as JSON.
    sifters: Mapping[str, Any] = field(default_factory=dict)
    #: Per drop of windows: which were decided to go, and with which share, as JSON.
    dropping: Mapping[str, Any] = field(default_factory=dict)
    #: Per approximate window: how likely a row of each stratum is kept, and what was left out, as JSON.
    estimating: Mapping[str, Any] = field(default_factory=dict)
    #: What the routing was made from: where balancing wants rows to lie, and what it remembers.
    balance: Mapping[str, Any] = field(default_factory=dict)
    #: What is skipped is owed, and so many bytes may outlive their windows for it; None: it is lost.
    repair_bytes: int | None = None
    #: Per operator: owed work that this batch does.
    payments: Mapping[str, tuple[Payment, ...]] = field(default_factory=dict)
    #: True: after the rows, all that is owed is paid, because no other batch may come to do it.
    pay_all: bool = False

    def to_json(self) -> dict[str, Any]:
        return {**asdict(replace(self, routing={})), "routing": _routing_json(self.routing)}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Plan:
        return cls(
            **{
                **raw,
                "routing": {k: Routing.from_json(v) for k, v in raw["routing"].items()},
                "merges": {
                    operator: {i: tuple(map(tuple, groups)) for i, groups in by_instance.items()}
                    for operator, by_instance in raw["merges"].items()
                },
                "skipping": {k: Skipping.from_json(v) for k, v in raw.get("skipping", {}).items()},
                "cuts": {k: tuple(map(Cut.from_json, v)) for k, v in raw.get("cuts", {}).items()},
                "by_row": tuple(raw.get("by_row", ())),
                "payments": {k: tuple(map(Payment.from_json, v)) for k, v in raw.get("payments", {}).items()},
            }
        )


@dataclass(frozen=True)
class StreamClock:
    """What the engine knows of one source stream's time after a batch."""

    #: Highest event time seen; BEGINNING_US before the first row.
    seen_us: int
    #: Rows below this are late from the next batch on.
    watermark_us: int
    #: Wall clock of the last batch that brought rows of this stream.
    heard_us: int


@dataclass(frozen=True)
class Manifest:
    """What batch `batch` left behind; with its predecessor's pieces gone unless listed here."""

    batch: int
    #: Fingerprint of the flow (schemas, keys, windows): a restart with another flow is refused.
    flow: Mapping[str, Any]
    clocks: Mapping[str, StreamClock]
    #: Per operator: rows that are settled already; see Plan.settle_us.
    settled_us: Mapping[str, int]
    routing: Mapping[str, Routing]
    pieces: tuple[Piece, ...] = ()
    #: What the controllers have learnt, as they wrote it down.
    control: Mapping[str, Any] = field(default_factory=dict)
    #: Work that joins still owe, oldest first, and what was given up in this batch.
    debts: tuple[Debt, ...] = ()
    forgiven: tuple[Debt, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            **asdict(replace(self, pieces=(), routing={})),
            "routing": _routing_json(self.routing),
            "pieces": [p.to_json() for p in self.pieces],
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Manifest:
        return cls(
            batch=raw["batch"],
            flow=raw["flow"],
            clocks={k: StreamClock(**v) for k, v in raw["clocks"].items()},
            settled_us=dict(raw["settled_us"]),
            routing={k: Routing.from_json(v) for k, v in raw["routing"].items()},
            pieces=tuple(Piece.from_json(p) for p in raw["pieces"]),
            control=raw.get("control", {}),
            debts=tuple(map(Debt.from_json, raw.get("debts", ()))),
            forgiven=tuple(map(Debt.from_json, raw.get("forgiven", ()))),
        )


def _routing_json(routing: Mapping[str, Routing]) -> dict[str, Any]:
    return {name: one.to_json() for name, one in routing.items()}


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
