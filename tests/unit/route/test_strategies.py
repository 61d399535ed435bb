"""What every strategy must do, whatever it decides. A new strategy is one more line in STRATEGIES."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.unit.route.loads import load_of, mixed_codes, one_sided, zipf_counts

from tidegate.errors import FlowError
from tidegate.model.codec import decode, encode_exactly
from tidegate.route.assignment import Assignment
from tidegate.route.auto.strategy import Auto
from tidegate.route.baselines import ContRandStrategy, HashOnly, RandomSpread
from tidegate.route.fastjoin.strategy import ANNEALING, FastJoinStrategy
from tidegate.route.load import Load, no_work
from tidegate.route.ls_stream.strategy import LsStreamStrategy
from tidegate.route.strategy import Memory, Strategy

STRATEGIES: list[Strategy] = [
    HashOnly(),
    RandomSpread(),
    ContRandStrategy(),
    ContRandStrategy(group=2),
    Auto(),
    Auto(trigger=1.02, levels=(1.01,), reluctance=0.1),
    FastJoinStrategy(),
    FastJoinStrategy(theta=1.0, sub_windows=3),
    FastJoinStrategy(theta=1.1, chooser=ANNEALING),
    LsStreamStrategy(),
    LsStreamStrategy(gamma=0.2, alpha=0.05, pairs=4, history=1),
]
PARTITIONS, INSTANCES, KEYS = 48, 6, 300
CODES = mixed_codes(KEYS)

every_strategy = pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)


def counts(exponent: float, seed: int) -> NDArray[np.int64]:
    return one_sided(zipf_counts(KEYS, exponent, 20_000, seed).tolist())


def play(strategy: Strategy, batches: int = 12, *, by_json: bool = False) -> list[Assignment]:
    """A skew that jumps to other keys in every third batch."""
    memory: Memory = {}
    current = strategy.first(PARTITIONS, INSTANCES)
    story = [current]
    for batch in range(batches):
        stored, probes = counts(1.2, batch // 3), counts(1.0, 100 + batch // 3)
        current, memory = strategy.decide(load_of(CODES, stored, probes, current, batch), current, memory)
        if by_json:
            memory = json.loads(json.dumps(memory))
            current = decode(Assignment, encode_exactly(current))
        story.append(current)
    return story


@every_strategy
@pytest.mark.parametrize("instances", [1, 5, PARTITIONS])
def test_the_first_assignment_covers_every_partition(strategy: Strategy, instances: int) -> None:
    first = strategy.first(PARTITIONS, instances)
    assert first.instances == instances
    assert len(first.table) == PARTITIONS
    served = {one for partition in range(PARTITIONS) for one in first.instances_of(partition)}
    assert served == set(range(instances))


@every_strategy
@pytest.mark.parametrize("instances", [0, PARTITIONS + 1])
def test_more_instances_than_partitions_or_none_are_refused(strategy: Strategy, instances: int) -> None:
    with pytest.raises(FlowError, match="BALANCE_INSTANCES_INVALID"):
        strategy.first(PARTITIONS, instances)


@every_strategy
def test_without_any_load_nothing_changes(strategy: Strategy) -> None:
    memory: Any = {}
    current = strategy.first(PARTITIONS, INSTANCES)
    for batch in range(5):
        following, memory = strategy.decide(Load(batch, no_work(PARTITIONS)), current, memory)
        assert following is current


@every_strategy
def test_on_one_instance_nothing_changes(strategy: Strategy) -> None:
    current = strategy.first(PARTITIONS, 1)
    load = load_of(CODES, counts(1.0, 0), counts(1.0, 1), current)
    assert strategy.decide(load, current, {})[0] is current


@every_strategy
def test_the_same_loads_give_the_same_story_and_json_carries_all_of_it(strategy: Strategy) -> None:
    story = play(strategy)
    assert play(strategy) == story
    assert play(strategy, by_json=True) == story


@every_strategy
def test_partitions_and_instances_stay_as_many_and_exist(strategy: Strategy) -> None:
    for assignment in play(strategy):
        assert (assignment.instances, len(assignment.table)) == (INSTANCES, PARTITIONS)
        named = {*assignment.table, *(place for places in assignment.keys.values() for place in places)}
        assert named <= set(range(INSTANCES))


@every_strategy
def test_what_goes_in_stays_as_it_was(strategy: Strategy) -> None:
    current = strategy.first(PARTITIONS, INSTANCES)
    load = load_of(CODES, counts(1.2, 0), counts(1.0, 1), current)
    arrays = (load.codes, load.homes, load.keys.stored, load.keys.probes, load.partitions.stored)
    for array in arrays:
        array.flags.writeable = False
    before = encode_exactly(current)
    strategy.decide(load, current, {})
    strategy.resize(load, current, INSTANCES + 1)
    assert encode_exactly(current) == before


@every_strategy
@pytest.mark.parametrize("instances", [1, 4, INSTANCES, 9])
def test_another_number_of_instances_serves_everything_and_decides_on(
    strategy: Strategy, instances: int
) -> None:
    current = play(strategy)[-1]
    stored, probes = counts(1.2, 3), counts(1.0, 103)
    following = strategy.resize(load_of(CODES, stored, probes, current), current, instances)
    assert (following.instances, len(following.table)) == (instances, PARTITIONS)
    named = {*following.table, *(place for places in following.keys.values() for place in places)}
    assert named <= set(range(instances))
    after, _ = strategy.decide(load_of(CODES, stored, probes, following), following, {})
    assert after.instances == instances


@every_strategy
def test_a_strategy_is_a_value(strategy: Strategy) -> None:
    assert strategy.name == strategy.name.lower() != ""
    assert {strategy: 1}[strategy] == 1
    with pytest.raises(FrozenInstanceError):
        strategy.theta = 1.0  # type: ignore[attr-defined]
