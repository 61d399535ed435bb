"""Plain hash routing: partitions as ranges of codes, and the first table."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tidegate.errors import FlowError
from tidegate.route.hash_routing import PARTITIONS_MAX, first_table, partition_bounds, partition_of


def test_codes_are_cut_into_equal_ranges() -> None:
    codes = np.array([0, 2**62 - 1, 2**62, 2**63, 2**64 - 1], np.uint64)
    assert partition_of(codes, 4).tolist() == [0, 0, 1, 2, 3]
    assert partition_of(codes, 1).tolist() == [0] * 5
    assert partition_of(codes[-1:], PARTITIONS_MAX).tolist() == [PARTITIONS_MAX - 1]
    assert partition_of(codes[:0], 4).tolist() == []


def test_the_formula_is_the_one_that_sql_computes() -> None:
    codes = np.random.default_rng(3).integers(0, 2**64, 500, dtype=np.uint64)
    for partitions in (1, 3, 64, 1000, PARTITIONS_MAX):
        expected = [((code >> 33) * partitions) >> 31 for code in codes.tolist()]
        assert partition_of(codes, partitions).tolist() == expected


def test_input_codes_stay_as_they_were() -> None:
    codes = np.array([2**63], np.uint64)
    codes.flags.writeable = False
    assert partition_of(codes, 2).tolist() == [1]
    assert codes.tolist() == [2**63]


def test_bounds_name_the_partitions_that_have_rows() -> None:
    codes = np.array([0, 1, 2**63, 2**63 + 5, 2**63 + 6, 2**64 - 1], np.uint64)
    owned, bounds = partition_bounds(codes, 4)
    assert owned.tolist() == [0, 2, 3]
    assert bounds.tolist() == [0, 2, 5, 6]
    assert owned.dtype == bounds.dtype == np.int64


@pytest.mark.parametrize("partitions", [1, 3, 7, 1000])
def test_a_code_at_the_edge_of_a_partition_belongs_where_the_formula_puts_it(partitions: int) -> None:
    edges = [-(-(partition << 31) // partitions) << 33 for partition in range(1, partitions)]
    codes = np.array([0, *(edge + off for edge in edges for off in (-1, 0)), 2**64 - 1], np.uint64)
    owned, bounds = partition_bounds(codes, partitions)
    assert owned.tolist() == list(range(partitions))
    assert np.repeat(owned, np.diff(bounds)).tolist() == partition_of(codes, partitions).tolist()
    assert bounds.tolist() == list(range(0, 2 * partitions + 1, 2))


def test_bounds_work_with_far_more_partitions_than_rows() -> None:
    owned, bounds = partition_bounds(np.array([0, 2**63, 2**63], np.uint64), PARTITIONS_MAX)
    assert owned.tolist() == [0, 2**30]
    assert bounds.tolist() == [0, 1, 3]


def test_no_rows_have_no_partitions() -> None:
    owned, bounds = partition_bounds(np.array([], np.uint64), 4)
    assert owned.tolist() == []
    assert bounds.tolist() == [0]


@pytest.mark.parametrize(("partitions", "instances"), [(64, 1), (64, 64), (64, 7), (10, 4)])
def test_the_first_table_gives_neighbours_to_one_instance_and_nobody_more_than_one_extra(
    partitions: int, instances: int
) -> None:
    table = first_table(partitions, instances)
    assert len(table) == partitions
    assert list(table) == sorted(table)
    shares = Counter(table)
    assert set(shares) == set(range(instances))
    assert max(shares.values()) - min(shares.values()) <= 1


@pytest.mark.parametrize("instances", [0, 5, -1])
def test_instances_without_a_partition_are_refused(instances: int) -> None:
    with pytest.raises(FlowError, match=rf"BALANCE_INSTANCES_INVALID.*Got: {instances} instances, 4 .*fewer"):
        first_table(4, instances)


@pytest.mark.parametrize("partitions", [0, -3, PARTITIONS_MAX + 1])
def test_a_number_of_partitions_that_31_bits_cannot_tell_apart_is_refused(partitions: int) -> None:
    codes = np.array([1], np.uint64)
    for call in (partition_of, partition_bounds):
        with pytest.raises(FlowError, match=rf"BALANCE_PARTITIONS_INVALID.*Got: {partitions}\. .*tens"):
            call(codes, partitions)
    with pytest.raises(FlowError, match="BALANCE_PARTITIONS_INVALID"):
        first_table(partitions, 1)
