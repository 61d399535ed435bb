"""The rows of a task in portions, so that a task holds a bounded part of them at a time.

    Spark ─▶ `held`: two rooms in memory, more in a file ─▶ `portions`: a room at a time ─▶ task

A task must know its instance before it handles the first row, and the marker row that names it may come last
(`task_runner.instance_in`). So rows beyond two rooms wait in a file, which is mapped: the system can give up
pages of it at any time. The file has no name, so it vanishes with the task however that ends.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator

import pyarrow as pa

from tidegate.worker.runtime.memory import MemoryMeter, room_bytes

#: Rooms of rows that wait in memory. Default limits of batches stay below (`control/batch_size.py`).
_HELD_ROOMS = 2


def held(batches: Iterable[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """All batches, those beyond two rooms in a mapped file."""
    most, size = _HELD_ROOMS * room_bytes(), 0
    found: list[pa.RecordBatch] = []
    rest = iter(batches)
    for batch in rest:
        found.append(batch)
        size += batch.get_total_buffer_size()
        if size > most:
            return [*found, *_in_file(rest)]
    return found


def portions(
    batches: Iterable[pa.RecordBatch], meter: MemoryMeter, at_most: int | None = None
) -> Iterator[tuple[list[pa.RecordBatch], bool]]:
    """The batches, so many bytes at a time, and whether these are the last; None: all at once.

    There is at least one portion, which may be empty.
    """
    portion: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        # Not `nbytes`, which takes as long as sorting a hundred rows. Spark's batches share no buffers.
        added = batch.get_total_buffer_size()
        meter.received_bytes += added
        if portion and at_most is not None and size + added > at_most:
            yield portion, False
            portion, size = [], 0
        portion.append(batch)
        size += added
    yield portion, True


def _in_file(batches: Iterator[pa.RecordBatch]) -> list[pa.RecordBatch]:
    first = next(batches, None)
    if first is None:
        return []
    file, path = tempfile.mkstemp(prefix="tidegate-", suffix=".arrow", dir=_folder())
    os.close(file)
    try:
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_stream(sink, first.schema) as writer:
            writer.write_batch(first)
            for batch in batches:
                writer.write_batch(batch)
        with pa.memory_map(path) as mapped:
            return list(pa.ipc.open_stream(mapped))
    finally:
        os.remove(path)


def _folder() -> str | None:
    """Spark's folder for temporary files on this machine; None: that of the system."""
    folders = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
    return next((one for one in folders if os.path.isdir(one)), None)
