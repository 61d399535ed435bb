"""The goal loop over all development seeds."""

from __future__ import annotations

import pytest

from tidegate_lab.simulate.goal.judge import Judged, bars, headline, judge

SEEDS = range(200)


@pytest.fixture(scope="module")
def judged() -> list[Judged]:
    return [judge(seed) for seed in SEEDS]


@pytest.mark.soak
def test_batches_are_on_time_and_little_is_shed_for_nothing_over_all_development_seeds(
    judged: list[Judged],
) -> None:
    missed = {bar.id for bar in bars(headline(judged)) if not bar.holds}
    assert not missed & {
        "control.on_time.median",
        "control.needless_loss.median",
        "control.budget_use.median",
        "control.reversals.median",
    }
