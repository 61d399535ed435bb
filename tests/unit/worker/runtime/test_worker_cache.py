"""What a worker process keeps open between batches, and between runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.state.samples import a_piece, rows

from tidegate.errors import StateError
from tidegate.model.pieces import ByteRange, Piece
from tidegate.state.segments import SegmentCache, SegmentWriter
from tidegate.state.store.local import LocalStore
from tidegate.worker.runtime.worker_cache import AWAY_MAX, worker_cache

FILE = "segments/near/1.arrow"


def stored(folder: Path) -> ByteRange:
    writer = SegmentWriter(LocalStore(str(folder)), FILE)
    place = writer.add(rows(10))
    writer.close()
    return place


def test_the_batches_of_a_run_share_what_is_open(tmp_path: Path) -> None:
    cache = worker_cache(str(tmp_path), "near", (), "run 1")
    assert worker_cache(str(tmp_path), "near", (), "run 1") is cache


def test_a_file_altered_between_two_runs_is_not_taken_from_the_map_of_the_first(tmp_path: Path) -> None:
    place = stored(tmp_path)
    worker_cache(str(tmp_path), "near", (), "run 1").batch(place)
    with (tmp_path / FILE).open("r+b") as file:
        file.seek(place.offset + place.length // 2)
        file.write(b"\xff\x00\xff")
    with pytest.raises(StateError, match=f"damaged: {FILE}"):
        worker_cache(str(tmp_path), "near", (), "run 2").batch(place)


def test_what_other_instances_of_the_worker_need_stays_open(tmp_path: Path) -> None:
    # A task that knows its own pieces only.
    places = {file: stored_as(tmp_path, file) for file in ("segments/a", "segments/b", "segments/c")}
    a, b, c = (a_piece(place.file) for place in places.values())

    def opened(batch: int, instance: int, *pieces: Piece) -> SegmentCache:
        cache = worker_cache(str(tmp_path), "apart", pieces, "run", instance, batch)
        for piece in pieces:
            cache.bytes(places[piece.data.file])
        return cache

    cache = opened(1, 0, a, b)
    assert opened(1, 1, c) is cache
    read = cache.bytes_read
    opened(2, 0, a)  # b is merged or dead
    opened(2, 1, c)
    assert cache.bytes_read == read, "a blob that is needed was let go"
    opened(3, 0, a)
    assert cache.bytes_held == places["segments/a"].length + places["segments/c"].length
    # Another worker runs instance 1 from now on.
    for batch in range(4, 4 + AWAY_MAX):
        opened(batch, 0, a)
    assert cache.bytes_held == places["segments/a"].length
    # All pieces at once take the place of those of each instance.
    worker_cache(str(tmp_path), "apart", (c,), "run")
    assert cache.bytes_held == 0


def stored_as(folder: Path, file: str) -> ByteRange:
    writer = SegmentWriter(LocalStore(str(folder)), file)
    place = writer.add(rows(10))
    writer.close()
    return place
