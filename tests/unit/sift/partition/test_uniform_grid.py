from __future__ import annotations

import pytest
from tests.unit.sift.queries.small_spaces import CATEGORY, INTEGER, cut

from tidegate.sift.partition.uniform_grid import per_axis


@pytest.mark.parametrize(
    ("regions", "axes", "u"), [(1, 3, 1), (999, 3, 9), (1000, 3, 10), (63, 6, 1), (64, 6, 2)]
)
def test_the_largest_power_that_is_not_more_than_asked_for(regions: int, axes: int, u: int) -> None:
    assert per_axis(regions, axes) == u


def test_cells_of_the_uniform_grid_are_equal() -> None:
    low, high = cut("ugrid", [], 9, high=(3.0, 30.0)).bounds
    assert (high - low).round(12).tolist() == [[1.0, 10.0]] * 9


def test_the_uniform_grid_cuts_whole_axes_at_whole_numbers() -> None:
    grid = cut("ugrid", [], 16, axes=(INTEGER, CATEGORY), high=(10.0, 3.0))
    assert sorted(set(grid.at[grid.axis == 0])) == [3.0, 5.0, 8.0]
    # Three cells have no four ranges.
    assert sorted(set(grid.at[grid.axis == 1])) == [1.0, 2.0]
    assert grid.count == 12
