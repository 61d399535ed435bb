from __future__ import annotations

import numpy as np
import pytest
from tests.unit.sift.queries.small_spaces import NUMBER, boxes, cut

from tidegate.sift.partition.partitioners import partitioner
from tidegate.sift.regions import Domain


def test_data_equi_depth_goes_axis_by_axis() -> None:
    # Two slabs along the first axis, each halved along the second where its own rows want it.
    sample = [[0.1, 0.2], [0.2, 0.4], [0.6, 0.6], [0.8, 0.8]]
    found = cut("dedp", sample, 4)
    assert found.axis.tolist() == [0, 1, 1]
    assert found.at.tolist() == pytest.approx([0.4, 0.3, 0.7])


def test_query_equi_depth_counts_centres_of_boxes() -> None:
    # The second box goes on for ever and counts where the domain shows it: its centre is 0.7.
    queries = boxes((NUMBER,), [[0.0], [0.4], [0.7]], [[0.2], [np.inf], [0.9]])
    found = partitioner("qedp")(
        Domain(np.zeros(1), np.ones(1)), np.zeros((0, 1)), np.zeros(0, np.int64), queries, 3
    )
    assert np.sort(found.at).tolist() == pytest.approx([0.4, 0.75])
