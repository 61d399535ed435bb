from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import StateError
from tidegate.join.selective.row_cells import choose_row_cells

CELLS = st.lists(st.tuples(st.floats(0, 100, width=32), st.integers(0, 50)), max_size=60)


@given(CELLS, st.floats(0, 1.2))
def test_the_best_cells_are_taken_within_the_budget(cells: list[tuple[float, int]], part: float) -> None:
    values = np.array([value for value, _ in cells], np.float32).reshape(1, -1)
    sizes = np.array([size for _, size in cells], np.int64).reshape(1, -1)
    limit = part * float(sizes.sum())
    chosen = choose_row_cells(values, sizes, limit)
    left = limit - sizes[chosen].sum()
    assert left >= 0
    if part >= 1:
        assert chosen.all()
    worst = values[chosen].min(initial=np.inf)
    for value, size in zip(values[~chosen], sizes[~chosen], strict=True):
        # Bins are up to 1/32 wide; what did not fit may be worth more than smaller cells of its bin.
        assert value <= worst * (1 + 1 / 32) + 1e-30
        assert size > left or value < worst


def test_a_row_with_popular_items_gets_what_a_row_with_rare_ones_does_not_need() -> None:
    values = np.array([[0.9, 0.8, 0.7], [0.01, 0.02, 0.6]], np.float32)
    chosen = choose_row_cells(values, np.full((2, 3), 500), 2000.0)
    assert chosen.tolist() == [[True, True, True], [False, False, True]]


def test_cells_that_cannot_match_are_taken_last() -> None:
    values = np.array([[0.0, 1e-30, 0.0]], np.float32)
    assert choose_row_cells(values, np.full((1, 3), 10), 20.0).tolist() == [[True, True, False]]


@pytest.mark.parametrize("sizes", [np.array([[1, 2]]), np.array([[1], [-2]])])
def test_cells_without_a_proper_size_are_refused(
    sizes: np.ndarray[tuple[int, int], np.dtype[np.int64]],
) -> None:
    with pytest.raises(StateError, match="INTERNAL_ARRAYS_INCONSISTENT"):
        choose_row_cells(np.zeros((2, 1), np.float32), sizes, 5.0)
