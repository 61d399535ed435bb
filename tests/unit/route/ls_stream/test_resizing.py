"""Another number of instances: who gives, who takes, and who is left alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.route.load import Load, LoadWork
from tidegate.route.ls_stream.deviation import deviation
from tidegate.route.ls_stream.partition_load import partition_loads, per_instance
from tidegate.route.ls_stream.strategy import LsStreamStrategy


def load_of(rows: list[int]) -> Load:
    counts = np.array([rows, rows], np.int64)
    return Load(0, LoadWork(10 * counts, counts, np.array(rows, np.int64)))


@given(st.lists(st.integers(0, 300), min_size=8, max_size=40), st.integers(1, 8), st.integers(1, 8))
@settings(max_examples=60)
def test_only_what_must_move_does(rows: list[int], before: int, after: int) -> None:
    strategy = LsStreamStrategy(steps=3)
    current = strategy.first(len(rows), before)
    resized = strategy.resize(load_of(rows), current, after)
    assert (resized.instances, resized.entries) == (after, len(rows))
    assert set(resized.table) == set(range(after))
    moved = [(a, b) for a, b in zip(current.table, resized.table, strict=True) if a != b]
    if after <= before:
        assert all(a >= after for a, _ in moved)
    else:
        assert all(b >= before for _, b in moved)


def test_after_a_resize_rates_of_the_old_instances_are_forgotten() -> None:
    strategy, load = LsStreamStrategy(), load_of([10] * 24)
    current, memory = strategy.decide(load, strategy.first(24, 4), {})
    resized = strategy.resize(load, current, 6)
    after, memory = strategy.decide(load, resized, memory)
    assert after is resized
    assert np.shape(memory["rates"]) == (1, 6)


def test_new_instances_get_their_share() -> None:
    strategy, load = LsStreamStrategy(), load_of([10] * 120)
    resized = strategy.resize(load, strategy.first(120, 4), 6)
    assert np.bincount(resized.table).tolist() == [20] * 6


def test_those_who_stay_share_what_the_others_leave() -> None:
    random = np.random.default_rng(0)
    load = load_of(random.integers(5, 15, 120).tolist())
    strategy = LsStreamStrategy()
    resized = strategy.resize(load, strategy.first(120, 8), 6)
    loads = per_instance(partition_loads(load.partitions, 0.5), np.array(resized.table), 6)
    assert deviation(loads) < 0.1


def test_a_faster_new_instance_gets_more() -> None:
    load = load_of([10] * 100)
    equal = LsStreamStrategy().first(100, 2)
    resized = LsStreamStrategy(weights=(1.0, 1.0, 2.0)).resize(load, equal, 3)
    assert abs(np.bincount(resized.table)[2] - 50) <= 2
