"""One goal over networks of joins, matches and windows: some of the stories of `lab/scripts/goal_bars.py`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tidegate_lab.simulate.goal.goal_bars import ON_TIME, kept, recall, together
from tidegate_lab.simulate.goal.goal_network import JOIN, generated
from tidegate_lab.simulate.goal.goal_run import Controlled, Fixed, run
from tidegate_lab.simulate.goal.goal_story import SECONDS, Story, story

#: One of each kind.
SEEDS = range(8)


def test_stories_are_on_time_and_at_rest() -> None:
    told = [kept(seed, search=False) for seed in SEEDS]
    judged = sum(one.judged for one in told)
    assert sum(one.on_time * one.judged for one in told) / judged >= ON_TIME
    # A story has fifty batches that are judged, or a few more, and now and then one is an outlier.
    assert min(one.on_time for one in told) >= 0.95
    assert max(one.turns for one in told if one.turns is not None) <= 1
    assert not any(one.stale for one in told), "leaving out work is enough in all of them"


@pytest.mark.parametrize("seed", [3, 8])
def test_no_plan_that_never_changes_finds_much_more(seed: int) -> None:
    found = kept(seed).of_fixed
    assert found is not None
    assert found >= 0.95


def test_choosing_among_all_mechanisms_beats_each_of_them() -> None:
    gains = [together(seed).gain for seed in range(2)]
    assert min(gains) > 1
    assert np.median(gains) >= 1.15


def test_the_same_seed_is_the_same_run_and_another_is_another() -> None:
    runs = []
    for seed in (3, 3, 11):
        network = generated(seed)
        told = story(seed, [operator.name for operator in network.operators])
        runs.append(run(network, told, Controlled(network, told)))
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_a_calm_query_on_a_machine_that_warms_up_loses_next_to_nothing() -> None:
    lost = []
    for seed in range(6):
        # Overhead is most of a batch, three times as much at first, and only joins tell how long they took.
        network = replace(generated(seed), overhead=0.4)
        told = Story("calm", seed, ((0.0, 0.4), (SECONDS, 0.4)), trigger_seconds=1.0, noise=0.1)
        told = replace(told, cold=3.0, cold_batches=3, measured=frozenset({JOIN}))
        batches = run(network, told, Controlled(network, told))
        lost.append([1 - recall(network, batches), 1 - recall(network, batches[30:])])
    assert np.mean(lost, axis=0) == pytest.approx([0, 0], abs=0.02)
    assert np.max(lost, axis=0)[1] < 0.02


@pytest.mark.parametrize("trigger_seconds", [1.0, 0.0])
def test_a_flood_that_nothing_else_stops_leaves_the_freshest_rows_on_time(trigger_seconds: float) -> None:
    for seed in range(2):
        network = generated(seed)
        rates = ((0.0, 0.6), (40.0, 0.6), (40.01, 12.0), (85.0, 12.0), (85.01, 0.6), (SECONDS, 0.6))
        told = Story("flood", seed, rates, trigger_seconds, jumps=(0.0, 40.0, 85.0))
        # Its first two batches are as long as they are, and those who wait for them gather rows.
        batches = run(network, told, Controlled(network, told))
        flood = [batch for batch in batches if 40 < batch.begin < 85]
        first = next(number for number, batch in enumerate(flood) if batch.keep_share < 1)
        assert 2 <= first <= 4
        settled = flood[first + 1 :]
        assert np.mean([batch.latency <= told.latency_seconds for batch in settled[1:]]) >= 0.95
        # At rest: as much is let in from batch to batch, and all of it only if a short batch brought so few.
        whole = [batch for batch in settled if batch.keep_share == 1]
        assert len(whole) <= len(settled) / 30
        assert all(batch.latency <= told.latency_seconds for batch in whole)
        assert all(batch.keep_share == 1 for batch in batches if batch.begin < 40)
        after = [batch for batch in batches if batch.begin > 85]
        assert all(batch.keep_share == 1 for batch in after[3:])


def test_a_plan_that_leaves_out_nothing_would_be_noticed() -> None:
    network = generated(0)
    told = story(0, [operator.name for operator in network.operators])
    batches = run(network, told, Fixed({o.name: o.truth.nothing for o in network.operators}))
    assert np.mean([batch.latency <= told.latency_seconds for batch in batches]) < 0.5
    assert recall(network, batches) == 1
