"""Segment files: many blobs in one file, each found and proved by its `ByteRange`.

    | blob 0 (Arrow) |pad| blob 1 (Arrow) |pad| blob 2 (bits) | …     every blob starts at a multiple of 64

One task writes one file per batch, whatever number of pieces it has: a file per piece would be thousands
a batch. A batch of rows is one uncompressed Arrow IPC *file* image, so it can be mapped and used in place:
reading costs a checksum and no copy. The 64 bytes keep every column aligned for numpy and for vector
instructions.

A blob is verified against its length and checksum whenever it is opened, before any row is read.
Then the opened blob is kept by `SegmentCache`, up to a byte limit, for the batches that follow.
A damaged blob is a `StateError` with file and offset, never a wrong result.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Set
from typing import Any

import pyarrow as pa

from tidegate.errors import StateError
from tidegate.model.pieces import ByteRange
from tidegate.state.store.paths import Bytes
from tidegate.state.store.sealed import checksum
from tidegate.state.store.store import Store

ALIGNMENT = 64
#: Opened blobs that a worker keeps. They are mapped, so this bounds addresses and page cache, not the heap.
CACHE_BYTES = 1 << 30


class SegmentWriter:
    """Collects blobs and writes them as one file; a writer that was given nothing writes no file."""

    def __init__(self, store: Store, path: str) -> None:
        self._store = store
        self._path = path
        self._buffers: list[Bytes] = []
        self._size = 0
        self._closed = False

    def add(self, batch: pa.RecordBatch) -> ByteRange:
        """Append rows; where they will lie."""
        return self._append(_arrow_image(batch))

    def add_bytes(self, data: Bytes) -> ByteRange:
        """Append plain bytes, such as a bit set; where they will lie."""
        return self._append(data)

    def close(self) -> int:
        """Write the file. The ranges that were handed out are good from here on; the bytes written."""
        self._refuse_if_closed()
        self._closed = True
        buffers, self._buffers = self._buffers, []
        return self._store.write(self._path, buffers) if buffers else 0

    def _append(self, blob: Bytes) -> ByteRange:
        self._refuse_if_closed()
        padding = -self._size % ALIGNMENT
        if padding:
            self._buffers.append(bytes(padding))
        view = memoryview(blob)
        place = ByteRange(self._path, self._size + padding, view.nbytes, checksum(view))
        self._buffers.append(blob)
        self._size = place.offset + place.length
        return place

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise StateError(
                f"A write to a closed segment file: {self._path}",
                code="INTERNAL_SEGMENT_CLOSED",
                why="Segment files are immutable once written",
            )


class SegmentCache:
    """Opened, verified blobs of one store; the least recently used go first. For one thread."""

    def __init__(self, store: Store, byte_limit: int = CACHE_BYTES) -> None:
        self._store = store
        self._byte_limit = byte_limit
        #: Oldest use first. Batches are derived from the buffer of the same range when first asked for.
        self._blobs: OrderedDict[ByteRange, pa.Buffer] = OrderedDict()
        self._batches: dict[ByteRange, pa.RecordBatch] = {}
        #: Made of batches, and small beside them: not counted as bytes held.
        self._prepared: dict[ByteRange, Any] = {}
        #: One map per file, shared by its blobs: the kernel limits the number of maps of a process.
        self._maps: dict[str, pa.Buffer] = {}
        #: Blobs held per file; the map goes with the last of them.
        self._holds: dict[str, set[ByteRange]] = {}
        #: Bytes of the blobs in `_blobs`.
        self.bytes_held = 0
        #: Bytes of all blobs opened so far, hits of the cache left out.
        self.bytes_read = 0

    def batch(self, place: ByteRange) -> pa.RecordBatch:
        """The rows at `place`, in place: no column is copied."""
        found = self._batches.get(place)
        if found is not None:
            self._blobs.move_to_end(place)
            return found
        blob = self.bytes(place)
        batch = self._batches[place] = _only_batch(blob, place)
        return batch

    def prepared(self, place: ByteRange, make: Callable[[pa.RecordBatch], Any]) -> Any:
        """What `make` makes of the rows at `place`: made once, kept as long as they are."""
        batch = self.batch(place)
        if place not in self._prepared:
            self._prepared[place] = make(batch)
        return self._prepared[place]

    def bytes(self, place: ByteRange) -> pa.Buffer:
        """The bytes at `place`, in place."""
        held = self._blobs.get(place)
        if held is not None:
            self._blobs.move_to_end(place)
            return held
        blob = self._verified(place)
        self.bytes_read += place.length
        self._blobs[place] = blob
        self._holds.setdefault(place.file, set()).add(place)
        self.bytes_held += place.length
        self._drop_oldest()
        return blob

    def shrink(self, byte_limit: int) -> None:
        """Hold so many bytes at most, from now on."""
        self._byte_limit = byte_limit
        self._drop_oldest()

    def keep_only(self, files: Set[str]) -> None:
        """Let go of every blob of any other file: the manifest no longer names it."""
        for file in [file for file in self._holds if file not in files]:
            for place in tuple(self._holds[file]):
                self._drop(place)

    def _drop_oldest(self) -> None:
        while self.bytes_held > self._byte_limit and len(self._blobs) > 1:
            self._drop(next(iter(self._blobs)))

    def _drop(self, place: ByteRange) -> None:
        del self._blobs[place]
        self._batches.pop(place, None)
        self._prepared.pop(place, None)
        self.bytes_held -= place.length
        self._holds[place.file].discard(place)
        if not self._holds[place.file]:
            del self._holds[place.file], self._maps[place.file]

    def _verified(self, place: ByteRange) -> pa.Buffer:
        whole = self._maps.get(place.file)
        if whole is None:
            whole = self._store.map(place.file)
        if min(place.offset, place.length) < 0 or whole.size < place.offset + place.length:
            raise _damaged(
                place, f"a file of {whole.size} bytes", f"at least {place.offset + place.length} bytes"
            )
        blob = whole.slice(place.offset, place.length)
        actual = checksum(memoryview(blob))
        if actual != place.checksum:
            raise _damaged(place, f"checksum {actual}", f"checksum {place.checksum}")
        self._maps[place.file] = whole
        return blob


def _arrow_image(batch: pa.RecordBatch) -> pa.Buffer:
    """The batch as the bytes of an Arrow IPC file, copied once.

    Writing to a sink that only counts gives the exact size for next to nothing, so the image goes
    into one allocation; a growing buffer would copy all columns again each time it doubles.
    """
    counted = pa.MockOutputStream()
    _write_arrow(counted, batch)
    image = pa.allocate_buffer(counted.size())
    _write_arrow(pa.FixedSizeBufferWriter(image), batch)
    return image


def _write_arrow(sink: pa.NativeFile, batch: pa.RecordBatch) -> None:
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)


def _only_batch(blob: pa.Buffer, place: ByteRange) -> pa.RecordBatch:
    try:
        reader = pa.ipc.open_file(blob)
    except pa.ArrowInvalid as error:
        raise _damaged(place, f"bytes that Arrow refuses ({error})", "an Arrow file") from error
    if reader.num_record_batches != 1:
        raise _damaged(place, f"{reader.num_record_batches} batches", "one batch")
    return reader.get_batch(0)


def _damaged(place: ByteRange, found: str, expected: str) -> StateError:
    return StateError(
        f"Stored rows are damaged: {place.file} at offset {place.offset}, length {place.length}",
        code="STATE_SEGMENT_DAMAGED",
        got=f"{found} where {expected} was expected",
        why="Joining with them would give wrong results",
        do="Restore the file from a backup, or start with a new checkpoint",
    )
