from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tidegate.edge.sifter_folder import (
    VERSIONS_KEPT,
    NodeCounts,
    counts_of,
    newest,
    offered,
    publish,
    write_counts,
)
from tidegate.errors import StateError
from tidegate.sift.filter.sifter import Sifter
from tidegate.sift.queries.axes import Axis
from tidegate.sift.regions import Domain

SIFTER = Sifter.passing_everything((Axis("x"),), Domain(np.zeros(1), np.ones(1)))


def version(number: int) -> Sifter:
    return replace(SIFTER, version=number)


@pytest.fixture(params=["a directory", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "pickups") if request.param == "a directory" else f"memory://{tmp_path}"


def test_the_newest_version_counts(folder: str) -> None:
    assert newest(folder).sifter is None
    assert publish(folder, version(9)) == "sifter-000009.json"
    assert publish(folder, version(10), binary=True) == "sifter-000010.bin"
    assert newest(folder).sifter == version(10)
    assert newest(folder, above=10).sifter is None
    assert publish(folder, version(1_234_567)) == "sifter-1234567.json"
    assert newest(folder).sifter == version(1_234_567)


def test_old_versions_go(folder: str, tmp_path: Path) -> None:
    for number in range(VERSIONS_KEPT + 3):
        publish(folder, version(number))
    assert newest(folder).sifter == version(VERSIONS_KEPT + 2)
    if not folder.startswith("memory"):
        assert sorted(file.name for file in Path(folder).iterdir())[0] == "sifter-000003.json"


def test_damaged_files_are_passed_over_with_the_reason(tmp_path: Path) -> None:
    folder = str(tmp_path)
    publish(folder, version(1))
    (tmp_path / "sifter-000002.bin").write_bytes(version(2).to_bytes()[:-1])
    (tmp_path / "sifter-000003.bin").write_bytes(version(4).to_bytes())
    (tmp_path / ".tmp-sifter-000009.bin").write_bytes(version(9).to_bytes())
    found = newest(folder)
    assert found.sifter == version(1)
    assert "checksum" in found.damaged["sifter-000002.bin"]
    assert found.damaged["sifter-000003.bin"] == "it says that it is version 4"
    assert newest(folder, passed_over=found.damaged).damaged == {}


def test_what_all_nodes_were_offered_is_added_up(folder: str) -> None:
    assert offered(folder) == NodeCounts("all", -1)
    write_counts(folder, NodeCounts("a-1", 6, 100, 60, 40, 1, 2, 3, (90, 8), (40, 0), (1, 0)))
    write_counts(folder, NodeCounts("b", 7, 10, 8, 2, 0, 0, 0, (4, 3, 3), (2, 0, 0), (0, 0, 0)))
    write_counts(folder, NodeCounts("c", 7, 20, 19, 1, 1, 1, 1, (9, 5, 5), (1, 0, 0), (1, 0, 0)))
    assert offered(folder) == NodeCounts("all", 7, 130, 87, 43, 2, 3, 4, (13, 8, 8), (3, 0, 0), (1, 0, 0))


def test_counts_are_replaced_and_come_back(folder: str) -> None:
    assert counts_of(folder, "east") is None
    write_counts(folder, NodeCounts("east", 1, 5))
    write_counts(folder, NodeCounts("east", 1, 6, regions_offered=(6,)))
    assert counts_of(folder, "east") == NodeCounts("east", 1, 6, regions_offered=(6,))


@pytest.mark.parametrize("text", ["{", "[]", '{"node": "east", "spins": 3}'])
def test_damaged_counts_are_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "counts-east.json").write_text(text)
    with pytest.raises(StateError, match=r"SIFT_COUNTS_DAMAGED.*counts of node east are damaged"):
        offered(str(tmp_path))
