"""Where rows lie and who looks at them, as small values: places, placements, routing, cuts.

    key ──▶ place (its own, or its base partition's) ──▶ partition(s) ──▶ instance(s)

A *partition* is a set of stored rows with a number; every stored row is in exactly one, and every partition
belongs to one instance. Base partitions 0 … P-1 are ranges of key codes. Further numbers belong to keys that
have a place of their own and to base partitions that are shared. A *place* says for a key which partitions
take in its new rows (each row goes to one of them, by lot) and which ones its new rows must look at.

A key on several instances stands in a *grid*, which finds every pair once and copies few rows:

               column 0    column 1         a left row takes a row of the grid, a right row a column, by lot
    row 0         ■           ■             each is stored by one instance there and looks at all of them
    row 1         ■           ■             the one instance that both go to finds the pair
    row 2         ■           ■

For that, the instances of a row see all left rows that are stored in it, those of a column all right rows:
files are everybody's to read. One column: left rows go to one instance each, right ones to all, which suits a
key that is hot on the left. One row: the other way round.

Moving a partition to another instance is a change of the table. Moving a single key takes a *cut*: rows that
lie in one partition are given to others. Both happen between two batches, so nothing is in flight.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

#: Owner of a partition number that is not in use.
NOBODY = -1


@dataclass(frozen=True)
class Place:
    """Where the rows of a key (or of a base partition) lie."""

    #: Partitions that take in new rows.
    stores: tuple[int, ...]
    #: Partitions that may hold rows: the same, and those that were left and still have older rows.
    #: Guarantee: each lies on an instance that also has one of `stores`.
    holds: tuple[int, ...]
    #: Columns of the grid that `stores` stand in, row by row. 0: no grid, every row looks everywhere.
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
        """The instances of a place in groups: a new row of one side goes to all of one group.

        What that side has stored within a group is seen by all of the group. Without a grid there is one
        group, and each instance sees its own.
        """
        if not place.columns:
            return (self.on(place),)
        cells = [self.table[p] for p in place.stores]
        rows = [cells[first : first + place.columns] for first in range(0, len(cells), place.columns)]
        return tuple(map(tuple, zip(*rows, strict=True) if side else rows))

    def lent(self, place: Place, side: int, instance: int) -> frozenset[int]:
        """Partitions of one side that an instance sees as one of a group, its own among them."""
        if not place.columns:
            return frozenset()
        near = {one for group in self.groups(place, side) if instance in group for one in group}
        return frozenset(p for p in place.holds if self.table[p] in near)

    def lending(self, side: int) -> frozenset[int]:
        """Partitions of one side that more than their owner see."""
        wide = [place for place in self.places if place.columns and len(self.groups(place, side)[0]) > 1]
        return frozenset(partition for place in wide for partition in place.holds)

    def in_one_column(self) -> Placement:
        """The same, with a grid of one column for every place: no left row goes to two instances."""
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
        """Do rows of any place lie on several instances?"""
        return any(len(self.on(place)) > 1 for place in self.places)


@dataclass(frozen=True)
class Routing:
    """Where the rows of both sides lie. Version 0 is the first of a query; every change makes a new one.

    Co-located: both sides have one placement, so that a row is stored where it looks for partners.
    Biclique: each side has its own, on instances of its own.
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
        """May a row be needed by more than one instance?"""
        return self.apart is not None or self.left.scattered


def together(version: int, instances: int, table: tuple[int, ...]) -> Routing:
    """Both sides by one table of base partitions."""
    return Routing(version, instances, Placement(table))


@dataclass(frozen=True)
class Cut:
    """Rows of a key that change their partition in one batch.

    In every stored run, the rows of the key in each of `sources` are cut, in the order they stand in: the
    first kept / of of them stay, the others go to `targets` in equal parts.
    """

    side: int
    code: int
    sources: tuple[int, ...]
    targets: tuple[int, ...]
    kept: int = 0
    of: int = 1
