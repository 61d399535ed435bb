"""What every store promises, asked of each kind in turn."""

from __future__ import annotations

import errno
import os
import pickle
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from tests.unit.state.samples import make_store

from tidegate.errors import StateError
from tidegate.state.store.local import LocalStore
from tidegate.state.store.memory import MemoryStore
from tidegate.state.store.remote import RemoteStore
from tidegate.state.store.store import Store, open_store


def test_buffers_of_all_sorts_are_joined_into_one_file(store: Store) -> None:
    written = store.write("a/b/c.bin", [b"one", memoryview(b"two"), pa.py_buffer(b"three"), b""])
    assert written == 11
    assert store.read("a/b/c.bin") == b"onetwothree"
    assert store.size("a/b/c.bin") == 11


def test_a_mapped_file_has_the_bytes_that_were_written(store: Store) -> None:
    store.write("f", [b"abc"])
    assert store.map("f").to_pybytes() == b"abc"
    assert store.map("f").to_pybytes() == b"abc"


def test_an_empty_file_can_be_mapped(store: Store) -> None:
    store.write("empty", [])
    assert store.map("empty").size == 0


def test_a_map_outlives_the_file(store: Store) -> None:
    store.write("f", [b"x" * 10_000])
    mapped = store.map("f")
    store.delete("f")
    assert mapped.to_pybytes() == b"x" * 10_000


def test_a_second_write_of_one_name_is_refused(store: Store) -> None:
    store.write("segments/x", [b"first"])
    with pytest.raises(
        StateError, match=r"INTERNAL_FILE_WRITTEN_TWICE.*written twice: segments/x.*immutable"
    ):
        store.write("segments/x", [b"first"])
    assert store.read("segments/x") == b"first"


def test_an_atomic_write_replaces_and_leaves_nothing_else_behind(store: Store) -> None:
    store.write_atomic("m/1.json", b"old and long")
    store.write_atomic("m/1.json", b"new")
    assert store.read("m/1.json") == b"new"
    assert store.list() == ["m/1.json"]
    assert store.list(temporary=True) == []


def test_a_new_file_is_written_only_where_no_file_is(store: Store) -> None:
    assert store.write_new("m/1.json", b"first")
    assert not store.write_new("m/1.json", b"second")
    assert not store.write_new("m/1.json", b"first")
    assert store.read("m/1.json") == b"first"
    assert store.list() == ["m/1.json"]
    assert store.list(temporary=True) == []
    store.delete("m/1.json")
    assert store.write_new("m/1.json", b"third")


@pytest.mark.parametrize("kind", ["local", "memory"])
def test_of_many_that_write_a_new_file_at_once_one_succeeds(kind: str, tmp_path: Path) -> None:
    store = make_store(kind, tmp_path)
    for number in range(30):
        barrier = threading.Barrier(4)
        won: list[bytes] = []

        def write(data: bytes, path: str, barrier: threading.Barrier, won: list[bytes]) -> None:
            barrier.wait()
            if store.write_new(path, data):
                won.append(data)

        path = f"m/{number}.json"
        writers = [
            threading.Thread(target=write, args=(b"%d" % i * 1_000, path, barrier, won)) for i in range(4)
        ]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert won == [store.read(path)]


def test_a_disk_without_hard_links_still_refuses_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: str, target: str) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    store = make_store("local", tmp_path)
    assert store.write_new("m/1.json", b"first")
    assert not store.write_new("m/1.json", b"second")
    assert store.read("m/1.json") == b"first"
    assert store.list(temporary=True) == []


def test_a_full_disk_leaves_no_draft_of_a_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: str, target: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "link", full)
    store = make_store("local", tmp_path)
    with pytest.raises(OSError, match="No space left"):
        store.write_new("m/1.json", b"first")
    assert store.list(temporary=True) == []


# Not fsspec's memory file system, which renames by copy and delete.
@pytest.mark.parametrize("kind", ["local", "memory", "remote-file", "remote-dir"])
def test_a_reader_never_sees_a_part_of_an_atomic_write(kind: str, tmp_path: Path) -> None:
    store = make_store(kind, tmp_path)
    versions = {bytes([65 + i]) * 50_000 for i in range(2)}
    store.write_atomic("f", min(versions))
    done = threading.Event()

    def replace_it() -> None:
        for _ in range(30):
            for version in versions:
                store.write_atomic("f", version)
        done.set()

    writer = threading.Thread(target=replace_it)
    writer.start()
    seen = {store.read("f")}
    while not done.is_set():
        seen.add(store.read("f"))
    writer.join()
    assert seen <= versions


