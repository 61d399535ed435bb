"""Edge nodes and their server in random stories: nodes follow, volumes are right, counts never jump."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.simulation.edge_story import NODES, EdgeStory

STORIES, IN_MAKE_TEST = 200, 20
RESTARTS = ("same", "unfinished", "clock", "other queries", "new checkpoint")
ROWS_PER_NODE, TOLERANCE = 100_000, 0.01


def numbers() -> list[object]:
    soaked = range(IN_MAKE_TEST, STORIES)
    return [*range(IN_MAKE_TEST), *(pytest.param(seed, marks=pytest.mark.soak) for seed in soaked)]


@pytest.mark.parametrize("seed", numbers())
def test_what_passes_is_what_was_asked_for_one_period_after_it_was_published(
    tmp_path: Path, seed: int
) -> None:
    story = EdgeStory(seed, tmp_path)
    for _ in range(int(story.rng.integers(3, 9))):
        if story.rng.random() < 0.3:
            story.ask()
        checked(story)
        if story.rng.random() < 0.4:
            story.restart(str(story.rng.choice(RESTARTS)))
    story.restart(RESTARTS[seed % len(RESTARTS)])
    story.ask()
    while not story.in_force:
        checked(story)
    checked(story)  # the publishing period
    offered = passed = 0
    while offered < ROWS_PER_NODE * len(NODES):
        o, p = checked(story)
        offered, passed = offered + o, passed + p
        if story.rng.random() < 0.1:
            story.restart(str(story.rng.choice(["same", "unfinished", "clock"])))
    assert passed / offered == pytest.approx(story.server.z, abs=TOLERANCE)
    assert story.said == []


def checked(story: EdgeStory) -> tuple[int, int]:
    """Rows that were offered and passed in a period in which every node followed and none counted twice."""
    period = story.period()
    assert period.orders == {period.published}
    assert period.counted <= period.offered
    return period.offered, period.passed
