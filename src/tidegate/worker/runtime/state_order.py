"""What a batch asks of the state of an operator: the existing pieces, and what to do with them.

few pieces     the order has all of them                          StateOrder(pieces=…, merges=…)
many pieces    it names a file with a list for each instance      StateOrder(lists=…)
               a task replaces it by that of its instance         order.of(instance)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from tidegate.model.pieces import Piece
from tidegate.model.routing import Cut, Routing
from tidegate.state.store.store import Store, open_store
from tidegate.worker.runtime.piece_lists import Audience, PieceTexts, read_list


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
    #: The file with the pieces and merges of each instance; None: they are here. Whether it has merges.
    lists: str | None = None
    merging: bool = False
    #: Sides of which every instance may read all rows.
    everywhere: tuple[int, ...] = ()
    #: The instance whose pieces and merges these are; None: those of all.
    instance: int | None = None

    def of(self, instance: int) -> StateOrder:
        """The order with the pieces and merges of one instance, if they are in a file."""
        if self.lists is None:
            return self
        found = read_list(open_store(self.store_url), self.lists, instance, self.routing.instances)
        merges = ((str(instance), found.merges),) if found.merges else ()
        here = replace(self, lists=None, merging=False, instance=instance)
        return replace(here, pieces=found.pieces, merges=merges)

    def in_file(self, store: Store, path: str) -> StateOrder:
        """The order with its pieces and merges in a file, which this writes."""
        PieceTexts(self.pieces, self.audience).write(store, path, dict(self.merges))
        return self.naming(path)

    @property
    def audience(self) -> Audience:
        """Which instances may need which pieces."""
        return Audience(self.routing, self.cuts, self.everywhere)

    def naming(self, path: str) -> StateOrder:
        """The order with its pieces and merges in a file that is there."""
        return replace(self, pieces=(), merges=(), lists=path, merging=bool(self.merges))

    @property
    def changes_state(self) -> bool:
        """Whether stored rows are released, merged or moved, even if no row arrives."""
        moves = bool(self.merges or self.merging or self.cuts)
        return self.flush or self.settle_us != self.settled_us or moves


W = TypeVar("W")


def for_instance(work: W, instance: int) -> W:
    """A work order as one instance needs it."""
    state = getattr(work, "state", None)
    if not isinstance(state, StateOrder) or state.lists is None:
        return work
    return replace(work, state=state.of(instance))  # type: ignore[type-var]
