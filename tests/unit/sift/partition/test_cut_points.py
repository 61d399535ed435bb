from __future__ import annotations

import numpy as np
import pytest

from tidegate.errors import FlowError
from tidegate.sift.partition.cut_tree import between, check, gaps, inside, nearest
from tidegate.sift.queries.axes import Axis
from tidegate.sift.queries.boxes import Boxes
from tidegate.sift.regions import Domain


def _no_queries(axes: int) -> Boxes:
    none = np.zeros((0, axes), np.int64)
    return Boxes(tuple(Axis(f"x{k}") for k in range(axes)), none, none, np.zeros(0, np.int32), 0)


def test_a_cut_lies_halfway_between_two_values() -> None:
    assert between(1.0, 4.0, whole=False) == 2.5


def test_a_cut_between_whole_numbers_is_whole_and_parts_them() -> None:
    assert between(3.0, 4.0, whole=True) == 4.0
    assert between(3.0, 6.0, whole=True) == 5.0


def test_a_cut_between_neighbouring_floats_parts_them() -> None:
    above = np.nextafter(1.0, 2.0)
    assert 1.0 < between(1.0, above, whole=False) <= above
    assert between(-1.7e308, 1.7e308, whole=False) > -1.7e308


def test_rows_outside_of_the_domain_count_as_rows_at_its_border() -> None:
    domain, whole = Domain(np.array([0.0, 0.0]), np.array([1.0, 3.0])), np.array([False, True])
    points = inside(domain, whole, np.array([[-5.0, -1.0], [0.5, 1.0], [1.0, 3.0], [9.0, 7.0]]))
    assert points[:2].tolist() == [[0.0, 0.0], [0.5, 1.0]]
    assert points[2:, 0].tolist() == [np.nextafter(1.0, 0.0)] * 2
    assert points[2:, 1].tolist() == [2.0, 2.0]


def test_gaps_are_where_values_differ() -> None:
    assert gaps(np.array([1.0, 1.0, 2.0, 2.0, 3.0])).tolist() == [2, 4]
    assert gaps(np.array([1.0, 1.0])).tolist() == []
    assert gaps(np.zeros(0)).tolist() == []


def test_the_nearest_gap_is_taken_once_and_the_lower_of_two() -> None:
    allowed = np.array([2, 4, 9])
    assert nearest(allowed, np.array([3.0])).tolist() == [2]
    assert nearest(allowed, np.array([0.0, 1.0, 5.0, 6.9, 99.0])).tolist() == [2, 4, 9]
    assert nearest(np.zeros(0, np.int64), np.array([3.0])).tolist() == []


def test_no_regions_at_all_are_refused() -> None:
    with pytest.raises(FlowError, match=r"SIFTER_SETTING_INVALID.*at least one region"):
        check(Domain(np.zeros(1), np.ones(1)), np.zeros((3, 1)), _no_queries(1), 0)


@pytest.mark.parametrize("shape", [(3,), (3, 1), (3, 3)])
def test_a_sample_with_other_axes_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(FlowError, match=r"INTERNAL_ARRAYS_INCONSISTENT.*do not have the same axes"):
        check(Domain(np.zeros(2), np.ones(2)), np.zeros(shape), _no_queries(2), 4)
