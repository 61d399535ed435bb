"""Turns assignments into the routing of the next batch: one for both sides, or one for each.

One assignment: both sides are co-located (a row is stored where it probes). Two: the biclique of the papers,
left rows on the first instances, right rows on the following ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidegate.errors import StateError
from tidegate.model.pieces import Piece
from tidegate.model.routing import Cut, Placement, Routing
from tidegate.model.times import LEFT, RIGHT
from tidegate.route.assignment import Assignment
from tidegate.route.moves import first_placement, rearranged


def first_routing(wanted: Sequence[Assignment]) -> Routing:
    """The routing of a query's first batch."""
    instances = sum(one.instances for one in wanted)
    left = first_placement(wanted[LEFT])
    apart = first_placement(wanted[RIGHT], shift=wanted[LEFT].instances) if len(wanted) > 1 else None
    return Routing(0, instances, left, apart)


def rerouted(
    current: Routing, wanted: Sequence[Assignment], operator: str, pieces: Iterable[Piece]
) -> tuple[Routing, tuple[Cut, ...]]:
    """The routing for this assignment, and the keys that must be cut out of stored rows for it."""
    check_topology(current, len(wanted))
    held = held_partitions(operator, pieces)
    both = held[LEFT] | held[RIGHT]
    together = current.apart is None
    left, cuts = rearranged(current.left, wanted[LEFT], both if together else held[LEFT], LEFT)
    apart: Placement | None = None
    if current.apart is not None:
        shift = wanted[LEFT].instances
        apart, more = rearranged(current.apart, wanted[RIGHT], held[RIGHT], RIGHT, shift)
        cuts += more
    instances = sum(one.instances for one in wanted)
    changed = Routing(current.version + 1, instances, left, apart)
    if (changed.instances, changed.left, changed.apart) == (current.instances, current.left, current.apart):
        return current, ()
    return changed, cuts


def check_topology(current: Routing, groups: int) -> None:
    """Refuse one group of instances where the checkpoint has two, or the other way round."""
    if (current.apart is None) != (groups == 1):
        raise StateError(
            "The topology of a join cannot change while it has state",
            code="BALANCE_TOPOLOGY_CHANGED",
            got="'biclique' in place of 'together', or the other way round",
            do="Give tg.Balance(topology=…) as the checkpoint was started with, or start with a new "
            "checkpoint",
        )


def held_partitions(operator: str, pieces: Iterable[Piece]) -> tuple[set[int], set[int]]:
    """Per side: the partitions that stored rows are in."""
    held: tuple[set[int], set[int]] = (set(), set())
    for piece in pieces:
        if piece.operator == operator and not piece.marks:
            held[piece.side].update(piece.partitions)
    return held
