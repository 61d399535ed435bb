"""What a worker process keeps open between batches, and between runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.state.samples import a_piece, rows

from tidegate.errors import StateError
from tidegate.model.pieces import ByteRange, Piece
from tidegate.model.routing import Placement, Routing
from tidegate.state.segments import SegmentCache, SegmentWriter
from tidegate.state.store.local import LocalStore
from tidegate.worker.runtime import worker_cache as caches
from tidegate.worker.runtime.state_order import StateOrder
from tidegate.worker.runtime.worker_cache import AWAY_MAX, Caches, Views, worker_cache

FILE = "segments/near/1.arrow"


def an_order(
    folder: Path, run: str, *pieces: Piece, batch: int = 0, instance: int | None = None
) -> StateOrder:
    routing = Routing(0, 2, Placement((0, 1)))
    return StateOrder(str(folder), batch, 20, 10, routing, pieces, run=run, instance=instance)


def stored(folder: Path) -> ByteRange:
    writer = SegmentWriter(LocalStore(str(folder)), FILE)
    place = writer.add(rows(10))
    writer.close()
    return place


def test_the_batches_of_a_run_share_what_is_open(tmp_path: Path) -> None:
    cache = worker_cache("near", an_order(tmp_path, "run 1"))
    assert worker_cache("near", an_order(tmp_path, "run 1")) is cache


def test_a_file_altered_between_two_runs_is_not_taken_from_the_map_of_the_first(tmp_path: Path) -> None:
    place = stored(tmp_path)
    worker_cache("near", an_order(tmp_path, "run 1")).batch(place)
    with (tmp_path / FILE).open("r+b") as file:
        file.seek(place.offset + place.length // 2)
        file.write(b"\xff\x00\xff")
    with pytest.raises(StateError, match=f"damaged: {FILE}"):
        worker_cache("near", an_order(tmp_path, "run 2")).batch(place)


def test_what_other_instances_of_the_worker_need_stays_open(tmp_path: Path) -> None:
    # A task that knows its own pieces only.
    places = {file: stored_as(tmp_path, file) for file in ("segments/a", "segments/b", "segments/c")}
    a, b, c = (a_piece(place.file) for place in places.values())

    def opened(batch: int, instance: int, *pieces: Piece) -> SegmentCache:
        cache = worker_cache("apart", an_order(tmp_path, "run", *pieces, batch=batch, instance=instance))
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
    worker_cache("apart", an_order(tmp_path, "run", c))
    assert cache.bytes_held == 0


def stored_as(folder: Path, file: str) -> ByteRange:
    writer = SegmentWriter(LocalStore(str(folder)), file)
    place = writer.add(rows(10))
    writer.close()
    return place


class View:
    """A prepared run of so many bytes."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


def filled(kept: Caches[Views], url: str, operator: str, count: int) -> Views:
    """The views of an operator after a batch that prepared so many runs of ten bytes."""
    views = kept.of(url, operator, "run", Views)
    for number in range(count):
        views.put((f"{operator}{number}", 0), View(10), kept=True)
    return views


def test_the_caches_of_all_checkpoints_share_one_limit() -> None:
    kept: Caches[Views] = Caches(100, 100)
    for number in range(20):
        filled(kept, f"checkpoint {number}", "near", 6)
        # What the present task adds is let go of by the next.
        kept.of(f"checkpoint {number}", "near", "run", Views)
        assert kept.bytes_held <= 100
    assert ("checkpoint 19", "near") in kept
    assert ("checkpoint 0", "near") not in kept


def test_the_operators_of_a_checkpoint_have_equal_parts() -> None:
    kept: Caches[Views] = Caches(100, 60)
    near = filled(kept, "checkpoint", "near", 9)
    assert near.bytes_held == 60
    far = filled(kept, "checkpoint", "far", 9)
    assert (near.bytes_held, far.bytes_held) == (50, 50)


def test_checkpoints_that_hold_nothing_are_forgotten_too() -> None:
    kept: Caches[Views] = Caches(100, 100)
    for number in range(1_000):
        kept.of(f"checkpoint {number}", "near", "run", Views)
    assert len(kept) <= caches._REMEMBERED


def test_mapped_segments_are_let_go_of_when_their_limit_shrinks(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    writer = SegmentWriter(store, FILE)
    places = [writer.add(rows(10)) for _ in range(4)]
    writer.close()
    cache = worker_cache("near", an_order(tmp_path, "run 1"))
    for place in places:
        cache.batch(place)
    cache.shrink(2 * places[0].length)
    assert cache.bytes_held == 2 * places[0].length
    assert cache.batch(places[0]).num_rows == 10
