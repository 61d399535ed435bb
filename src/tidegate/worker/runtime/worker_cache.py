"""Caches open segments and prepared runs in a worker process between batches.

Any worker may get any instance, so correctness never depends on the cache.

A worker serves every query of its Spark session, one after the other and side by side, and is never told that
one has ended. So all caches of a kind share one limit: the operators of the present checkpoint have equal
parts of it, and those of other checkpoints go first, the least recently used of them before others.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Set
from typing import Any, Protocol, TypeVar

from tidegate.state.segments import CACHE_BYTES, SegmentCache
from tidegate.state.store.store import open_store
from tidegate.worker.runtime.state_order import StateOrder

#: What an instance used is dropped after so many batches in which another worker ran it.
AWAY_MAX = 8
#: Limits of all caches of a worker: segments, which are mapped, and prepared runs.
SEGMENT_BYTES, VIEW_BYTES = 2 << 30, 512 << 20
#: Checkpoints and operators that a worker remembers, however little they hold.
_REMEMBERED = 64


class Bounded(Protocol):
    """A cache that can be given another limit."""

    bytes_held: int

    def shrink(self, byte_limit: int) -> None:
        """Hold so many bytes at most, from now on."""


C = TypeVar("C", bound=Bounded)


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


class Caches(OrderedDict[tuple[str, str], tuple[str, C, InUse]]):
    """Per store and operator: the run that filled a cache, and the cache; the least recently used first."""

    def __init__(self, byte_limit: int, most_each: int) -> None:
        super().__init__()
        self._byte_limit, self._most_each = byte_limit, most_each

    def of(self, url: str, operator: str, run: str, make: Callable[[], C]) -> C:
        """The cache of an operator, new for every run of it. All caches are within the limit afterwards."""
        filled_by, cache, in_use = self.pop((url, operator), ("", None, InUse()))
        if cache is None or filled_by != run:
            cache, in_use = make(), InUse()
        self[url, operator] = run, cache, in_use
        beside = [one for place, (_, one, _) in self.items() if place[0] == url]
        for one in beside:
            one.shrink(min(self._most_each, self._byte_limit // len(beside)))
        for place in [place for place in self if place[0] != url]:
            if len(self) <= _REMEMBERED and self.bytes_held <= self._byte_limit:
                break
            del self[place]
        return cache

    @property
    def bytes_held(self) -> int:
        return sum(cache.bytes_held for _, cache, _ in self.values())

    def in_use(self, url: str, operator: str) -> InUse:
        """What the instances of an operator need of its cache."""
        return self[url, operator][2]


_caches: Caches[SegmentCache] = Caches(SEGMENT_BYTES, CACHE_BYTES)


def worker_cache(operator: str, order: StateOrder) -> SegmentCache:
    """The open segments of this worker process, pruned to those that still exist.

    Workers outlive a run of the query. A file may have changed between two runs, so each run opens and
    verifies its segments anew.
    """
    url = order.store_url
    cache = _caches.of(url, operator, order.run, lambda: SegmentCache(open_store(url)))
    alive = {piece.data.file for piece in order.pieces}
    alive.update(blob.file for piece in order.pieces for blob in piece.matched.values())
    needed = _caches.in_use(url, operator).alive(order.instance, order.batch, frozenset(alive))
    if needed is not None:
        cache.keep_only(needed)
    return cache


class View(Protocol):
    """Data prepared from one stored run."""

    @property
    def nbytes(self) -> int: ...


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
        self._drop_oldest()

    def shrink(self, byte_limit: int) -> None:
        """Hold so many bytes at most, from now on."""
        self._byte_limit = byte_limit
        self._drop_oldest()

    def _drop_oldest(self) -> None:
        while self.bytes_held > self._byte_limit and len(self._kept) > 1:
            _, gone = self._kept.popitem(last=False)
            self.bytes_held -= gone.nbytes

    def begin_batch(self, alive: Set[str] | None) -> None:
        """Drop the views of the last batch, and those of runs that no longer exist, if that is known."""
        self._passing.clear()
        for name in [name for name in self._kept if alive is not None and name[0] not in alive]:
            self.bytes_held -= self._kept.pop(name).nbytes


_views: Caches[Views] = Caches(VIEW_BYTES, VIEW_BYTES)


def worker_views(operator: str, order: StateOrder) -> Views:
    """The prepared runs of this worker process; as `worker_cache`."""
    views = _views.of(order.store_url, operator, order.run, Views)
    names = frozenset(piece.name for piece in order.pieces)
    views.begin_batch(_views.in_use(order.store_url, operator).alive(order.instance, order.batch, names))
    return views
