"""What a worker process keeps open between batches, and between runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.state.samples import rows

from tidegate.errors import StateError
from tidegate.model.pieces import ByteRange
from tidegate.state.segments import SegmentWriter
from tidegate.state.store.local import LocalStore
from tidegate.worker.runtime.worker_cache import worker_cache

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
