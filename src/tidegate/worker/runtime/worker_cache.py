"""Caches open segments and prepared runs in a worker process between batches.

Any worker may get any instance, so correctness never depends on the cache.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Set
from typing import Any, Protocol

from tidegate.model.pieces import Piece
from tidegate.state.segments import SegmentCache
from tidegate.state.store.store import open_store

#: What an instance used is dropped after so many batches in which another worker ran it.
AWAY_MAX = 8


class InUse:
    """Which names (of files, of pieces) are needed by the instances of an operator that this worker runs.

    A task may know the pieces of its own instance only; those of others that the same worker runs must stay.
    """

    def __init__(self) -> None:
        #: By instance: its last batch here, and its names.
        self._by_instance: dict[int, tuple[int, frozenset[str]]] = {}
        self._batch: int | None = None

    def alive(self, instance: int | None, batch: int, names: frozenset[str]) -> frozenset[str] | None:
        """All names that may still be needed, now that an instance needs these; None: as a moment ago.

        They are counted once a batch, so a name may stay for a batch too long.
        """
        if instance is None:
            self._by_instance.clear()
            return names
        self._by_instance[instance] = batch, names
        if batch == self._batch:
            return None
        self._batch = batch
        for one, (last, _) in list(self._by_instance.items()):
            if last < batch - AWAY_MAX:
                del self._by_instance[one]
        return frozenset().union(*(mine for _, mine in self._by_instance.values()))


#: Per store and operator: the run that opened the segments, the segments, and which files are in use.
_caches: dict[tuple[str, str], tuple[str, SegmentCache, InUse]] = {}


def worker_cache(
    url: str, operator: str, pieces: tuple[Piece, ...], run: str, instance: int | None = None, batch: int = 0
) -> SegmentCache:
    """The open segments of this worker process, pruned to those that still exist.

    `instance`: the pieces are those of one instance in this batch; None: of all.

    Workers outlive a run of the query. A file may have changed between two runs, so each run opens and
    verifies its segments anew.
    """
    opened_by, cache, in_use = _caches.get((url, operator), ("", None, InUse()))
    if cache is None or opened_by != run:
        cache, in_use = SegmentCache(open_store(url)), InUse()
        _caches[url, operator] = run, cache, in_use
    alive = {piece.data.file for piece in pieces}
    alive.update(blob.file for piece in pieces for blob in piece.matched.values())
    needed = in_use.alive(instance, batch, frozenset(alive))
    if needed is not None:
        cache.keep_only(needed)
    return cache


class View(Protocol):
    """Data prepared from one stored run."""

    @property
    def nbytes(self) -> int: ...


#: Size limit of prepared runs (bitsets, inverted lists) in a worker.
VIEW_BYTES = 512 << 20


class Views:
    """Prepared runs by name, up to a byte limit; the least recently used are evicted first."""

    def __init__(self, byte_limit: int = VIEW_BYTES) -> None:
        self._byte_limit = byte_limit
        self._kept: OrderedDict[Any, View] = OrderedDict()
        #: Views of the running batch only.
        self._passing: dict[Any, View] = {}
        self.bytes_held = 0

    def get(self, name: Any) -> View | None:
        if name in self._kept:
            self._kept.move_to_end(name)
            return self._kept[name]
        return self._passing.get(name)

    def put(self, name: Any, view: View, kept: bool) -> None:
        if not kept:
            self._passing[name] = view
            return
        self._kept[name] = view
        self.bytes_held += view.nbytes
        while self.bytes_held > self._byte_limit and len(self._kept) > 1:
            _, gone = self._kept.popitem(last=False)
            self.bytes_held -= gone.nbytes

    def begin_batch(self, alive: Set[str] | None) -> None:
        """Drop the views of the last batch, and those of runs that no longer exist, if that is known."""
        self._passing.clear()
        for name in [name for name in self._kept if alive is not None and name[0] not in alive]:
            self.bytes_held -= self._kept.pop(name).nbytes


_views: dict[tuple[str, str], tuple[str, Views, InUse]] = {}


def worker_views(
    url: str, operator: str, pieces: tuple[Piece, ...], run: str, instance: int | None = None, batch: int = 0
) -> Views:
    """The prepared runs of this worker process; as `worker_cache`."""
    opened_by, views, in_use = _views.get((url, operator), ("", None, InUse()))
    if views is None or opened_by != run:
        views, in_use = Views(), InUse()
        _views[url, operator] = run, views, in_use
    views.begin_batch(in_use.alive(instance, batch, frozenset(piece.name for piece in pieces)))
    return views
