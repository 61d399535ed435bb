"""Which instances get a copy of a new row, and what each does with it.

    store    one instance keeps the row: by lot one of the partitions that its place stores to
    probe    instances that together see all that may be partners look for them, each pair being seen by one
    meet     new left rows find new right rows here, though those are stored elsewhere

In the grid of a key (`model/routing.py`) a left row goes to all instances of a row, a right row to all of a
column. A pair is found where the two cross: by the later row, for the instance sees the earlier one; in one
batch by the left row. Without a grid a row goes to all instances: a pair is found where the earlier row is
stored, in one batch where the right one is. A left row of a semi join must come out once, however many
partners it has, so it looks at one instance only: its grids have one column.

`driver/frames/routing_frames.py` says it in Spark's language, and is tested against a plain loop over rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from tidegate.model.routing import Place, Placement, Routing
from tidegate.model.times import RIGHT

#: What an instance does with its copy of a row: bits of a role.
STORE, PROBE, MEET = 1, 2, 4


class Group(NamedTuple):
    """Instances that a row goes to, and what they do with it; that one of them stores it comes on top."""

    instances: tuple[int, ...]
    role: int


@dataclass(frozen=True)
class Tables:
    """Where rows of one side go. Places are numbered: base partitions first, then keys by ascending code.

    A row takes the entry `lot % length` of each list of its place. Guarantee: the one that stores it is in
    the group that it takes of `own`.
    """

    #: Codes of the keys with a place of their own on this side, ascending.
    codes: tuple[int, ...]
    #: Per place of this side: the instances that take in new rows.
    stores: tuple[tuple[int, ...], ...]
    #: Per place of this side: groups of which a row goes to one.
    own: tuple[tuple[Group, ...], ...]
    #: Per place of the other side: groups of which a row goes to one as well. Empty: both sides lie together.
    other: tuple[tuple[Group, ...], ...]

    @classmethod
    def of(cls, routing: Routing, side: int, partitions: int, *, semi: bool = False) -> Tables:
        sides = [placement.in_one_column() if semi else placement for placement in routing.sides]
        mine, other = sides[side], sides[1 - side]
        codes, places = _places(mine, partitions)
        apart = routing.apart is not None
        looks = _places(other, partitions)[1] if apart else ()
        return cls(
            codes,
            tuple(_stores(mine, place, side) for place in places),
            tuple(_own(mine, place, side, apart) for place in places),
            tuple(tuple(Group(one, PROBE) for one in other.groups(place, side)) for place in looks),
        )


def _places(placement: Placement, partitions: int) -> tuple[tuple[int, ...], list[Place]]:
    codes = tuple(sorted(placement.keys))
    return codes, [*map(placement.base, range(partitions)), *(placement.keys[code] for code in codes)]


def _stores(placement: Placement, place: Place, side: int) -> tuple[int, ...]:
    if not place.columns:
        return tuple(placement.table[p] for p in place.stores)
    # The first of every group, then the second of every group, and so on: so one lot picks both.
    return tuple(chain(*zip(*placement.groups(place, side), strict=True)))


def _own(placement: Placement, place: Place, side: int, apart: bool) -> tuple[Group, ...]:
    met = MEET if side == RIGHT and place.columns else 0
    if apart and not met:
        return tuple(Group((one,), 0) for one in _stores(placement, place, side))
    role = met if apart else met | PROBE
    return tuple(Group(one, role) for one in placement.groups(place, side))
