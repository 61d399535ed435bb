"""How many instances a key needs and in which grid, against trying them all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.route.auto.splitting import best_grid, grid_needed
from tidegate.route.auto.work_costs import SplitGrid, UnitCosts

COST = st.floats(0, 50)


def key(divided: float, left: float, right: float) -> UnitCosts:
    one = np.ones(1)
    return UnitCosts(divided * one, left * one, right * one, one, one, one)


def needed(costs: UnitCosts, piece: float, instances: int) -> tuple[int, int]:
    rows, columns = grid_needed(costs, 1.0, piece, instances)
    return int(rows[0]), int(columns[0])


@given(COST, st.floats(0, 5), st.floats(0, 5), st.sampled_from([0.2, 0.5, 1.0]), st.integers(1, 20))
@settings(max_examples=80)
def test_no_other_grid_is_better(
    divided: float, left: float, right: float, piece: float, instances: int
) -> None:
    costs = key(divided, left, right)
    rows, columns = needed(costs, piece, instances)
    assert rows * columns <= instances
    if divided + left + right <= piece:
        assert (rows, columns) == (1, 1)
        return

    def burden(r: int, c: int) -> float:
        weight = costs.piece(0, SplitGrid(tuple(range(r * c)), c))
        return max(weight, piece) + (left * c + right * r) / instances

    every = [(r, c) for r in range(1, instances + 1) for c in range(1, instances // r + 1)]
    least = min(burden(r, c) for r, c in every)
    assert burden(rows, columns) == pytest.approx(least)
    as_good = [r * c for r, c in every if burden(r, c) < least * (1 - 1e-9)]
    assert rows * columns <= min(as_good, default=instances)


def test_light_keys_stay_whole_and_pure_pairs_are_divided_at_will() -> None:
    assert needed(key(0.9, 0.03, 0.02), 1.0, 16) == (1, 1)
    assert np.prod(needed(key(4.0, 0.0, 0.0), 0.5, 16)) == 8
    assert np.prod(needed(key(40.0, 0.0, 0.0), 0.5, 16)) == 16


def test_a_key_that_is_hot_on_one_side_stands_in_one_line() -> None:
    """Its many rows are divided, the few of the other side are seen by all."""
    assert needed(key(2.0, 8.0, 0.01), 1.0, 16) == (11, 1)
    assert needed(key(2.0, 0.01, 8.0), 1.0, 16) == (1, 11)
    assert best_grid(key(2.0, 8.0, 0.01), 0, (3, 1, 2)) == SplitGrid((3, 1, 2), 1)
    assert best_grid(key(2.0, 0.01, 8.0), 0, (3, 1, 2)) == SplitGrid((3, 1, 2), 3)


def test_a_key_that_is_hot_on_both_sides_stands_in_a_square() -> None:
    assert needed(key(4.0, 2.0, 2.0), 1.25, 16) == (4, 4)
    assert best_grid(key(4.0, 2.0, 2.0), 0, tuple(range(12))).columns in (3, 4)
