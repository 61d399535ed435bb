"""The files from which tasks read the pieces of their instance, where an operator has many.

A file costs a write and each task a read; without it every task unpickles all pieces. A pass that changes
nothing in the state (an idle batch) uses the file of the pass before.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from tidegate.state.store.local import LocalStore
from tidegate.state.store.store import open_store
from tidegate.worker.runtime.state_order import StateOrder

#: Pieces of an operator from which on they are in a file: on a local disk, and where a file takes 30 ms.
#: Half: files for flows that are as fast without; double: tasks of small flows unpickle for a millisecond.
LISTED_FROM, LISTED_FROM_REMOTE = 200, 3_000


@dataclass(frozen=True)
class _Written:
    """What a file has the pieces and merges of."""

    order: StateOrder
    path: str

    def fits(self, order: StateOrder) -> bool:
        mine = self.order
        return (
            len(mine.pieces) == len(order.pieces)
            and all(a is b for a, b in zip(mine.pieces, order.pieces, strict=True))
            and (mine.merges, mine.routing, mine.cuts) == (order.merges, order.routing, order.cuts)
        )


class PieceFiles:
    """Writes these files, and deletes them when no task can need them any more."""

    def __init__(self, store_url: str) -> None:
        self._store = open_store(store_url)
        self._from = LISTED_FROM if isinstance(self._store, LocalStore) else LISTED_FROM_REMOTE
        self._newest: dict[str, _Written] = {}
        #: Path → the last batch that uses it.
        self._used: dict[str, int] = {}

    def sent(self, operator: str, order: StateOrder) -> StateOrder:
        """The order as it is sent to tasks."""
        if len(order.pieces) < self._from:
            return order
        last = self._newest.get(operator)
        if last is None or not last.fits(order):
            # Beside the segments, where recovery deletes what a crash left.
            path = f"segments/{operator}/{order.batch:010d}-{uuid.uuid4().hex[:12]}.pieces"
            sent = order.in_file(self._store, path)
            last = self._newest[operator] = _Written(order, path)
        else:
            sent = order.naming(last.path)
        self._used[last.path] = order.batch
        return sent

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
