from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from tests.unit.state.samples import alter, flipped, rows

from tidegate.errors import StateError
from tidegate.model.pieces import ByteRange
from tidegate.state.segments import ALIGNMENT, SegmentCache, SegmentWriter
from tidegate.state.store.memory import MemoryStore
from tidegate.state.store.store import Store

FILE = "segments/near/0-0-a.arrow"


def written(store: Store, *batches: pa.RecordBatch, file: str = FILE) -> list[ByteRange]:
    writer = SegmentWriter(store, file)
    places = [writer.add(batch) for batch in batches]
    writer.close()
    return places


@pytest.fixture
def memory(request: pytest.FixtureRequest) -> Store:
    return MemoryStore(request.node.nodeid)


def test_rows_and_bits_come_back_as_they_were(store: Store) -> None:
    writer = SegmentWriter(store, FILE)
    first, bits, second = writer.add(rows(100)), writer.add_bytes(b"\x05\x01"), writer.add(rows(7, seed=1))
    assert writer.close() == store.size(FILE)
    cache = SegmentCache(store)
    assert cache.batch(first).equals(rows(100))
    assert cache.bytes(bits).to_pybytes() == b"\x05\x01"
    assert cache.batch(second).equals(rows(7, seed=1))


def test_every_blob_starts_at_an_aligned_offset(memory: Store) -> None:
    writer = SegmentWriter(memory, FILE)
    places = [writer.add_bytes(b"x" * length) for length in (1, 63, 64, 65, 0, 3)]
    writer.close()
    assert [p.offset for p in places] == [0, 64, 128, 192, 320, 320]
    assert all(p.offset % ALIGNMENT == 0 for p in places)


def test_a_writer_that_was_given_nothing_writes_no_file(store: Store) -> None:
    assert SegmentWriter(store, FILE).close() == 0
    assert not store.exists(FILE)


def test_a_closed_writer_takes_no_more(memory: Store) -> None:
    writer = SegmentWriter(memory, FILE)
    writer.add_bytes(b"x")
    writer.close()
    with pytest.raises(StateError, match="INTERNAL_SEGMENT_CLOSED"):
        writer.add_bytes(b"y")
    with pytest.raises(StateError, match="INTERNAL_SEGMENT_CLOSED"):
        writer.close()


def test_a_slice_of_a_batch_is_stored_without_the_rest(memory: Store) -> None:
    whole, part = written(memory, rows(10_000), rows(10_000).slice(100, 10))
    assert part.length < whole.length / 20
    assert SegmentCache(memory).batch(part).equals(rows(10_000).slice(100, 10))


def test_columns_are_used_in_place_without_a_copy(store: Store) -> None:
    (_, place) = written(store, rows(3), rows(1000))
    cache = SegmentCache(store)
    batch, mapped = cache.batch(place), cache.bytes(place)
    for column in batch.columns:
        array = column.to_numpy(zero_copy_only=True)
        assert mapped.address <= array.ctypes.data < mapped.address + mapped.size
        assert array.ctypes.data % 8 == 0


def test_types_other_than_numbers_come_back_too(memory: Store) -> None:
    batch = pa.record_batch(
        {
            "text": pa.array(["a", None, "ü"]),
            "items": pa.array([[1, 2], [], None], pa.list_(pa.int32())),
            "dictionary": pa.array(["x", "y", "x"]).dictionary_encode(),
            "time": pa.array([1, 2, None], pa.timestamp("us", "UTC")),
        }
    )
    (place,) = written(memory, batch)
    assert SegmentCache(memory).batch(place).equals(batch)


@pytest.mark.parametrize("part", [0.0, 0.3, 0.999])
def test_one_altered_bit_anywhere_is_found(store: Store, part: float) -> None:
    places = written(store, rows(50), rows(50, seed=1))
    at = places[1].offset + int(part * places[1].length)
    alter(store, FILE, flipped(store.read(FILE), at))
    cache = SegmentCache(store)
    assert cache.batch(places[0]).equals(rows(50)), "the other blob of the file is sound"
    with pytest.raises(
        StateError, match=rf"{FILE} at offset {places[1].offset}.*checksum {places[1].checksum}"
    ):
        cache.batch(places[1])


def test_a_truncated_file_is_found(store: Store) -> None:
    places = written(store, rows(50), rows(50, seed=1))
    size = store.size(FILE)
    alter(store, FILE, store.read(FILE)[:-1])
    with pytest.raises(StateError, match=rf"at offset {places[1].offset}.*{size - 1} bytes.*{size} bytes"):
        SegmentCache(store).batch(places[1])


