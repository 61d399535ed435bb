from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.unit.state.samples import a_manifest, a_piece, a_range, alter, flipped

from tidegate.errors import StateError
from tidegate.model.manifest import Manifest
from tidegate.state.manifest_log import ManifestLog
from tidegate.state.store.memory import MemoryStore
from tidegate.state.store.sealed import seal
from tidegate.state.store.store import Store


@pytest.fixture
def memory(request: pytest.FixtureRequest) -> Store:
    return MemoryStore(request.node.nodeid)


def growing(count: int, start: int = 0) -> list[Manifest]:
    """A piece more in every batch."""
    return [a_manifest(b, *(a_piece(f"s/{i}") for i in range(b + 1))) for b in range(start, start + count)]


def committed(store: Store, manifests: list[Manifest], every: int = 4) -> ManifestLog:
    log = ManifestLog(store, snapshot_every=every)
    for manifest in manifests:
        log.commit(manifest)
    return log


def snapshots(store: Store) -> list[int]:
    files = [json.loads(store.read(path)) for path in store.list("manifests")]
    return [file["batch"] for file in files if file["body"]["base"] is None]


def test_an_empty_checkpoint_has_no_manifest(store: Store) -> None:
    log = ManifestLog(store)
    assert log.load_latest() is None
    assert log.latest_batch() is None


def test_every_manifest_of_a_chain_loads_back_equal(store: Store) -> None:
    manifests = growing(10)
    log = committed(store, manifests)
    assert [log.load(m.batch) for m in manifests] == manifests
    assert ManifestLog(store).load_latest() == manifests[-1]
    assert log.latest_batch() == 9


def test_pieces_that_leave_change_or_move_are_written_down(memory: Store) -> None:
    a, b, c, d = (a_piece(f"s/{x}") for x in "abcd")
    b2 = replace(b, matched={"1": a_range("s/bits")})
    manifests = [a_manifest(0, a, b, c), a_manifest(1, b2, c, d), a_manifest(2, d, b2), a_manifest(3)]
    log = committed(memory, manifests, every=10)
    assert snapshots(memory) == [0]
    assert [log.load(m.batch) for m in manifests] == manifests


def test_a_delta_holds_only_what_changed(memory: Store) -> None:
    pieces = [a_piece(f"s/{i}") for i in range(500)]
    committed(memory, [a_manifest(0, *pieces), a_manifest(1, *pieces, a_piece("s/new"))])
    assert memory.size("manifests/0000000001.json") < memory.size("manifests/0000000000.json") / 50


def test_a_snapshot_comes_every_so_many_batches(memory: Store) -> None:
    committed(memory, growing(10), every=4)
    assert snapshots(memory) == [0, 4, 8]


def test_a_log_that_does_not_know_the_manifest_before_writes_a_snapshot(memory: Store) -> None:
    committed(memory, growing(2))
    committed(memory, growing(1, start=2))
    assert snapshots(memory) == [0, 2]


def test_a_log_that_has_loaded_the_latest_goes_on_with_deltas(memory: Store) -> None:
    committed(memory, growing(2))
    log = ManifestLog(memory, snapshot_every=4)
    log.load_latest()
    for manifest in growing(3, start=2):
        log.commit(manifest)
    assert snapshots(memory) == [0, 4]
    assert log.load(3) == growing(4)[-1]


@pytest.mark.parametrize("again", [0, 1])
@pytest.mark.parametrize("fresh", [True, False])
def test_a_batch_that_is_done_is_not_committed_again(memory: Store, again: int, fresh: bool) -> None:
    log = committed(memory, growing(2))
    before = {path: memory.read(path) for path in memory.list()}
    with pytest.raises(StateError, match=f"CHECKPOINT_BATCH_ALREADY_COMMITTED.*Batch {again} .*manifest 1"):
        (ManifestLog(memory) if fresh else log).commit(a_manifest(again))
    assert {path: memory.read(path) for path in memory.list()} == before


@pytest.mark.parametrize("batch", [0, 1])
def test_a_piece_that_is_listed_twice_is_refused(memory: Store, batch: int) -> None:
    log = committed(memory, growing(batch))
    with pytest.raises(StateError, match=r"INTERNAL_PIECE_DUPLICATED.*s/x@0"):
        log.commit(a_manifest(batch, a_piece("s/x"), a_piece("s/y"), a_piece("s/x", level=1)))
    assert log.latest_batch() == (batch - 1 if batch else None)


@pytest.mark.parametrize("batch", [4, 5, 6])
@pytest.mark.parametrize("damage", ["flip", "truncate", "empty", "delete"])
def test_damage_anywhere_in_the_needed_chain_is_found(memory: Store, batch: int, damage: str) -> None:
    committed(memory, growing(7), every=4)
    path = f"manifests/{batch:010d}.json"
    data = memory.read(path)
    if damage == "delete":
        memory.delete(path)
    else:
        alter(memory, path, {"flip": flipped(data, 90), "truncate": data[:-5], "empty": b""}[damage])
    if (batch, damage) == (6, "delete"):
        with pytest.raises(StateError, match=r"CHECKPOINT_FILE_MISSING.*Manifest 6"):
            ManifestLog(memory).load(6)
        return
    with pytest.raises(StateError, match=rf"Manifest 6 cannot be loaded.*{path}"):
        ManifestLog(memory).load_latest()


