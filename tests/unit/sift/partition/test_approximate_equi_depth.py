from __future__ import annotations

import pytest
from tests.unit.sift.queries.small_spaces import cut


@pytest.mark.parametrize("scale", [0.001, 1.0, 1000.0])
def test_the_approximate_equi_depth_cuts_the_axis_of_highest_variance_for_its_domain(scale: float) -> None:
    sample = [[0.1 * scale, 0.50], [0.2 * scale, 0.55], [0.8 * scale, 0.45], [0.9 * scale, 0.52]]
    found = cut("count", sample, 2, high=(scale, 1.0))
    assert found.axis.tolist() == [0]
    assert found.at.tolist() == pytest.approx([0.5 * scale])