@pytest.mark.parametrize("ask", ["read", "map", "size"])
def test_a_missing_file_is_an_error_that_names_it(store: Store, ask: str) -> None:
    with pytest.raises(StateError, match=r"CHECKPOINT_FILE_MISSING.*missing: no/such\.file.*Restore"):
        getattr(store, ask)("no/such.file")


@pytest.mark.parametrize("ask", ["read", "map", "size"])
def test_a_deleted_file_is_missing(store: Store, ask: str) -> None:
    store.write("f", [b"abc"])
    store.map("f")
    store.delete("f")
    assert not store.exists("f")
    with pytest.raises(StateError, match=r"CHECKPOINT_FILE_MISSING.*missing: f"):
        getattr(store, ask)("f")


def test_deleting_what_is_not_there_is_fine(store: Store) -> None:
    store.delete("never/was")
    assert store.list() == []


def test_a_file_exists_and_a_folder_does_not(store: Store) -> None:
    store.write("a/b", [b"x"])
    assert store.exists("a/b")
    assert not store.exists("a")
    assert not store.exists("a/c")


def test_files_are_listed_sorted_and_relative_at_any_depth(store: Store) -> None:
    for path in ("s/z", "s/a/deep/x", "sibling/y", "top"):
        store.write(path, [b"x"])
    assert store.list("s") == ["s/a/deep/x", "s/z"]
    assert store.list("s/") == ["s/a/deep/x", "s/z"]
    assert store.list() == ["s/a/deep/x", "s/z", "sibling/y", "top"]
    assert store.list("nothing/here") == []


def test_an_unfinished_atomic_write_is_listed_only_when_asked_for(store: Store) -> None:
    store.write("m/.tmp-ab-1.json", [b"ha"])
    store.write("m/1.json", [b"whole"])
    assert store.list("m") == ["m/1.json"]
    assert store.list("m", temporary=True) == ["m/.tmp-ab-1.json"]


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "a/../b", "a//b", "./a", "a/"])
def test_a_path_that_is_not_plain_is_refused(store: Store, path: str) -> None:
    with pytest.raises(StateError, match="INTERNAL_PATH_INVALID"):
        store.write(path, [b"x"])
    with pytest.raises(StateError, match="INTERNAL_PATH_INVALID"):
        store.read(path)


def test_a_pickled_store_sees_the_same_files(store: Store) -> None:
    store.write("f", [b"abc"])
    assert pickle.loads(pickle.dumps(store)).map("f").to_pybytes() == b"abc"


@pytest.mark.parametrize("kind", ["local", "memory"])
def test_the_url_is_enough_to_open_the_same_store_again(kind: str, tmp_path: Path) -> None:
    first = make_store(kind, tmp_path)
    first.write("f", [b"abc"])
    again = open_store(first.url)
    assert type(again) is type(first)
    assert again.read("f") == b"abc"


def test_the_scheme_chooses_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for url in ("x", f"{tmp_path}/x", f"file://{tmp_path}/x", f"file:{tmp_path}/x"):
        opened = open_store(url)
        assert isinstance(opened, LocalStore)
        assert opened.root == f"{tmp_path}/x"
    assert isinstance(open_store("memory://x"), MemoryStore)
    assert isinstance(open_store(f"local://{tmp_path}/x"), RemoteStore)


@pytest.mark.parametrize("kind", ["directory", "loop", "file in place of its folder"])
def test_something_in_the_place_of_a_file_is_an_error_with_its_name(tmp_path: Path, kind: str) -> None:
    store = LocalStore(str(tmp_path))
    place = tmp_path / "plans" / "x.json"
    if kind == "directory":
        place.mkdir(parents=True)
    elif kind == "loop":
        place.parent.mkdir()
        place.symlink_to("x.json")
    else:
        place.parent.write_bytes(b"")
    calls: list[Callable[[], object]] = [
        lambda: store.read("plans/x.json"),
        lambda: store.map("plans/x.json"),
    ]
    if kind != "loop":
        calls.append(lambda: store.write_atomic("plans/x.json", b""))
    for call in calls:
        with pytest.raises(StateError, match=r"CHECKPOINT_FILE_UNUSABLE.*plans/x\.json"):
            call()
    assert store.list("plans") == [] or kind == "loop"