def test_a_deleted_file_is_an_error_that_names_it(store: Store) -> None:
    (place,) = written(store, rows(5))
    store.delete(FILE)
    with pytest.raises(StateError, match=FILE):
        SegmentCache(store).batch(place)


def test_bits_are_not_taken_for_rows(memory: Store) -> None:
    writer = SegmentWriter(memory, FILE)
    place = writer.add_bytes(b"only bits")
    writer.close()
    with pytest.raises(StateError, match=r"STATE_SEGMENT_DAMAGED.*Arrow refuses.*an Arrow file"):
        SegmentCache(memory).batch(place)


def test_two_batches_in_one_blob_are_refused(memory: Store) -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, rows(1).schema) as arrow:
        arrow.write_batch(rows(1))
        arrow.write_batch(rows(1))
    writer = SegmentWriter(memory, FILE)
    place = writer.add_bytes(sink.getvalue())
    writer.close()
    with pytest.raises(StateError, match=r"STATE_SEGMENT_DAMAGED.*2 batches where one batch"):
        SegmentCache(memory).batch(place)


def test_a_range_with_another_checksum_is_refused(memory: Store) -> None:
    (place,) = written(memory, rows(5))
    with pytest.raises(StateError, match=r"STATE_SEGMENT_DAMAGED.*damaged"):
        SegmentCache(memory).batch(replace(place, checksum="0" * 16))


def test_a_blob_is_opened_once_and_then_kept(memory: Store) -> None:
    (place,) = written(memory, rows(5))
    cache = SegmentCache(memory)
    assert cache.batch(place) is cache.batch(place)
    assert cache.bytes_read == place.length


def test_what_was_made_of_rows_is_kept_as_long_as_they_are(memory: Store) -> None:
    (place,) = written(memory, rows(5))
    cache, made = SegmentCache(memory), []

    def make(batch: pa.RecordBatch) -> int:
        made.append(batch)
        return len(batch)

    assert [cache.prepared(place, make) for _ in range(2)] == [5, 5]
    assert len(made) == 1
    cache.keep_only(set())
    assert cache.prepared(place, make) == 5
    assert len(made) == 2


def test_the_blob_that_was_used_longest_ago_goes_first(memory: Store) -> None:
    writer = SegmentWriter(memory, FILE)
    a, b, c = (writer.add_bytes(bytes([i]) * 40) for i in range(3))
    writer.close()
    cache = SegmentCache(memory, byte_limit=100)
    for place in (a, b, a, c):  # a is used again after b, so b goes
        cache.bytes(place)
    assert (cache.bytes_read, cache.bytes_held) == (120, 80)
    cache.bytes(a)
    cache.bytes(c)
    assert cache.bytes_read == 120
    cache.bytes(b)
    assert cache.bytes_read == 160


def test_a_blob_above_the_limit_is_still_served(memory: Store) -> None:
    places = written(memory, rows(5), rows(500))
    cache = SegmentCache(memory, byte_limit=1)
    for place, count in zip(places, (5, 500), strict=True):
        assert cache.batch(place).num_rows == count
        assert cache.bytes_held == place.length


def test_only_the_files_that_are_still_needed_are_kept(memory: Store) -> None:
    (old,) = written(memory, rows(5), file="segments/old")
    (new,) = written(memory, rows(5, seed=1), file="segments/new")
    cache = SegmentCache(memory)
    cache.batch(old)
    cache.batch(new)
    cache.keep_only({"segments/new"})
    assert cache.bytes_held == new.length
    memory.delete("segments/old")
    memory.delete("segments/new")
    assert cache.batch(new).num_rows == 5
    with pytest.raises(StateError, match=r"CHECKPOINT_FILE_MISSING.*segments/old"):
        cache.batch(old)


def test_a_blob_that_comes_back_after_eviction_is_verified_again(memory: Store) -> None:
    (place,) = written(memory, rows(5))
    cache = SegmentCache(memory)
    cache.batch(place)
    cache.keep_only(set())
    alter(memory, FILE, flipped(memory.read(FILE), place.length // 2))
    with pytest.raises(StateError, match=r"STATE_SEGMENT_DAMAGED.*damaged"):
        cache.batch(place)


@pytest.mark.parametrize(("offset", "length"), [(-64, 10), (0, -1), (2**62, 10)])
def test_a_range_outside_of_the_file_is_refused(memory: Store, offset: int, length: int) -> None:
    memory.write("segments/x", [bytes(100)])
    with pytest.raises(StateError, match=r"STATE_SEGMENT_DAMAGED.*segments/x at offset"):
        SegmentCache(memory).bytes(ByteRange("segments/x", offset, length, ""))
