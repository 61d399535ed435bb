"""The baselines that never move anything: hash, random and contrand."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import FlowError
from tidegate.route.baselines import ContRandStrategy, HashOnly, RandomSpread
from tidegate.route.hash_routing import first_table
from tidegate.route.load import Load, no_work
from tidegate.route.strategy import Strategy

STATIC = [HashOnly(), RandomSpread(), ContRandStrategy(), ContRandStrategy(group=3)]


@pytest.mark.parametrize("strategy", STATIC)
def test_nothing_ever_moves(strategy: Strategy) -> None:
    current = strategy.first(12, 10)
    after, memory = strategy.decide(Load(0, no_work(12)), current, {})
    assert after is current
    assert memory == {}


def test_hash_is_the_first_table() -> None:
    assert HashOnly().name == "hash"
    assert HashOnly().first(10, 3).table == first_table(10, 3)
    assert HashOnly().first(10, 3).spread == 1


def test_random_lies_everywhere() -> None:
    assert RandomSpread().name == "random"
    assignment = RandomSpread().first(5, 3)
    assert [assignment.instances_of(p) for p in range(5)] == [(0, 1, 2)] * 5


def test_contrand_has_disjoint_subgroups_where_they_fit() -> None:
    assert ContRandStrategy().name == "contrand"
    assignment = ContRandStrategy(group=2).first(6, 6)
    assert [assignment.instances_of(p) for p in range(6)] == [
        (0, 1),
        (0, 1),
        (2, 3),
        (2, 3),
        (4, 5),
        (4, 5),
    ]


def test_contrand_with_a_group_of_all_is_random_and_with_a_group_of_one_is_hash() -> None:
    assert ContRandStrategy(group=99).first(6, 4) == RandomSpread().first(6, 4)
    assert ContRandStrategy(group=1).first(6, 4) == HashOnly().first(6, 4)


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 12))
@settings(max_examples=60)
def test_contrand_burdens_all_instances_alike(group: int, instances: int, again: int) -> None:
    """With partitions that divide evenly among the subgroups; also after another number of instances."""
    partitions = 2 * instances * again
    strategy = ContRandStrategy(group)
    first = strategy.first(partitions, instances)
    for assignment in (first, strategy.resize(Load(0, no_work(partitions)), first, again)):
        shares = Counter(i for p in range(partitions) for i in assignment.instances_of(p))
        assert set(shares) == set(range(assignment.instances))
        assert len(set(shares.values())) == 1
        assert {len(set(assignment.instances_of(p))) for p in range(partitions)} == {
            min(group, assignment.instances)
        }


@pytest.mark.parametrize("strategy", STATIC)
def test_numbers_that_do_not_fit_together_are_refused(strategy: Strategy) -> None:
    for instances in (0, 13):
        with pytest.raises(FlowError, match=r"BALANCE_INSTANCES_INVALID.*instance"):
            strategy.first(12, instances)
        with pytest.raises(FlowError, match=r"BALANCE_INSTANCES_INVALID.*instance"):
            strategy.resize(Load(0, no_work(12)), strategy.first(12, 4), instances)


def test_resizing_hash_moves_only_what_must_move() -> None:
    before = HashOnly().first(12, 3)
    after = HashOnly().resize(Load(0, no_work(12)), before, 4)
    assert after.instances == 4
    assert sum(one != other for one, other in zip(before.table, after.table, strict=True)) == 3


@pytest.mark.parametrize("group", [0, -2])
def test_an_empty_subgroup_is_refused(group: int) -> None:
    with pytest.raises(FlowError, match=rf"BALANCE_SETTING_INVALID.*Got: group {group}\. .*the same as hash"):
        ContRandStrategy(group)
