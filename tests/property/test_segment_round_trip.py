"""Any blobs in any order come back from any store as they went in, whatever the size of the cache."""

from __future__ import annotations

import itertools

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.model.pieces import ByteRange
from tidegate.state.segments import ALIGNMENT, SegmentCache, SegmentWriter
from tidegate.state.store.memory import MemoryStore

NAMES = itertools.count()
VALUES = st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), max_size=20)
BLOBS = st.lists(st.one_of(st.binary(max_size=200), VALUES), min_size=1, max_size=8)


@settings(max_examples=80)
@given(BLOBS, st.integers(0, 3_000), st.data())
def test_blobs_come_back_as_they_went_in(
    blobs: list[bytes | list[int | None]], limit: int, data: st.DataObject
) -> None:
    store = MemoryStore(f"segment-round-trip-{next(NAMES)}")
    writer = SegmentWriter(store, "f")
    places = [writer.add_bytes(b) if isinstance(b, bytes) else writer.add(_rows(b)) for b in blobs]
    assert writer.close() == store.size("f")
    cache = SegmentCache(store, byte_limit=limit)
    for i in data.draw(st.lists(st.integers(0, len(blobs) - 1), max_size=20)):
        assert _read(cache, places[i], blobs[i]) == blobs[i]
        assert cache.bytes_held <= max(limit, places[i].length)
    assert all(p.offset % ALIGNMENT == 0 for p in places)
    assert all(a.offset + a.length <= b.offset for a, b in itertools.pairwise(places))


def _rows(values: list[int | None]) -> pa.RecordBatch:
    return pa.record_batch({"v": pa.array(values, pa.int64())})


def _read(cache: SegmentCache, place: ByteRange, like: bytes | list[int | None]) -> object:
    if isinstance(like, bytes):
        return cache.bytes(place).to_pybytes()
    return cache.batch(place).column(0).to_pylist()
