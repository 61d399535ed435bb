"""What a batch asks of the state of an operator: the existing pieces, and what to do with them."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.model.pieces import Piece
from tidegate.model.routing import Cut, Routing


@dataclass(frozen=True)
class StateOrder:
    """The part of a work order that every operator with state has."""

    store_url: str
    batch: int
    #: Rows below `settle_us` are settled now; rows below `settled_us` were settled before.
    settle_us: int
    settled_us: int
    routing: Routing
    pieces: tuple[Piece, ...]
    #: By instance: groups of piece names; the owned rows of a group are merged into one piece.
    merges: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] = ()
    #: Keys whose stored rows change their partition.
    cuts: tuple[Cut, ...] = ()
    #: This is the last batch: everything is settled, and no state is kept.
    flush: bool = False
    #: Different in every run: segments that a worker opened in an earlier run are not reused.
    run: str = ""

    @property
    def changes_state(self) -> bool:
        """Whether stored rows are released, merged or moved, even if no row arrives."""
        return self.flush or self.settle_us != self.settled_us or bool(self.merges or self.cuts)
