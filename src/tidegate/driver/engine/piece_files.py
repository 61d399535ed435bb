"""The files from which tasks read the pieces of their instance, where an operator has many.

A file costs a write and each task a read; without it every task unpickles all pieces. A pass that changes
nothing in the state (an idle batch) uses the file of the pass before. Texts of pieces are kept from pass to
pass, so that only what a batch changed is encoded, as long as rows stay where they are.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.model.piece_index import Pieces
from tidegate.model.pieces import Piece
from tidegate.state.store.local import LocalStore
from tidegate.state.store.store import open_store
from tidegate.worker.runtime.piece_lists import PieceTexts
from tidegate.worker.runtime.state_order import StateOrder

#: Pieces of an operator from which on they are in a file: on a local disk, and where a file takes 30 ms.
#: Half: files for flows that are as fast without; double: tasks of small flows unpickle for a millisecond.
LISTED_FROM, LISTED_FROM_REMOTE = 200, 3_000


@dataclass(frozen=True)
class _Written:
    """What a file has the pieces and merges of."""

    order: StateOrder
    #: Of all operators.
    pieces: Sequence[Piece]
    texts: PieceTexts
    path: str

    def reaches_as(self, order: StateOrder) -> bool:
        """Whether the same instances need the same pieces."""
        mine = self.order
        return (mine.cuts, mine.everywhere) == (order.cuts, order.everywhere) and (
            mine.routing is order.routing or mine.routing == order.routing
        )

    def fits(self, order: StateOrder) -> bool:
        mine = self.order
        return (
            len(mine.pieces) == len(order.pieces)
            and all(a is b for a, b in zip(mine.pieces, order.pieces, strict=True))
            and mine.merges == order.merges
            and self.reaches_as(order)
        )


class PieceFiles:
    """Writes these files, and deletes them when no task can need them any more."""

    def __init__(self, store_url: str) -> None:
        self._store = open_store(store_url)
        self._from = LISTED_FROM if isinstance(self._store, LocalStore) else LISTED_FROM_REMOTE
        self._newest: dict[str, _Written] = {}
        #: Path → the last batch that uses it.
        self._used: dict[str, int] = {}

    def sent(self, operator: str, order: StateOrder, pieces: Sequence[Piece]) -> StateOrder:
        """The order as it is sent to tasks; `pieces`: of all operators, as the manifest has them."""
        if len(order.pieces) < self._from:
            return order
        last = self._newest.get(operator)
        if last is None or not last.fits(order):
            # Beside the segments, where recovery deletes what a crash left.
            path = f"segments/{operator}/{order.batch:010d}-{uuid.uuid4().hex[:12]}.pieces"
            texts = self._texts(operator, order, pieces)
            texts.write(self._store, path, dict(order.merges))
            last = self._newest[operator] = _Written(order, pieces, texts, path)
        self._used[last.path] = order.batch
        return order.naming(last.path)

    def _texts(self, operator: str, order: StateOrder, pieces: Sequence[Piece]) -> PieceTexts:
        """Those of the pass before with what has changed since, where that is known."""
        last = self._newest.pop(operator, None)
        if last is None or not last.reaches_as(order):
            return PieceTexts(order.pieces, order.audience)
        if pieces is not last.pieces:
            if not (isinstance(pieces, Pieces) and pieces.made_of(last.pieces)):
                return PieceTexts(order.pieces, order.audience)
            last.texts.change(pieces.change, operator)
        return last.texts

    def clear(self, before: int) -> None:
        """Delete files that only batches below this used; Spark may run a task of a batch until its end."""
        newest = {one.path for one in self._newest.values()}
        for path in [path for path, batch in self._used.items() if batch < before and path not in newest]:
            del self._used[path]
            self._store.delete(path)

    def close(self) -> None:
        """Delete them all."""
        self._newest.clear()
        self.clear(max(self._used.values(), default=0) + 1)
