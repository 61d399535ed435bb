from __future__ import annotations

import numpy as np
import pytest

from tidegate.api.range_queries import RangeQuery
from tidegate.errors import FlowError
from tidegate.sift.domain import domain_of
from tidegate.sift.queries.boxes import Boxes
from tidegate.sift.queries.query_boxes import boxes_of

SCHEMA = {"x": "number", "i": "integer", "s": "category"}


def asked(*wheres: str) -> Boxes:
    return boxes_of([RangeQuery(str(n), where) for n, where in enumerate(wheres)], SCHEMA)


def rows(*values: float) -> np.ndarray:
    return np.array(values, np.float64)[:, None]


def test_the_domain_holds_all_finite_samples_and_all_finite_bounds() -> None:
    domain = domain_of(asked("x > 3", "x between -1 and 2"), rows(0.5, 7, np.nan, np.inf, -np.inf))
    assert (domain.low.tolist(), domain.high.tolist()) == ([-1.0], [7.0])


def test_whole_numbers_keep_whole_cells() -> None:
    domain = domain_of(asked("i <= 4"), rows(7, 3, np.nan))
    assert (domain.low.tolist(), domain.high.tolist()) == ([3.0], [8.0])


def test_a_single_whole_number_is_as_wide_as_its_cell() -> None:
    domain = domain_of(asked("i = 4"), rows())
    assert (domain.low.tolist(), domain.high.tolist()) == ([4.0], [5.0])
    domain = domain_of(asked("i < 4"), rows())
    assert (domain.low.tolist(), domain.high.tolist()) == ([4.0], [5.0])


def test_a_category_has_all_of_its_cells_whatever_is_sampled() -> None:
    domain = domain_of(asked("s in ('a', 'b')"), rows(0))
    assert (domain.low.tolist(), domain.high.tolist()) == ([0.0], [3.0])


@pytest.mark.parametrize(
    ("where", "sample", "said"),
    [
        ("x = 5", rows(5, 5), "SIFT_COLUMN_CONSTANT.*'x'.* Got: only the value 5"),
        ("x < 5", rows(5), "SIFT_COLUMN_CONSTANT.*'x'"),
        ("x is null", rows(np.nan), "SIFT_COLUMN_CONSTANT.*'x'.*neither a finite sample nor a finite bound"),
        ("i is null", rows(), "SIFT_COLUMN_CONSTANT.*'i'"),
        ("x < 5", np.zeros(3), r"INTERNAL_ARRAYS_INCONSISTENT.* Got: shape \(3,\), 1 axes"),
    ],
)
def test_a_domain_without_width_is_refused(where: str, sample: np.ndarray, said: str) -> None:
    with pytest.raises(FlowError, match=said):
        domain_of(asked(where), sample)
