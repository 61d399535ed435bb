"""Caches open segments and prepared runs in a worker process between batches.

Any worker may get any instance, so correctness never depends on the cache.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Protocol

from tidegate.model.pieces import Piece
from tidegate.state.segments import SegmentCache
from tidegate.state.store.store import open_store

#: Per store and operator: the run that opened the segments, and the segments.
_caches: dict[tuple[str, str], tuple[str, SegmentCache]] = {}


def worker_cache(url: str, operator: str, pieces: tuple[Piece, ...], run: str) -> SegmentCache:
    """The open segments of this worker process, pruned to those that still exist.

    Workers outlive a run of the query. A file may have changed between two runs, so each run opens and
    verifies its segments anew.
    """
    opened_by, cache = _caches.get((url, operator), ("", None))
    if cache is None or opened_by != run:
        cache = SegmentCache(open_store(url))
        _caches[url, operator] = run, cache
    alive = {piece.data.file for piece in pieces}
    alive.update(blob.file for piece in pieces for blob in piece.matched.values())
    cache.keep_only(alive)
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

    def begin_batch(self, alive: set[str]) -> None:
        """Drop the views of the last batch, and those of runs that no longer exist."""
        self._passing.clear()
        for name in [name for name in self._kept if name[0] not in alive]:
            self.bytes_held -= self._kept.pop(name).nbytes


_views: dict[tuple[str, str], tuple[str, Views]] = {}


def worker_views(url: str, operator: str, pieces: tuple[Piece, ...], run: str) -> Views:
    """The prepared runs of this worker process; as `worker_cache`."""
    opened_by, views = _views.get((url, operator), ("", None))
    if views is None or opened_by != run:
        views = Views()
        _views[url, operator] = run, views
    views.begin_batch({piece.name for piece in pieces})
    return views
