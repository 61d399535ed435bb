"""Where stored rows lie: byte ranges of segment files, and sorted runs of rows inside them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace


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
    #: First and last batch that rows came in.
    batches: tuple[int, int]
    #: Rows whose key is null: never probed, kept for the outer side only.
    keyless: bool
    partitions: tuple[int, ...]
    bounds: tuple[int, ...]
    data: ByteRange
    #: Matched bit per row; one blob per instance that ever wrote one.
    matched: Mapping[str, ByteRange] = field(default_factory=dict)
    #: No rows to join, but the identities of rows that found a match at an instance that does not store
    #: them; see worker/runtime/marks.py.
    marks: bool = False

    @property
    def first_batch(self) -> int:
        return self.batches[0]

    @property
    def last_batch(self) -> int:
        return self.batches[1]

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
