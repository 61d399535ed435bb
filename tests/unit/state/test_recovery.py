from __future__ import annotations

from tests.unit.state.samples import a_manifest, a_piece, a_range

from tidegate.state.recovery import BEHIND, drop_unreferenced, referenced, sweep, sweep_behind
from tidegate.state.store.store import Store

ROWS, BITS, OLD = "segments/near/1.arrow", "segments/near/2.arrow", "segments/near/0.arrow"
PIECE = a_piece(ROWS, matched={"0": a_range(BITS)})


def with_files(store: Store, *paths: str) -> None:
    for path in paths:
        store.write(path, [b"x"])


def test_rows_and_matched_bits_are_referenced() -> None:
    assert referenced([PIECE, a_piece(ROWS, offset=64)]) == {ROWS, BITS}


def test_a_sweep_deletes_segment_files_that_the_manifest_does_not_name_and_nothing_else(store: Store) -> None:
    with_files(store, ROWS, BITS, OLD, "manifests/0000000001.json", "lock")
    assert sweep(store, a_manifest(1, PIECE)) == [OLD]
    assert store.list() == ["lock", "manifests/0000000001.json", ROWS, BITS]


def test_without_a_manifest_all_segment_files_go(store: Store) -> None:
    with_files(store, ROWS, BITS, "plans/0000000000.json")
    assert sweep(store, None) == [ROWS, BITS]
    assert store.list() == ["plans/0000000000.json"]


def test_a_sweep_takes_unfinished_atomic_writes_but_not_a_rivals_lock(store: Store) -> None:
    with_files(store, "plans/.tmp-ab-1.json", ".tmp-cd-lock")
    assert sweep(store, None) == ["plans/.tmp-ab-1.json"]
    assert store.list(temporary=True) == [".tmp-cd-lock"]


def test_what_a_batch_let_go_of_is_dropped_without_a_listing(store: Store) -> None:
    stray = "segments/near/stray.arrow"
    with_files(store, ROWS, BITS, OLD, stray)
    assert drop_unreferenced(store, before=[a_piece(OLD), PIECE], after=[a_piece(ROWS)]) == [OLD, BITS]
    assert store.list() == [ROWS, stray], "a stray file is not looked for"


def test_a_file_that_one_living_piece_still_needs_is_kept(store: Store) -> None:
    with_files(store, ROWS)
    assert drop_unreferenced(store, [a_piece(ROWS), a_piece(ROWS, 64)], [a_piece(ROWS, 64)]) == []
    assert store.exists(ROWS)


def test_a_sweep_between_batches_deletes_what_failed_attempts_left_long_ago(store: Store) -> None:
    def path(batch: int, rest: str = "0-ab.arrow") -> str:
        return f"segments/near/{batch:010d}-{rest}"

    newest = 20
    oldest = newest + 1 - BEHIND
    gone = [path(3), path(3, "1-cd.parquet"), path(oldest - 1)]
    stays = [path(2), path(4), path(oldest), path(newest), path(newest + 1), ROWS]
    with_files(store, *gone, *stays, "manifests/0000000003.json")
    needed = (a_piece(path(2)), a_piece(ROWS, matched={"0": a_range(path(4))}))
    assert sweep_behind(store, a_manifest(newest, *needed)) == sorted(gone)
    assert set(store.list("segments")) == set(stays)
    assert sweep_behind(store, a_manifest(newest, *needed)) == []
