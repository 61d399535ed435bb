from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.route.loads import load_of, mixed_codes, one_sided, zipf_counts

from tidegate.errors import FlowError
from tidegate.route.assignment import Assignment
from tidegate.route.fastjoin.resizing import resized
from tidegate.route.hash_routing import first_table, partition_of
from tidegate.route.load import Load, no_work


@given(st.integers(0, 1000), st.integers(1, 20), st.integers(1, 20))
@settings(max_examples=40)
def test_only_what_must_move_moves_and_every_instance_named_exists(
    seed: int, before: int, after: int
) -> None:
    codes = mixed_codes(200, seed)
    random = np.random.default_rng(seed)
    placed = {int(code): (int(random.integers(before)),) for code in codes[::5]}
    current = Assignment(before, first_table(32, before), keys=placed)
    counts = one_sided(zipf_counts(200, 0.8, 2000, seed).tolist())
    following = resized(load_of(codes, counts, counts, current), current, after)
    assert following.instances == after
    for old, new in zip(current.table, following.table, strict=True):
        assert new == old or (new >= before if after >= before else old >= after)
    homes = partition_of(codes, 32)
    for code, home in zip(codes.tolist(), homes.tolist(), strict=True):
        old = current.keys.get(code, (current.table[home],))[0]
        new = following.keys.get(code, (following.table[home],))[0]
        assert new == old or (new >= before if after >= before else old >= after)
        assert following.keys.get(code) != (following.table[home],)


def test_new_instances_get_about_their_share_from_few_partitions() -> None:
    codes = mixed_codes(5000)
    counts = one_sided([1] * 5000)
    current = Assignment(4, first_table(64, 4))
    load = load_of(codes, counts, counts, current)
    following = resized(load, current, 5)
    rows = np.bincount(following.table, weights=load.partitions.stored[0])
    assert rows[4] == pytest.approx(1000, rel=0.1)
    assert rows.max() <= 1150
    moved = sum(a != b for a, b in zip(current.table, following.table, strict=True))
    assert moved <= 14


def test_those_that_stay_share_what_a_leaving_instance_had() -> None:
    codes = mixed_codes(5000)
    counts = one_sided([1] * 5000)
    current = Assignment(5, first_table(64, 5))
    load = load_of(codes, counts, counts, current)
    rows = np.bincount(resized(load, current, 4).table, weights=load.partitions.stored[0])
    assert rows.max() / rows.min() < 1.1


def test_without_any_load_partitions_count_alike() -> None:
    grown = resized(Load(0, no_work(12)), Assignment(3, first_table(12, 3)), 4)
    assert np.bincount(grown.table).tolist() == [3, 3, 3, 3]


def test_a_split_key_keeps_the_instances_that_stay_and_finds_one_if_none_does() -> None:
    current = Assignment(4, first_table(8, 4), keys={1: (1, 3), 2**63: (2, 3)})
    following = resized(Load(0, no_work(8)), current, 2)
    assert following.keys[1] == (1,)
    assert following.keys.get(2**63, (0,))[0] in (0, 1)


@pytest.mark.parametrize("instances", [0, 9])
def test_a_number_of_instances_that_cannot_be_is_refused(instances: int) -> None:
    with pytest.raises(FlowError, match="BALANCE_INSTANCES_INVALID"):
        resized(Load(0, no_work(8)), Assignment(2, first_table(8, 2)), instances)
