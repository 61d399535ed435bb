"""What a batch asks of the state of an operator: which pieces there are, and what becomes of them."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.model.pieces import Piece
from tidegate.model.routing import Cut, Routing


@dataclass(frozen=True)
class StateOrder:
    """The part of a work order that every operator with state has."""

    store_url: str
    batch: int
    #: What the watermark frees below `settle_us` is settled now, what lies below `settled_us` was before.
    settle_us: int
    settled_us: int
    routing: Routing
    pieces: tuple[Piece, ...]
    #: By instance: groups of piece names; what the instance owns of a group becomes one piece.
    merges: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] = ()
    #: Keys whose stored rows change their partition.
    cuts: tuple[Cut, ...] = ()
    #: Nothing follows: everything is settled, and no state is kept.
    flush: bool = False
    #: Different in every run: what a worker opened for an earlier run is not trusted in the next.
    run: str = ""
