from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from tidegate.errors import StateError
from tidegate.state.store.downloads import DRAFT_SECONDS_MAX, Downloads, private_directory
from tidegate.state.store.remote import RemoteStore


class CountingFileSystem(MemoryFileSystem):  # type: ignore[misc]
    """fsspec's memory file system, with every fetch and rename written down."""

    cachable = False
    store: dict[str, Any] = {}  # noqa: RUF012  (fsspec's own name and shape)
    pseudo_dirs = [""]  # noqa: RUF012

    def __init__(self, refuse_to_replace: bool = False, cut: int = 0) -> None:
        super().__init__()
        self.store, self.pseudo_dirs = {}, [""]
        self.fetched: list[str] = []
        self.moved: list[str] = []
        self.refuse_to_replace = refuse_to_replace
        self.cut = cut

    def get_file(self, rpath: str, lpath: str, **kwargs: Any) -> None:
        self.fetched.append(rpath)
        Path(lpath).write_bytes(self.cat_file(rpath)[self.cut :])

    def mv(self, path1: str, path2: str, **kwargs: Any) -> None:
        if self.refuse_to_replace and self.exists(path2):
            raise OSError("rename over a file")
        self.moved.append(path2)
        super().mv(path1, path2, **kwargs)


def a_store(fs: CountingFileSystem, cache: Path, url: str = "/root", limit: int = 1 << 20) -> RemoteStore:
    return RemoteStore(url, file_system=fs, cache_directory=str(cache), cache_bytes=limit)


def test_a_file_is_fetched_once_even_by_two_processes_of_one_machine(tmp_path: Path) -> None:
    fs = CountingFileSystem()
    a_store(fs, tmp_path).write("f", [b"abc"])
    for _ in range(2):  # a second store stands for a second process: nothing is shared but the directory
        assert a_store(fs, tmp_path).map("f").to_pybytes() == b"abc"
    assert fs.fetched == ["/root/f"]


def test_another_file_under_an_old_name_is_fetched_again(tmp_path: Path) -> None:
    store = a_store(CountingFileSystem(), tmp_path)
    store.write("f", [b"abc"])
    store.map("f")
    store.delete("f")
    store.write("f", [b"xyz"])
    assert store.map("f").to_pybytes() == b"xyz"


def test_a_file_that_is_fetched_in_part_is_refused(tmp_path: Path) -> None:
    store = a_store(CountingFileSystem(cut=1), tmp_path)
    store.write("f", [b"abc"])
    with pytest.raises(StateError, match=r"CHECKPOINT_FILE_TRUNCATED.*: f. Got: 2 of 3 bytes"):
        store.map("f")


def test_an_object_store_is_given_a_single_put_and_no_rename(tmp_path: Path) -> None:
    fs = CountingFileSystem()
    a_store(fs, tmp_path, url="s3://bucket/root").write_atomic("m/1.json", b"x")
    assert fs.moved == []
    assert fs.cat_file("s3://bucket/root/m/1.json") == b"x"


def test_s3_puts_a_new_file_on_the_condition_that_the_name_is_free(tmp_path: Path) -> None:
    class S3(CountingFileSystem):
        def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
            conditions.append(mode)
            super().pipe_file(path, value, mode)

    conditions: list[str] = []
    store = a_store(S3(), tmp_path, url="s3://bucket/root")
    assert store.write_new("m/1.json", b"x")
    assert not store.write_new("m/1.json", b"y")
    assert store.read("m/1.json") == b"x"
    assert conditions == ["create", "create"]


def test_any_other_file_system_gets_a_rename(tmp_path: Path) -> None:
    fs = CountingFileSystem()
    a_store(fs, tmp_path).write_atomic("m/1.json", b"x")
    assert fs.moved == ["/root/m/1.json"]


def test_a_file_system_that_will_not_rename_over_a_file_can_still_replace_one(tmp_path: Path) -> None:
    store = a_store(CountingFileSystem(refuse_to_replace=True), tmp_path)
    store.write_atomic("lock", b"old")
    store.write_atomic("lock", b"new")
    assert store.read("lock") == b"new"
    assert store.list(temporary=True) == []


def put(downloads: Downloads, key: str, size: int) -> int:
    def fetch(path: str) -> None:
        Path(path).write_bytes(bytes(size))

    mapped: int = downloads.map(key, fetch).size
    return mapped


def held(downloads: Downloads) -> int:
    return sum(entry.stat().st_size for entry in os.scandir(downloads.directory))


def is_held(downloads: Downloads, key: str) -> bool:
    fetched: list[str] = []

    def fetch(path: str) -> None:
        fetched.append(path)
        raise InterruptedError

    try:
        downloads.map(key, fetch)
    except InterruptedError:
        return False
    return not fetched


def test_the_copy_that_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    now = [1_000.0]
    downloads = Downloads(str(tmp_path), 100, lambda: now[0])
    for key in ("a", "b", "a", "c"):  # a is used again after b
        now[0] += 1
        put(downloads, key, 40)
    assert held(downloads) == 80
    assert not is_held(downloads, "b")
    assert is_held(downloads, "a")
    assert is_held(downloads, "c")


def test_a_copy_above_the_limit_is_still_served(tmp_path: Path) -> None:
    downloads = Downloads(str(tmp_path), 10)
    put(downloads, "small", 5)
    assert put(downloads, "big", 50) == 50
    assert held(downloads) == 50


def test_the_draft_of_a_dead_process_is_evicted_and_one_in_use_is_not(tmp_path: Path) -> None:
    now = 10 * DRAFT_SECONDS_MAX
    for name, age in (("dead", DRAFT_SECONDS_MAX + 1), ("alive", 1.0)):
        (tmp_path / f".tmp-{name}").write_bytes(b"x" * 50)
        os.utime(tmp_path / f".tmp-{name}", (now - age, now - age))
    put(Downloads(str(tmp_path), 10, lambda: now), "a", 10)
    assert sorted(p.name for p in tmp_path.glob(".tmp-*")) == [".tmp-alive"]


def test_a_fetch_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    downloads = Downloads(str(tmp_path), 10)
    assert not is_held(downloads, "a")
    assert list(tmp_path.iterdir()) == []


def test_the_copies_of_a_user_lie_where_no_other_user_can_put_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    mine = private_directory("x")
    assert mine == private_directory("x")
    assert os.stat(os.path.dirname(mine)).st_mode & 0o077 == 0
    monkeypatch.setattr("os.getuid", lambda: 12345)
    os.makedirs(tmp_path / "tidegate-12345")  # by somebody who is not user 12345
    assert private_directory("x") != private_directory("x")
