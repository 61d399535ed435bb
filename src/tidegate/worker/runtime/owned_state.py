"""What one instance holds of the stored rows: which ranges of which pieces it looks at, which are its own.

Nearly always both are the ranges of its partitions, and nothing has to be opened to know them. There are
two exceptions. Where the plan cuts a key out of a partition, the rows of the key are searched for and the
piece is listed anew (every instance that is concerned finds the same ranges, so any of them may report it).
And rows of a key that stands in a grid are *lent*: seen by all instances of their row or column
(`model/routing.py`), as files are everybody's to read. Where owed work is made up for, a left row sees all
right rows of its key.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from tidegate.model.pieces import Piece
from tidegate.model.routing import Placement
from tidegate.route.hash_routing import partition_of
from tidegate.route.places import recut
from tidegate.state.segments import SegmentCache
from tidegate.worker.runtime.layout import CODE
from tidegate.worker.runtime.marks import Marks
from tidegate.worker.runtime.runs import StoredRun, as_numpy
from tidegate.worker.runtime.state_order import StateOrder


class Layout(Protocol):
    """What of an operator matters here."""

    @property
    def how(self) -> str: ...
    @property
    def partitions(self) -> int: ...


class OwningWork(Protocol):
    """What of a work order matters here: a join's or a window's."""

    @property
    def layout(self) -> Layout: ...
    @property
    def state(self) -> StateOrder: ...


class OwnedState:
    """The stored runs of one instance in one batch; see the module docstring."""

    def __init__(
        self,
        work: OwningWork,
        instance: int,
        cache: SegmentCache,
        lent: Sequence[frozenset[int]] | None = None,
    ) -> None:
        """`lent`: per side, partitions to look at besides its own; None: as the join itself needs them."""
        self._work, self._cache = work, cache
        self.owned = tuple(placement.owned_by(instance) for placement in work.state.routing.sides)
        lent = _lent(work, instance) if lent is None else lent
        #: Per side: partitions that several instances see.
        self.lending = tuple(
            placement.lending(side) for side, placement in enumerate(work.state.routing.sides)
        )
        #: Per side: partitions to look at. The very same set as `owned` where there are no others.
        self._seen = tuple(
            own if others <= own else own | others for own, others in zip(self.owned, lent, strict=True)
        )
        #: Piece name → its ranges, where the plan cut it.
        self.recut: dict[str, tuple[tuple[int, int, int], ...]] = {}
        self.recut_seconds = 0.0
        #: Runs of identities of rows that matched elsewhere; looked at by whoever holds such rows.
        self.marks: list[StoredRun] = list(self._mark_runs(instance))
        known = Marks(self.marks) if self.marks else None
        #: Runs of rows, by the number of their piece in the manifest.
        self.by_number = dict(self._runs(known))

    @property
    def stored(self) -> list[StoredRun]:
        return list(self.by_number.values())

    def _runs(self, marks: Marks | None) -> Iterator[tuple[int, StoredRun]]:
        for number, piece in enumerate(self._work.state.pieces):
            if piece.marks:
                continue
            piece = self._as_cut(piece)
            slices = piece.slices(self._seen[piece.side])
            if slices:
                own = slices
                if self._seen[piece.side] is not self.owned[piece.side]:
                    own = piece.slices(self.owned[piece.side])
                yield number, StoredRun(piece, slices, self._cache, own, marks)

    def _as_cut(self, piece: Piece) -> Piece:
        """The piece with its rows in the partitions that the plan puts them in."""
        cuts = [
            cut
            for cut in self._work.state.cuts
            if (cut.side == piece.side or self._work.state.routing.apart is None)
            and not piece.keyless
            and not set(cut.sources).isdisjoint(piece.partitions)
        ]
        concerned = {partition for cut in cuts for partition in (*cut.sources, *cut.targets)}
        # All cuts of a piece or none: whoever reports it must report the same.
        if self._seen[piece.side].isdisjoint(concerned):
            return piece
        started = time.thread_time()
        codes = as_numpy(self._cache.batch(piece.data).column(CODE))
        ranges = recut(piece.ranges, codes, cuts)
        self.recut_seconds += time.thread_time() - started
        if ranges == piece.ranges:
            return piece
        self.recut[piece.name] = tuple(ranges)
        return piece.with_ranges(ranges)

    def _mark_runs(self, instance: int) -> Iterator[StoredRun]:
        pieces = [piece for piece in self._work.state.pieces if piece.marks]
        if not pieces:
            return
        bases = [
            _bases_here(placement, instance, self._work.layout.partitions)
            for placement in self._work.state.routing.sides
        ]
        for piece in pieces:
            slices = piece.slices(bases[piece.side])
            if slices:
                yield StoredRun(piece, slices, self._cache, piece.slices(self.owned[piece.side]))


def _lent(work: OwningWork, instance: int) -> list[frozenset[int]]:
    """Per side: what an instance sees of the places that stand in a grid."""
    semi = work.layout.how == "left_semi"
    seen = []
    for side, placement in enumerate(work.state.routing.sides):
        placement = placement.in_one_column() if semi else placement
        parts = [placement.lent(place, side, instance) for place in placement.places]
        seen.append(frozenset().union(*parts))
    return seen


def partly_here(placement: Placement, instance: int) -> frozenset[int]:
    """All partitions of the places that lie on an instance, be it in part."""
    here = [place for place in placement.places if instance in placement.on(place)]
    return frozenset(partition for place in here for partition in place.holds)


def _bases_here(placement: Placement, instance: int, partitions: int) -> set[int]:
    """Base partitions of which an instance may hold rows: marks are listed by these."""
    bases = {p for p in placement.owned_by(instance) if p < partitions}
    bases |= {p for p, place in placement.shared.items() if instance in placement.on(place)}
    keys = [code for code, place in placement.keys.items() if instance in placement.on(place)]
    return bases | set(partition_of(np.array(keys, np.uint64), partitions).tolist())
