"""Determines which instances get a copy of a new row, and what each does with it.

    store    one instance keeps the row: hash sampling picks one of the partitions that its place stores to
    probe    instances that together hold all possible partners probe for it, and each pair is found by one
    meet     new left rows find new right rows here, although these are stored elsewhere

In the grid of a key (`model/routing.py`) a left row goes to all instances of a grid row, a right row to all
of a column. A pair is found where the two cross: by the later row, because that instance holds the earlier
one; within one batch by the left row. Without a grid a row goes to all instances. A pair is then found
where the earlier row is stored, within one batch where the right one is. A left row of a semi join must be
emitted once, however many partners it has, so it probes one instance only: its grids have one column.

`driver/frames/routing_frames.py` implements the same in Spark, and is tested against a plain loop over rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from tidegate.model.routing import Place, Placement, Routing
from tidegate.model.times import RIGHT

#: What an instance does with its copy of a row: bits of a role.
STORE, PROBE, MEET = 1, 2, 4


class TargetGroup(NamedTuple):
    """Instances that a row goes to, and their role; one of them stores the row in addition."""

    instances: tuple[int, ...]
    role: int


@dataclass(frozen=True)
class Tables:
    """The targets of rows of one side. Places are numbered: base partitions first, then keys by code.

    A row takes the entry `number % length` of each list of its place, where `number` is a hash of the row.
    Guarantee: the instance that stores the row is in the group that it takes from `own`.
    """

    #: Codes of the keys with a place of their own on this side, ascending.
    codes: tuple[int, ...]
    #: Per place of this side: the instances that store new rows.
    stores: tuple[tuple[int, ...], ...]
    #: Per place of this side: groups of which a row goes to one.
    own: tuple[tuple[TargetGroup, ...], ...]
    #: Per place of the other side: groups of which a row goes to one as well. Empty: both sides lie together.
    other: tuple[tuple[TargetGroup, ...], ...]

    @classmethod
    def of(cls, routing: Routing, side: int, partitions: int, *, semi: bool = False) -> Tables:
        sides = [placement.in_one_column() if semi else placement for placement in routing.sides]
        mine, other = sides[side], sides[1 - side]
        codes, places = _places(mine, partitions)
        apart = routing.apart is not None
        probed = _places(other, partitions)[1] if apart else ()
        return cls(
            codes,
            tuple(_stores(mine, place, side) for place in places),
            tuple(_own(mine, place, side, apart) for place in places),
            tuple(tuple(TargetGroup(one, PROBE) for one in other.groups(place, side)) for place in probed),
        )


def _places(placement: Placement, partitions: int) -> tuple[tuple[int, ...], list[Place]]:
    codes = tuple(sorted(placement.keys))
    return codes, [*map(placement.base, range(partitions)), *(placement.keys[code] for code in codes)]


def _stores(placement: Placement, place: Place, side: int) -> tuple[int, ...]:
    if not place.columns:
        return tuple(placement.table[p] for p in place.stores)
    # The first of every group, then the second of every group, and so on: one number then picks both.
    return tuple(chain(*zip(*placement.groups(place, side), strict=True)))


def _own(placement: Placement, place: Place, side: int, apart: bool) -> tuple[TargetGroup, ...]:
    meeting = MEET if side == RIGHT and place.columns else 0
    if apart and not meeting:
        return tuple(TargetGroup((one,), 0) for one in _stores(placement, place, side))
    role = meeting if apart else meeting | PROBE
    return tuple(TargetGroup(one, role) for one in placement.groups(place, side))