def test_damage_before_the_snapshot_does_no_harm(memory: Store) -> None:
    committed(memory, growing(7), every=4)
    alter(memory, "manifests/0000000002.json", b"")
    assert ManifestLog(memory).load_latest() == growing(7)[-1]


def test_a_damaged_newest_manifest_is_not_replaced_by_an_older_one(memory: Store) -> None:
    committed(memory, growing(3))
    alter(memory, "manifests/0000000002.json", b"{")
    with pytest.raises(StateError, match=r"CHECKPOINT_FILE_DAMAGED.*0000000002"):
        ManifestLog(memory).load_latest()


@pytest.mark.parametrize("keep", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("fresh", [True, False])
def test_a_purge_keeps_the_newest_manifests_loadable(store: Store, keep: int, fresh: bool) -> None:
    manifests = growing(11)
    log = committed(store, manifests, every=4)
    (ManifestLog(store) if fresh else log).purge(keep)
    assert [ManifestLog(store).load(m.batch) for m in manifests[-keep:]] == manifests[-keep:]
    oldest_snapshot = max(b for b in (0, 4, 8) if b <= 11 - keep)
    assert log.batches() == list(range(oldest_snapshot, 11))


def test_a_purge_of_few_manifests_deletes_none(memory: Store) -> None:
    log = committed(memory, growing(5), every=1)
    log.purge(keep=5)
    assert log.batches() == [0, 1, 2, 3, 4]
    log.purge(keep=2)
    assert log.batches() == [3, 4]


def test_other_files_in_the_folder_are_left_alone(memory: Store) -> None:
    memory.write("manifests/notes.txt", [b"mine"])
    log = committed(memory, growing(3), every=1)
    log.purge(keep=1)
    assert memory.list() == ["manifests/0000000002.json", "manifests/notes.txt"]


def test_a_snapshot_distance_below_one_is_refused(memory: Store) -> None:
    with pytest.raises(StateError, match=r"INTERNAL_TUNING_INVALID.*at least 1"):
        ManifestLog(memory, snapshot_every=0)


@pytest.mark.parametrize("missing", ["pieces", "debts", "chain"])
def test_a_delta_that_does_not_say_what_changed_is_refused(memory: Store, missing: str) -> None:
    log = committed(memory, growing(2))
    path = "manifests/0000000001.json"
    body = json.loads(memory.read(path))["body"]
    del body[missing]
    alter(memory, path, seal("manifest", 1, body))
    with pytest.raises(StateError, match=f"{path}.*missing required field `{missing}`"):
        log.load(1)


def test_of_two_runs_that_commit_one_batch_the_second_fails_and_changes_nothing(store: Store) -> None:
    first, second = committed(store, growing(3)), ManifestLog(store)
    second.load_latest()
    mine, other = a_manifest(3, a_piece("s/mine")), a_manifest(3, a_piece("s/other"))
    first.commit(mine, "run one")
    with pytest.raises(StateError, match=r"CHECKPOINT_BATCH_ALREADY_COMMITTED.*Batch 3 .*another run"):
        second.commit(other, "run two")
    # Not even the same state: the other run may have gone on from it.
    with pytest.raises(StateError, match=r"CHECKPOINT_BATCH_ALREADY_COMMITTED"):
        second.commit(mine, "run two")
    assert ManifestLog(store).load_latest() == mine


def test_a_put_of_our_own_that_a_file_system_tried_twice_is_a_commit() -> None:
    class Impatient(MemoryStore):
        """Its first answer gets lost, so that it puts again, and finds its own file."""

        def write_new(self, path: str, data: bytes) -> bool:
            super().write_new(path, data)
            return super().write_new(path, data)

    log = ManifestLog(Impatient("impatient"))
    log.commit(a_manifest(0), "a run")
    log.commit(a_manifest(1), "a run")
    assert ManifestLog(Impatient("impatient")).load_latest() == a_manifest(1)


def _with(store: Store, batch: int, **changed: object) -> None:
    """A manifest that says something else, under a valid seal."""
    path = f"manifests/{batch:010d}.json"
    alter(store, path, seal("manifest", batch, json.loads(store.read(path))["body"] | changed))


@pytest.mark.parametrize("base", [2, 3, 7, -1])
def test_a_chain_that_does_not_lead_back_is_refused(memory: Store, base: int) -> None:
    committed(memory, growing(3))
    _with(memory, 2, base=base)
    with pytest.raises(StateError, match=rf"CHECKPOINT_FILE_DAMAGED.*0000000002\.json.*batch {base}"):
        ManifestLog(memory).load_latest()


def test_a_chain_whose_links_do_not_fit_is_refused(memory: Store) -> None:
    log = committed(memory, [a_manifest(0, a_piece("s/x")), a_manifest(1)])
    _with(memory, 0, manifest=json.loads(seal("manifest", 0, a_manifest(0)))["body"])
    with pytest.raises(StateError, match=r"CHECKPOINT_FILE_DAMAGED.*0000000001\.json.*'s/x@0'"):
        log.load(1)
