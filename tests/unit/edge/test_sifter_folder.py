from __future__ import annotations

import json
import os
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tidegate.edge.folder_files import BYTES_MAX
from tidegate.edge.node_counts import NodeCounts
from tidegate.edge.sifter_folder import KEPT, SifterFolder
from tidegate.sift.filter.sifter import Sifter
from tidegate.sift.queries.axes import Axis
from tidegate.sift.regions import Domain

SIFTER = Sifter.passing_everything((Axis("x"),), Domain(np.zeros(1), np.ones(1)))


def version(number: int, epoch: int = 1) -> Sifter:
    return replace(SIFTER, version=number, epoch=epoch)


@pytest.fixture(params=["a directory", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> SifterFolder:
    return SifterFolder(
        str(tmp_path / "pickups") if request.param == "a directory" else f"memory://{tmp_path}"
    )


def test_the_newest_version_of_the_newest_run_counts(folder: SifterFolder) -> None:
    assert folder.newest() is None
    assert folder.publish(version(9)) == "sifter-1-9.json"
    assert folder.publish(version(10), binary=True) == "sifter-1-10.bin"
    assert folder.newest() == version(10)
    assert folder.newest(above=(1, 10)) is None
    folder.publish(version(0, epoch=2))
    folder.publish(version(11))
    assert folder.newest() == version(0, epoch=2)


def test_old_sifters_go(tmp_path: Path) -> None:
    folder = SifterFolder(str(tmp_path))
    folder.publish(version(900, epoch=0))
    for number in range(KEPT + 3):
        folder.publish(version(number))
    assert folder.newest() == version(KEPT + 2)
    assert {file.name for file in tmp_path.iterdir()} == {f"sifter-1-{3 + i}.json" for i in range(KEPT)}


def test_a_run_has_an_epoch_above_all_that_it_finds(folder: SifterFolder) -> None:
    assert folder.next_epoch(now_us=500) == 500
    folder.publish(version(3, epoch=700))
    assert folder.next_epoch(now_us=500) == 701, "the clock was set back"
    folder.write_counts(NodeCounts("east", "a", 900, 1))
    assert folder.next_epoch(now_us=500) == 901, "the folder was emptied while a node ran"
    folder.write_counts(NodeCounts("west", "a", 2**63 - 1, 1))
    assert folder.next_epoch(now_us=500) == 901, "no clock has ever been there"
    assert folder.next_epoch(now_us=1000) == 1000


def test_counts_are_replaced_and_come_back(folder: SifterFolder) -> None:
    assert folder.counts_of("east") is None
    folder.write_counts(NodeCounts("east", "a", 1, 1, 5, 5))
    folder.write_counts(NodeCounts("east", "a", 1, 1, 6, 6, 0, 0, 0, (6,), (0,), (0,)))
    found = folder.counts_of("east")
    assert found is not None
    assert (found.offered, found.regions_offered) == (6, (6,))
    assert folder.counts() == [found]


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(50 << 30)  # a file with a hole


def deep(path: Path) -> None:
    path.write_bytes(b"[" * (BYTES_MAX - 1))


def deep_field(path: Path) -> None:
    path.write_bytes(b'{"node": ' + b'{"a":' * 200_000)


def text(content: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(content)

    return write


HOSTILE: dict[str, Callable[[Path], None]] = {
    "a link to an endless file": endless,
    "a link to itself": lambda path: path.symlink_to(path),
    "a link to nowhere": lambda path: path.symlink_to(path.with_name("nowhere")),
    "a pipe that nobody writes": pipe,
    "a directory": lambda path: path.mkdir(),
    "more than memory": huge,
    "deep json": deep,
    "a deep field": deep_field,
    "nothing": text(b""),
    "no utf-8": text(b'{"node": "\xff\xfe", "kind": "\xff"}'),
    "a list": text(b"[]"),
    "a number": text(b"1e999"),
    "a number that is none": text(b"NaN"),
    "a long number": text(b"9" * 100_000),
    "a surrogate": text(b'{"node": "\\ud800", "kind": "\\ud800"}'),
}
HOSTILE_COUNTS = {
    name: text(b'{"node": "evil", "incarnation": "a", "epoch": 1, "version": 1, %s}' % fields)
    for name, fields in {
        "huge counts": b'"offered": 1' + b"0" * 30 + b', "kept": 1' + b"0" * 30,
        "counts beyond all rows": b'"offered": 9007199254740991, "kept": 9007199254740991',
        "NaN": b'"offered": NaN',
        "infinity": b'"offered": 1e999',
        "a fraction": b'"offered": 0.5',
        "a negative number": b'"offered": -5, "kept": -5',
        "other fields": b'"spins": {"a": [1]}, "offered": "5"',
        "counts of regions that do not fit": b'"regions_offered": [1, 2]',
    }.items()
}
RAW = version(7).to_json()
WRONG: dict[str, dict[str, Any]] = {
    "another version": {"version": 8},
    "a version beyond all": {"version": 10**40},
    "a column that is no text": {"axes": [RAW["axes"][0] | {"column": 5}]},
    "a column that is a list": {"axes": [RAW["axes"][0] | {"column": ["x"]}]},
    "categories that are no text": {"axes": [RAW["axes"][0] | {"kind": "category", "categories": [1]}]},
    "a threshold of NaN": {"thresholds": [float("nan")]},
    "a negative threshold": {"thresholds": [-0.5]},
    "deep thresholds": {"thresholds": [[[[[0.5]]]]]},
    "an endless domain": {"axes": [RAW["axes"][0] | {"low": float("-inf")}]},
    "a share of NaN": {"sample_share": float("nan")},
    "a share that is text": {"z": "1"},
    "cuts to itself": {"cuts": [{"column": "x", "at": 0.5, "below": "cut 0", "above": "region 0"}]},
    "a name that is no text": {"name": {"a": 1}},
}
HOSTILE_SIFTERS = {name: text(json.dumps(RAW | fields).encode()) for name, fields in WRONG.items()}


@pytest.mark.parametrize("name", [*HOSTILE, *HOSTILE_COUNTS])
def test_whatever_lies_there_as_counts_is_passed_over_and_named_once(tmp_path: Path, name: str) -> None:
    said: list[str] = []
    folder = SifterFolder(str(tmp_path), said.append)
    folder.write_counts(NodeCounts("east", "a", 1, 1, 5, 5))
    (HOSTILE | HOSTILE_COUNTS)[name](tmp_path / "counts-evil.json")
    assert_bounded(lambda: [folder.counts() for _ in range(3)], said, "counts-evil.json")
    assert [counts.node for counts in folder.counts()] == ["east"]
    assert folder.counts_of("evil") is None
    assert folder.next_epoch(0) == 2


@pytest.mark.parametrize("name", [*HOSTILE, *HOSTILE_SIFTERS])
def test_whatever_lies_there_as_a_sifter_is_passed_over_and_named_once(tmp_path: Path, name: str) -> None:
    said: list[str] = []
    folder = SifterFolder(str(tmp_path), said.append)
    folder.publish(version(6))
    (HOSTILE | HOSTILE_SIFTERS)[name](tmp_path / "sifter-1-7.json")
    assert_bounded(lambda: [folder.newest() for _ in range(3)], said, "sifter-1-7.json")
    assert folder.newest() == version(6)
    for number in range(8, 9 + KEPT):
        folder.publish(version(number))
    assert folder.newest() == version(8 + KEPT)


@pytest.mark.parametrize("content", [SIFTER.to_bytes()[:-1], b"TGSF" + bytes(200), version(4).to_bytes()])
def test_bytes_that_are_no_sifter_of_that_name_are_passed_over(tmp_path: Path, content: bytes) -> None:
    said: list[str] = []
    folder = SifterFolder(str(tmp_path), said.append)
    (tmp_path / "sifter-1-2.bin").write_bytes(content)
    (tmp_path / ".tmp-sifter-1-9.bin").write_bytes(version(9).to_bytes())
    assert folder.newest() is None
    assert len(said) == 1


def assert_bounded(action: Callable[[], object], said: list[str], file: str) -> None:
    tracemalloc.start()
    began = time.process_time()
    action()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert time.process_time() - began < 5
    assert peak < 10 * BYTES_MAX
    assert len(said) == 1
    assert f"/{file} is passed over: " in said[0]
    assert len(said[0]) < 1000


def test_a_file_that_was_damaged_is_read_again_when_it_has_changed(tmp_path: Path) -> None:
    said: list[str] = []
    folder = SifterFolder(str(tmp_path), said.append)
    whole = version(7).to_bytes()
    (tmp_path / "sifter-1-7.bin").write_bytes(whole[:50])
    assert folder.newest() is None
    (tmp_path / "sifter-1-7.bin").write_bytes(whole)
    assert folder.newest() == version(7)
    assert len(said) == 1
