"""Where rows are stored and which instances probe them: places, placements, routing, cuts.

    key ──▶ place (its own, or its base partition's) ──▶ partition(s) ──▶ instance(s)

A *partition* is a numbered set of stored rows; every stored row is in exactly one, and every partition
belongs to one instance. Base partitions 0 … P-1 are ranges of key codes. Further numbers belong to keys with
their own place and to shared base partitions. A *place* says which partitions store the new rows of a key
(one per row, by hash sampling) and which ones its new rows probe.

A key on several instances has a *grid*, which finds every pair once and copies few rows:

               column 0    column 1         hashing gives a left row a row of the grid, a right row a column
    row 0         ■           ■             one instance there stores it, and it probes on all of them
    row 1         ■           ■             the one instance that gets both rows finds the pair
    row 2         ■           ■

For that, the instances of a grid row read all left rows stored in it, those of a column all right rows, from
shared files. With one column, left rows go to one instance each and right ones to all, which suits a key that
is hot on the left; with one row, the other way round.

Moving a partition to another instance changes the table. Moving a single key needs a *cut*: its rows in one
partition are given to others. Both happen between two batches, when nothing is in flight.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

#: Owner of a partition number that is not in use.
NOBODY = -1


@dataclass(frozen=True)
class Place:
    """Where the rows of a key (or of a base partition) lie."""

    #: Partitions that store new rows.
    stores: tuple[int, ...]
    #: Partitions that may hold rows: the same, and former ones that still have older rows.
    #: Guarantee: each lies on an instance that also has one of `stores`.
    holds: tuple[int, ...]
    #: Columns of the grid of `stores`, row by row. 0: no grid, every row probes all partitions.
    columns: int = 0


@dataclass(frozen=True)
class Placement:
    """Where the rows of one side lie."""

    #: Partition → instance: base partitions first. NOBODY: the number is free.
    table: tuple[int, ...]
    #: Base partitions that do not simply lie in the partition of their number.
    shared: Mapping[int, Place] = field(default_factory=dict)
    #: Keys with a place of their own, by code.
    keys: Mapping[int, Place] = field(default_factory=dict)

    def owned_by(self, instance: int) -> frozenset[int]:
        """The partitions of one instance."""
        return frozenset(p for p, owner in enumerate(self.table) if owner == instance)

    def base(self, partition: int) -> Place:
        """The place of a base partition."""
        return self.shared.get(partition) or Place((partition,), (partition,))

    def on(self, place: Place) -> tuple[int, ...]:
        """The instances that a place lies on, ascending."""
        return tuple(sorted({self.table[p] for p in place.holds}))

    def groups(self, place: Place, side: int) -> tuple[tuple[int, ...], ...]:
        """The instances of a place in groups: a new row of one side goes to all instances of one group.

        All instances of a group see what that side has stored in the group. Without a grid there is one
        group, and each instance sees its own rows.
        """
        if not place.columns:
            return (self.on(place),)
        cells = [self.table[p] for p in place.stores]
        rows = [cells[first : first + place.columns] for first in range(0, len(cells), place.columns)]
        return tuple(map(tuple, zip(*rows, strict=True) if side else rows))

    def lent(self, place: Place, side: int, instance: int) -> frozenset[int]:
        """Partitions of one side that an instance sees as a member of a group, its own included."""
        if not place.columns:
            return frozenset()
        near = {one for group in self.groups(place, side) if instance in group for one in group}
        return frozenset(p for p in place.holds if self.table[p] in near)

    def lending(self, side: int) -> frozenset[int]:
        """Partitions of one side that other instances than their owner see."""
        wide = [place for place in self.places if place.columns and len(self.groups(place, side)[0]) > 1]
        return frozenset(partition for place in wide for partition in place.holds)

    def in_one_column(self) -> Placement:
        """The same with a grid of one column for every place: no left row goes to two instances."""
        shared, keys = (
            {name: replace(place, columns=1) for name, place in places.items()}
            for places in (self.shared, self.keys)
        )
        return Placement(self.table, shared, keys)

    @property
    def places(self) -> tuple[Place, ...]:
        """All places that are not just the base partition of one number."""
        return (*self.shared.values(), *self.keys.values())

    @property
    def scattered(self) -> bool:
        """Whether rows of any place are stored on several instances."""
        return any(len(self.on(place)) > 1 for place in self.places)


@dataclass(frozen=True)
class Routing:
    """Where the rows of both sides are stored. Version 0 is the first of a query; every change makes a new
    one.

    Co-located: both sides have one placement, so that a row is stored where it probes. Biclique: each side
    has its own placement, on its own instances.
    """

    version: int
    instances: int
    left: Placement
    #: None: where the left rows lie.
    apart: Placement | None = None

    @property
    def right(self) -> Placement:
        return self.left if self.apart is None else self.apart

    @property
    def sides(self) -> tuple[Placement, Placement]:
        return (self.left, self.right)

    @property
    def scattered(self) -> bool:
        """Whether a row may be needed by more than one instance."""
        return self.apart is not None or self.left.scattered


def together(version: int, instances: int, table: tuple[int, ...]) -> Routing:
    """Both sides by one table of base partitions."""
    return Routing(version, instances, Placement(table))


@dataclass(frozen=True)
class Cut:
    """Rows of a key that change their partition in one batch.

    In every stored run, the rows of the key in each of `sources` are cut in their order: the first kept / of
    of them stay, the others go to `targets` in equal parts.
    """

    side: int
    code: int
    sources: tuple[int, ...]
    targets: tuple[int, ...]
    kept: int = 0
    of: int = 1
