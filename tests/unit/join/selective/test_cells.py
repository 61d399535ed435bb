from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.join.selective.cells import choose_cells
from tidegate_lab.simulate.join.basic_windows import ages, cell_lengths

VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=6).map(np.array)


@given(st.integers(1, 50), st.integers(1, 20))
def test_lengths_are_what_rows_anywhere_in_their_slot_see_on_average(window: int, slot: int) -> None:
    lengths = cell_lengths(window, slot)
    assert lengths.size == ages(window, slot)
    assert lengths.sum() == pytest.approx(window)
    u = (np.arange(2000) + 0.5) / 2000 * slot
    for age, length in enumerate(lengths):
        newest, oldest = u + (age - 1) * slot, u + age * slot
        seen = np.clip(oldest, 0, window) - np.clip(newest, 0, window)
        assert seen.mean() == pytest.approx(length, abs=slot * 1e-3)


def test_the_best_cells_of_both_windows_are_taken_together() -> None:
    values = np.array([1.0, 5.0, 2.0]), np.array([4.0, 3.0, 0.0])
    lengths = np.ones(3), np.ones(3)
    left, right = choose_cells(values, lengths, fraction=0.5)
    assert (left[0], right[0]) == pytest.approx((1 / 3, 2 / 3))
    assert (left[1], right[1]) == ((1, 2, 0), (0, 1, 2))


def test_the_last_cell_is_taken_in_part() -> None:
    values = np.array([1.0, 5.0]), np.array([4.0, 0.0])
    left, right = choose_cells(values, (np.ones(2), np.ones(2)), fraction=0.3)
    assert left[0] == pytest.approx(0.5)
    assert right[0] == pytest.approx(0.1)


def test_a_window_of_no_length_costs_nothing_and_takes_nothing_away() -> None:
    left, right = choose_cells((np.array([1.0, 2.0]), np.array([9.0])), (np.ones(2), np.zeros(1)), 0.5)
    assert left == (0.5, (1, 0))
    assert right == (0.5, (0,))


@given(VALUES, VALUES, st.floats(0, 1), st.integers(0, 2**32))
def test_no_other_choice_of_the_same_cost_is_worth_more(
    left: np.ndarray[tuple[int], np.dtype[np.float64]],
    right: np.ndarray[tuple[int], np.dtype[np.float64]],
    fraction: float,
    seed: int,
) -> None:
    lengths = np.ones(left.size), np.ones(right.size)
    chosen = choose_cells((left, right), lengths, fraction)
    budget = fraction * (left.size + right.size)
    worth, cost = 0.0, 0.0
    for values, (share, order) in zip((left, right), chosen, strict=True):
        taken = np.clip(share * values.size - np.arange(values.size), 0, 1)
        worth, cost = worth + float(values[list(order)] @ taken), cost + float(taken.sum())
    assert cost == pytest.approx(budget, abs=1e-9)
    other = np.random.default_rng(seed).random(left.size + right.size)
    other *= min(1.0, budget / other.sum())
    assert worth >= float(np.concatenate([left, right]) @ other) - 1e-9
