"""The stored rows of one instance: the ranges of pieces that it probes, and those that it owns.

Usually both are the ranges of its partitions, which are known without opening a piece. There are three
exceptions. If the plan moves a key out of a partition, the rows of the key are searched for and the piece is
listed with new ranges (all instances compute the same ranges, so any of them may report it). Rows of a key in
a grid are *lent*: all instances of their grid row or column read them (`model/routing.py`). And in a repair
(`worker/join/repair.py`) a left row probes all right rows of its key.
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
    """The parts of an operator layout that are needed here."""

    @property
    def how(self) -> str: ...
    @property
    def partitions(self) -> int: ...


class OwningWork(Protocol):
    """The parts of a join's or a window's work order that are needed here."""

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
        """`lent`: per side, partitions to probe besides its own; None: as the join itself needs them."""
        assert work.state.lists is None, "an order for all instances: see state_order.for_instance"
        self._work, self._cache = work, cache
        self.owned: tuple[frozenset[int], ...] = tuple(
            placement.owned_by(instance) for placement in work.state.routing.sides
        )
        lent = _lent(work, instance) if lent is None else lent
        #: Per side: partitions that several instances probe.
        self.lending: tuple[frozenset[int], ...] = tuple(
            placement.lending(side) for side, placement in enumerate(work.state.routing.sides)
        )
        #: Per side: partitions to probe. The same object as `owned` if there are no others.
        self._seen = tuple(
            own if others <= own else own | others for own, others in zip(self.owned, lent, strict=True)
        )
        #: Piece name → its ranges, if the plan cut it.
        self.recut: dict[str, tuple[tuple[int, int, int], ...]] = {}
        self.recut_seconds = 0.0
        #: Runs of marks: identities of rows that matched on other instances.
        self.marks: list[StoredRun] = list(self._mark_runs(instance))
        known = Marks(self.marks) if self.marks else None
        #: Runs of rows, by the number of their piece in the manifest.
        self.by_number: dict[int, StoredRun] = dict(self._runs(known))

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
        """The piece with its rows in the partitions that the plan assigns."""
        cuts = [
            cut
            for cut in self._work.state.cuts
            if (cut.side == piece.side or self._work.state.routing.apart is None)
            and not piece.keyless
            and not set(cut.sources).isdisjoint(piece.partitions)
        ]
        concerned = {partition for cut in cuts for partition in (*cut.sources, *cut.targets)}
        # Apply all cuts of a piece or none: every instance must report the same ranges.
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
    """Per side: the partitions of grids that an instance may read."""
    semi = work.layout.how == "left_semi"
    seen = []
    for side, placement in enumerate(work.state.routing.sides):
        placement = placement.in_one_column() if semi else placement
        parts = [placement.lent(place, side, instance) for place in placement.places]
        seen.append(frozenset().union(*parts))
    return seen


def partly_here(placement: Placement, instance: int) -> frozenset[int]:
    """All partitions of the places of which an instance has at least a part."""
    here = [place for place in placement.places if instance in placement.on(place)]
    return frozenset(partition for place in here for partition in place.holds)


def _bases_here(placement: Placement, instance: int, partitions: int) -> set[int]:
    """Base partitions of which an instance may own rows; marks are listed by these."""
    bases = {p for p in placement.owned_by(instance) if p < partitions}
    bases |= {p for p, place in placement.shared.items() if instance in placement.on(place)}
    keys = [code for code, place in placement.keys.items() if instance in placement.on(place)]
    return bases | set(partition_of(np.array(keys, np.uint64), partitions).tolist())
