"""Ls-Stream's load model on the paper's worked example (figure 4)."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.route.load import LoadWork
from tidegate.route.ls_stream.deviation import deviation
from tidegate.route.ls_stream.partition_load import compute, memory, partition_loads, per_instance

TABLE = np.array([0, 0, 1, 1])


def example() -> LoadWork:
    """S rows of partitions p0 … p3 are stored, R rows come; the other direction has nothing to do."""
    nothing = [0, 0, 0, 0]
    return LoadWork(
        np.array([[4, 4, 2, 1], nothing]), np.array([[3, 4, 2, 3], nothing]), np.zeros(4, np.int64)
    )


def test_memory_and_compute_of_the_papers_example_are_15_and_8_and_28_and_7() -> None:
    work = example()
    coming = work.probes.astype(np.float64)
    assert per_instance(memory(work, coming), TABLE, 2).tolist() == [15, 8]
    assert per_instance(compute(work, coming), TABLE, 2).tolist() == [28, 7]


def test_the_example_adds_memory_and_compute_without_their_factors() -> None:
    """It says 43 and 15; with γ = 0.5, as equation 11 has it, both are half of that."""
    loads = per_instance(partition_loads(example(), 0.5), TABLE, 2)
    assert (2 * loads).tolist() == [43, 15]
    assert deviation(loads) == deviation(2 * loads) == pytest.approx(0.48, abs=0.005)


@pytest.mark.parametrize(("gamma", "expected"), [(0.0, [28, 7]), (1.0, [15, 8]), (0.25, [24.75, 7.25])])
def test_gamma_weighs_memory_against_compute(gamma: float, expected: list[float]) -> None:
    assert per_instance(partition_loads(example(), gamma), TABLE, 2).tolist() == expected


def test_both_directions_of_a_join_count() -> None:
    work = LoadWork(np.array([[5], [7]]), np.array([[2], [3]]), np.zeros(1, np.int64))
    assert partition_loads(work, 0.0).tolist() == [5 * 2 + 7 * 3]
    assert partition_loads(work, 1.0).tolist() == [5 + 2 + 7 + 3]


def test_comparisons_beyond_32_bits_do_not_overflow() -> None:
    many = np.array([[4_000_000_000], [0]])
    assert partition_loads(LoadWork(many, many, np.zeros(1, np.int64)), 0.0).tolist() == [1.6e19]


def test_an_instance_without_partitions_has_no_load() -> None:
    assert per_instance(np.array([1.0, 2.0]), np.array([0, 2]), 4).tolist() == [1, 0, 2, 0]
