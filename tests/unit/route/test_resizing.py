"""Another number of instances: even counts, and no way to get there with fewer moves."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import FlowError
from tidegate.route.resizing import evened_table


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
    with pytest.raises(FlowError, match=rf"number of instances.*Got: {instances} inst.*never have.*fewer"):
        evened_table([0, 0, 0], instances)
