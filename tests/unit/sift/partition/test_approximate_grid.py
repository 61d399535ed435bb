from __future__ import annotations

import numpy as np
import pytest
from tests.unit.sift.queries.small_spaces import CATEGORY, cut


@pytest.mark.parametrize("high", [(1.0, 1.0), (1.0, 1e6)])
def test_the_approximate_grid_halves_the_edge_that_is_longest_for_its_domain(
    high: tuple[float, float],
) -> None:
    found = cut("volume", [], 4, high=high)
    assert found.axis.tolist() == [0, 1, 1]
    assert found.at.tolist() == [0.5, high[1] / 2, high[1] / 2]


def test_the_approximate_grid_does_not_cut_a_single_cell() -> None:
    found = cut("volume", [], 10, axes=(CATEGORY,), high=(3.0,))
    assert found.count == 3
    assert np.sort(found.at).tolist() == [1.0, 2.0]
