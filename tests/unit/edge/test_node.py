from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tidegate.edge.node import TICK_SECONDS, Node
from tidegate.edge.sifter_folder import counts_of, offered, publish
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


def test_every_row_is_counted_once() -> None:
    node = Node("east", FIRST)
    assert node.decide(ROWS).tolist() == [0, 0, 1, 1]
    node.bad += 3
    counts = node.close()
    assert (counts.offered, counts.kept, counts.dropped) == (4, 2, 2)
    assert (counts.unplaced, counts.bad, counts.version) == (1, 3, 1)
    assert (counts.regions_offered, counts.regions_dropped) == ((2, 1), (2, 0))


def test_a_newer_sifter_is_taken_and_totals_go_on(tmp_path: Path, clock: Clock) -> None:
    said: list[str] = []
    node = Node("east", FIRST, str(tmp_path), report=said.append, clock=clock)
    node.decide(ROWS)
    node.bad += 1
    publish(str(tmp_path), SECOND)
    node.tick()
    assert node.sifter == SECOND
    assert said == ["sifter version 2: 2 regions, z = 1"]
    assert node.decide(ROWS).tolist() == [1, 1, 0, 1]
    counts = node.close()
    assert (counts.offered, counts.dropped, counts.unplaced, counts.bad) == (8, 3, 2, 1)
    assert (counts.version, counts.regions_offered, counts.regions_dropped) == (2, (2, 1), (0, 1))
    assert counts_of(str(tmp_path), "east") == counts


def test_samples_go_on_under_a_newer_sifter(tmp_path: Path, clock: Clock) -> None:
    rows = [np.full(100, 0.9)]
    first, second = (replace(sifter, sample_share=0.5) for sifter in (FIRST, SECOND))
    following, staying = Node("east", first, str(tmp_path), clock=clock), Node("east", first)
    following.decide(rows)
    staying.decide(rows)
    publish(str(tmp_path), second)
    following.tick()
    assert ((following.decide(rows) == SAMPLE) == (staying.decide(rows) == SAMPLE)).all()


def test_the_folder_is_looked_at_now_and_then(tmp_path: Path, clock: Clock) -> None:
    node = Node("east", FIRST, str(tmp_path), clock=clock)
    node.tick()
    publish(str(tmp_path), SECOND)
    node.decide(ROWS)
    node.tick()
    assert node.sifter == FIRST
    assert offered(str(tmp_path)).offered == 0
    clock.now += TICK_SECONDS
    node.tick()
    assert node.sifter == SECOND
    assert offered(str(tmp_path)).offered == 4


def test_an_older_sifter_is_not_taken(tmp_path: Path, clock: Clock) -> None:
    publish(str(tmp_path), FIRST)
    node = Node("east", SECOND, str(tmp_path), clock=clock)
    node.tick()
    assert node.sifter == SECOND


def test_a_damaged_sifter_is_told_once_and_passed_over(tmp_path: Path, clock: Clock) -> None:
    publish(str(tmp_path), SECOND)
    (tmp_path / "sifter-000003.json").write_text('{"kind": "sif')
    said: list[str] = []
    node = Node("east", FIRST, str(tmp_path), report=said.append, clock=clock)
    node.tick()
    clock.now += TICK_SECONDS
    node.tick()
    assert node.sifter == SECOND
    assert [text for text in said if "sifter-000003.json is skipped" in text] == said[:1]
    assert len(said) == 2


@pytest.mark.parametrize("again", [FIRST, SECOND])
def test_a_node_that_starts_again_goes_on_from_its_counts(
    tmp_path: Path, clock: Clock, again: Sifter
) -> None:
    first = Node("east", FIRST, str(tmp_path), clock=clock)
    first.decide(ROWS)
    left = first.close()
    second = Node("east", again, str(tmp_path), clock=clock)
    assert replace(
        second.counts(), version=1, regions_offered=(), regions_dropped=(), regions_sampled=()
    ) == (replace(left, regions_offered=(), regions_dropped=(), regions_sampled=()))
    assert second.counts().regions_offered == ((2, 1) if again == FIRST else (0, 0))
    second.decide(ROWS)
    counts = second.close()
    assert (counts.offered, counts.unplaced, counts.kept + counts.dropped) == (8, 2, 8)


def test_nodes_sample_other_rows() -> None:
    sifter = replace(FIRST, sample_share=0.5)
    verdicts = [Node(name, sifter).decide([np.full(100, 0.1)]).tolist() for name in ("east", "west", "east")]
    assert verdicts[0] == verdicts[2] != verdicts[1]
