from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tidegate.edge.node import TICK_SECONDS, Node
from tidegate.edge.sifter_folder import SifterFolder
from tidegate.sift.filter.decision import SAMPLE
from tidegate.sift.filter.sifter import Sifter
from tidegate.sift.queries.axes import Axis
from tidegate.sift.regions import Domain, Regions

HALVES = Regions(
    Domain(np.zeros(1), np.ones(1)),
    np.zeros(1, np.int32),
    np.array([0.5]),
    np.array([[~0, ~1]], np.int32),
)
FIRST = Sifter((Axis("x"),), HALVES, np.array([1.0, 0.0]), version=1)
SECOND = replace(FIRST, thresholds=np.array([0.0, 1.0]), version=2)
ROWS = [np.array([0.1, 0.1, 0.9, np.nan])]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def folder(tmp_path: Path) -> SifterFolder:
    return SifterFolder(str(tmp_path))


def test_every_row_is_counted_once() -> None:
    node = Node("east", FIRST)
    assert node.decide(ROWS).tolist() == [0, 0, 1, 1]
    node.bad += 3
    counts = node.close()
    assert (counts.offered, counts.kept, counts.dropped) == (4, 2, 2)
    assert (counts.bad, counts.order) == (3, (0, 1))
    assert (counts.regions_offered, counts.regions_dropped) == ((2, 2), (2, 0))


def test_a_newer_sifter_is_taken_and_totals_go_on(folder: SifterFolder, clock: Clock) -> None:
    said: list[str] = []
    node = Node("east", FIRST, folder, report=said.append, clock=clock)
    node.decide(ROWS)
    node.bad += 1
    folder.publish(SECOND)
    node.tick()
    assert node.sifter == SECOND
    assert said == ["sifter version 2: 2 regions, z = 1"]
    assert node.decide(ROWS).tolist() == [1, 1, 0, 0]
    counts = node.close()
    assert (counts.offered, counts.dropped, counts.bad) == (8, 4, 1)
    assert (counts.order, counts.regions_offered, counts.regions_dropped) == ((0, 2), (2, 2), (0, 2))
    assert folder.counts_of("east") == replace(counts, ended=True)


def test_a_newer_run_is_followed_although_its_versions_begin_anew(folder: SifterFolder, clock: Clock) -> None:
    node = Node("east", replace(FIRST, epoch=5, version=900), folder, clock=clock)
    folder.publish(replace(SECOND, epoch=6, version=0))
    node.tick()
    assert node.sifter.order == (6, 0)
    counts = folder.counts_of("east")
    assert counts is not None
    assert counts.order == (6, 0), "the server sees which sifter the node runs"


def test_samples_go_on_under_a_newer_sifter(folder: SifterFolder, clock: Clock) -> None:
    rows = [np.full(100, 0.9)]
    first, second = (replace(sifter, sample_share=0.5) for sifter in (FIRST, SECOND))
    following, staying = Node("east", first, folder, clock=clock), Node("east", first)
    following.decide(rows)
    staying.decide(rows)
    folder.publish(second)
    following.tick()
    assert ((following.decide(rows) == SAMPLE) == (staying.decide(rows) == SAMPLE)).all()


def test_the_folder_is_looked_at_now_and_then(folder: SifterFolder, clock: Clock) -> None:
    node = Node("east", FIRST, folder, clock=clock)
    node.tick()
    folder.publish(SECOND)
    node.decide(ROWS)
    node.tick()
    assert node.sifter == FIRST
    assert [counts.offered for counts in folder.counts()] == [0]
    clock.now += TICK_SECONDS
    node.tick()
    assert node.sifter == SECOND
    assert [counts.offered for counts in folder.counts()] == [4]


def test_an_older_sifter_is_not_taken(folder: SifterFolder, clock: Clock) -> None:
    folder.publish(FIRST)
    node = Node("east", SECOND, folder, clock=clock)
    node.tick()
    assert node.sifter == SECOND


def test_a_damaged_sifter_is_reported_once_and_passed_over(tmp_path: Path, clock: Clock) -> None:
    said: list[str] = []
    folder = SifterFolder(str(tmp_path), said.append)
    folder.publish(SECOND)
    (tmp_path / "sifter-0-3.json").write_text('{"kind": "sif')
    node = Node("east", FIRST, folder, clock=clock)
    node.tick()
    clock.now += TICK_SECONDS
    node.tick()
    assert node.sifter == SECOND
    assert len(said) == 1
    assert "sifter-0-3.json is passed over" in said[0]


def test_a_folder_that_cannot_be_used_stops_no_rows(tmp_path: Path, clock: Clock) -> None:
    said: list[str] = []
    (tmp_path / "counts-east.json").mkdir()
    folder = SifterFolder(str(tmp_path), said.append)
    node = Node("east", FIRST, folder, report=said.append, clock=clock)
    for _ in range(3):
        clock.now += TICK_SECONDS
        node.decide(ROWS)
        node.tick()
    assert node.close().offered == 12
    assert [text.partition(":")[0].rpartition("/")[2] for text in said] == [
        "counts-east.json is passed over",
        "the folder of --follow cannot be used",
    ]
    (tmp_path / "counts-east.json").rmdir()
    node.close()
    assert folder.counts_of("east") == replace(node.counts(), ended=True)


@pytest.mark.parametrize("again", [FIRST, SECOND])
def test_a_node_that_starts_again_goes_on_from_its_counts(
    folder: SifterFolder, clock: Clock, again: Sifter
) -> None:
    first = Node("east", FIRST, folder, clock=clock)
    first.decide(ROWS)
    left = first.close()
    second = Node("east", again, folder, clock=clock)
    assert replace(
        second.counts(), version=1, regions_offered=(), regions_dropped=(), regions_sampled=()
    ) == (replace(left, regions_offered=(), regions_dropped=(), regions_sampled=()))
    assert second.counts().regions_offered == ((2, 2) if again == FIRST else (0, 0))
    second.decide(ROWS)
    counts = second.close()
    assert (counts.offered, counts.kept + counts.dropped) == (8, 8)


def test_a_node_that_was_killed_says_that_its_counts_lack_rows(folder: SifterFolder, clock: Clock) -> None:
    node = Node("east", FIRST, folder, clock=clock)
    node.decide(ROWS)
    node.tick()
    node.decide(ROWS)
    again = Node("east", FIRST, folder, clock=clock)
    assert (again.counts().offered, again.counts().broken) == (4, 1)
    again.close()
    assert Node("east", FIRST, folder, clock=clock).counts().broken == 1


def test_a_node_without_the_counts_it_left_is_another_incarnation(tmp_path: Path, clock: Clock) -> None:
    folder = SifterFolder(str(tmp_path))
    first = Node("east", FIRST, folder, clock=clock)
    first.decide(ROWS)
    left = first.close()
    (tmp_path / "counts-east.json").write_bytes(b"\xff torn")
    again = Node("east", FIRST, SifterFolder(str(tmp_path)), clock=clock).counts()
    assert (again.node, again.offered) == ("east", 0)
    assert again.incarnation != left.incarnation


def test_nodes_sample_other_rows() -> None:
    sifter = replace(FIRST, sample_share=0.5)
    verdicts = [Node(name, sifter).decide([np.full(100, 0.1)]).tolist() for name in ("east", "west", "east")]
    assert verdicts[0] == verdicts[2] != verdicts[1]
