from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tidegate.least_squares import held_costs


def sums(made: NDArray[np.float64], costs: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Products and times of batches (a line each) that take what their parts cost."""
    return made.T @ made, made.T @ (made @ costs)


def solved(
    made: NDArray[np.float64],
    costs: NDArray[np.float64],
    near: NDArray[np.float64],
    used: NDArray[np.bool_] | None = None,
    hold: float = 1e-9,
) -> NDArray[np.float64]:
    products, times = sums(made, costs)
    unit = np.sqrt(np.diag(products))
    parts = np.ones(len(near), np.bool_) if used is None else used
    return held_costs(products, times, unit, parts, np.full(len(near), hold), near)


def test_batches_that_differ_enough_tell_all_costs() -> None:
    made = np.random.default_rng(1).uniform(1, 5, (20, 3)) * [1, 1e3, 1e6]
    costs = np.array([0.2, 3e-5, 1e-7])
    assert solved(made, costs, np.zeros(3)) == pytest.approx(costs, rel=1e-5)


def test_what_cannot_be_told_apart_stays_near_what_is_known() -> None:
    # Both parts always go together, so only their sum is known.
    made = np.outer(np.arange(1.0, 6.0), [1.0, 1.0])
    assert solved(made, np.array([1.0, 1.0]), np.array([1.5, 0.5])) == pytest.approx([1.5, 0.5], rel=1e-6)


def test_a_negative_cost_becomes_zero_and_the_others_are_solved_again() -> None:
    made = np.random.default_rng(2).uniform(1, 5, (20, 3))
    found = solved(made, np.array([1.0, -0.5, 2.0]), np.zeros(3))
    assert found[1] == 0
    left = np.linalg.lstsq(made[:, [0, 2]], made @ [1.0, -0.5, 2.0], rcond=None)[0]
    assert found[[0, 2]] == pytest.approx(left, rel=1e-5)


def test_parts_that_are_not_used_cost_nothing_and_the_caller_keeps_its_flags() -> None:
    made = np.random.default_rng(3).uniform(1, 5, (20, 2))
    used = np.array([True, False])
    assert solved(made, np.array([1.0, 0.0]), np.ones(2), used) == pytest.approx([1.0, 0.0])
    assert used.tolist() == [True, False]
