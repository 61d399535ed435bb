"""Another number of instances: by count with the fewest moves, by load with none between those who stay."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import FlowError
from tidegate.route.resizing import evened_table, resettled


def moves(before: list[int] | tuple[int, ...], after: tuple[int, ...]) -> int:
    return sum(one != other for one, other in zip(before, after, strict=True))


def is_even(table: tuple[int, ...], instances: int) -> bool:
    counts = Counter(table)
    sizes = [counts[instance] for instance in range(instances)]
    return max(sizes) - min(sizes) <= 1


@given(st.lists(st.integers(-1, 3), min_size=3, max_size=6), st.integers(1, 3))
@settings(max_examples=60)
def test_no_even_table_is_closer(table: list[int], instances: int) -> None:
    answer = evened_table(table, instances)
    assert is_even(answer, instances)
    tables = product(range(instances), repeat=len(table))
    assert moves(table, answer) == min(moves(table, other) for other in tables if is_even(other, instances))


def test_growing_takes_from_everybody_and_shrinking_gives_to_everybody() -> None:
    assert evened_table([0, 0, 0, 0, 1, 1, 1, 1], 4) == (0, 0, 2, 2, 1, 1, 3, 3)
    assert evened_table([0, 0, 1, 1, 2, 2, 3, 3], 2) == (0, 0, 1, 1, 0, 0, 1, 1)
    assert evened_table([0, 1, 2], 3) == (0, 1, 2)


@pytest.mark.parametrize("instances", [0, 4, -1])
def test_instances_without_a_partition_are_refused(instances: int) -> None:
    with pytest.raises(FlowError, match=rf"BALANCE_INSTANCES_INVALID.*Got: {instances} instances, 3 .*fewer"):
        evened_table([0, 0, 0], instances)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 50)), min_size=8, max_size=24),
    st.integers(1, 8),
    st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=8, max_size=8),
)
@settings(max_examples=60)
def test_loads_only_leave_for_new_instances_or_because_theirs_is_gone(
    things: list[tuple[int, int]], instances: int, speeds: list[float]
) -> None:
    owners, loads = np.array([owner for owner, _ in things]), np.array([load for _, load in things], float)
    weights = np.array(speeds[:instances])
    after = resettled(owners, loads, 6, instances, weights)
    moved = owners != after
    assert (after < instances).all()
    assert (owners[moved] >= instances).all() if instances <= 6 else (after[moved] >= 6).all()
    assert set(range(6, instances)) <= set(after.tolist())
    fair = loads.sum() / weights.sum()
    for new in range(6, instances):
        # Only an instance that nobody could give to may get more than its share, and then one thing.
        assert loads[after == new].sum() <= fair * weights[new] * 1.001 + 1e-6 or sum(after == new) == 1


def test_without_speeds_all_instances_are_alike() -> None:
    owners, loads = np.repeat([0, 1], 6), np.arange(12.0)
    for instances in (1, 3):
        alike = resettled(owners, loads, 2, instances, np.ones(instances))
        assert resettled(owners, loads, 2, instances).tolist() == alike.tolist()


def test_those_who_stay_take_what_is_left_by_how_busy_they_are() -> None:
    owners = np.array([0, 1, 2, 2, 2, 2])
    after = resettled(owners, np.array([4.0, 4.0, 4.0, 4.0, 4.0, 4.0]), 3, 2, np.array([1.0, 2.0]))
    assert np.bincount(after).tolist() == [2, 4]


def test_things_without_load_are_spread_as_well() -> None:
    assert np.bincount(resettled(np.full(8, 1), np.zeros(8), 2, 1)).tolist() == [8]
    assert np.bincount(resettled(np.repeat([0, 1, 2, 3], 4), np.zeros(16), 4, 2)).tolist() == [8, 8]
    assert np.bincount(resettled(np.repeat([0, 1], 8), np.zeros(16), 2, 4)).tolist() == [4, 4, 4, 4]
