from __future__ import annotations

import numpy as np
import pytest
from tests.unit.sift.queries.small_spaces import NUMBER, boxes, cut

from tidegate.errors import FlowError
from tidegate.sift.partition.qd_part import qd_part
from tidegate.sift.regions import Domain


def test_qdpart_cuts_where_hits_change_and_not_where_rows_are_halved() -> None:
    sample = [[0.1 + 0.1 * k, 0.5] for k in range(8)]
    found = cut("flexp", sample, 2, hits=[9, 9, 0, 0, 0, 0, 0, 0])
    assert found.axis.tolist() == [0]
    assert found.at.tolist() == pytest.approx([0.25])


def test_qdpart_halves_rows_whose_hits_do_not_differ() -> None:
    sample = [[0.5, 0.1 * k] for k in range(8)]
    found = cut("flexp", sample, 4, hits=[3] * 8)
    assert found.axis.tolist() == [1, 1, 1]
    assert np.sort(found.at).tolist() == pytest.approx([0.15, 0.35, 0.55])


def test_qdpart_halves_the_axis_where_rows_lie_further_apart_if_hits_do_not_differ() -> None:
    sample = [[0.5 + 0.01 * k, 0.1 + 0.1 * k] for k in range(8)]
    assert cut("flexp", sample, 2).axis.tolist() == [1]


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_the_unit_of_a_column_does_not_choose_the_axis_of_qdpart(scale: float) -> None:
    # Hits change along the second axis alone; the first has rows in no order.
    sample = [[x * scale, 0.1 * k] for k, x in enumerate([0.3, 0.6, 0.4, 0.5, 0.35, 0.55])]
    found = cut("flexp", sample, 2, high=(scale, 1.0), hits=[0, 0, 0, 9, 9, 9])
    assert found.axis.tolist() == [1]
    assert found.at.tolist() == pytest.approx([0.25])


def test_qdpart_wants_hits_for_every_row() -> None:
    domain, queries = Domain(np.zeros(1), np.ones(1)), boxes((NUMBER,), [], [])
    with pytest.raises(FlowError, match=r"INTERNAL_ARRAYS_INCONSISTENT.*2 rows and 1 hit counts"):
        qd_part(domain, np.zeros((2, 1)), np.zeros(1, np.int64), queries, 2)
