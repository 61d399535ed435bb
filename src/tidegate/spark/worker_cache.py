"""Segments that a worker process keeps open from batch to batch."""

from __future__ import annotations

from tidegate.state.segment import SegmentCache
from tidegate.state.store import open_store
from tidegate.values import Piece

#: Per store and operator: the run that opened the segments, and the segments.
_caches: dict[tuple[str, str], tuple[str, SegmentCache]] = {}


def worker_cache(url: str, operator: str, pieces: tuple[Piece, ...], run: str) -> SegmentCache:
    """The segments this worker process has open; kept between batches, pruned to what is still alive.

    Workers outlive a run. Between two runs a file may have been altered under its map, so each run opens, and
    verifies, its segments anew.
    """
    opened_by, cache = _caches.get((url, operator), ("", None))
    if cache is None or opened_by != run:
        cache = SegmentCache(open_store(url))
        _caches[url, operator] = run, cache
    alive = {piece.data.file for piece in pieces}
    alive.update(blob.file for piece in pieces for blob in piece.matched.values())
    cache.keep_only(alive)
    return cache
