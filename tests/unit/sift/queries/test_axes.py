from __future__ import annotations

import numpy as np
import pytest

from tidegate.errors import FlowError
from tidegate.sift.queries.axes import END, FIRST, NAN, NULL, Axis, coordinates, places
from tidegate.sift.queries.boxes import Boxes
from tidegate.sift.regions import Domain, Regions


def test_places_keep_the_order_of_coordinates() -> None:
    numbers = np.array([-np.inf, -1e308, -5.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, np.inf, np.nan])
    found = places(numbers)
    assert (np.diff(found)[[0, 1, 2, 3, 5, 6, 7, 8]] > 0).all()
    assert found[4] == found[5]
    assert FIRST < found[0]
    assert found[-1] == NAN < NULL < END


def test_a_null_is_behind_nan_whatever_its_coordinate_says() -> None:
    assert places(np.array([3.0, np.nan]), np.array([True, True])).tolist() == [NULL, NULL]


def test_coordinates_come_back_from_places() -> None:
    numbers = np.array([-np.inf, -2.5, 0.0, 5e-324, 7.0, np.inf])
    assert coordinates(places(numbers)).tolist() == numbers.tolist()
    assert coordinates(np.array([FIRST, NAN, NULL, END])).tolist() == [-np.inf, np.inf, np.inf, np.inf]


def test_a_whole_number_fills_its_cell() -> None:
    five = places(np.array([5.0]))
    box = Boxes((Axis("x", "integer"),), five[:, None], five[:, None] + 1, np.zeros(1, np.int32), 1)
    assert [bound.tolist() for bound in box.extents] == [[[5.0]], [[6.0]]]


def test_an_unknown_kind_of_axis_is_refused() -> None:
    with pytest.raises(
        FlowError, match=r"QUERY_COLUMN_TYPE_UNSUPPORTED.*Use one of number, integer, category"
    ):
        Axis("x", "ordinal")


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (2.0, 1.0), (np.nan, 1.0), (0.0, np.inf)])
def test_a_domain_without_width_is_refused(low: float, high: float) -> None:
    with pytest.raises(FlowError, match=r"INTERNAL_ARRAYS_INCONSISTENT.*no width"):
        Domain(np.array([low]), np.array([high]))


def test_the_bounds_of_regions_tile_the_domain() -> None:
    tree = Regions(
        Domain(np.zeros(2), np.array([4.0, 2.0])),
        np.array([0, 1], np.int32),
        np.array([1.0, 0.5]),
        np.array([[~0, 1], [~1, ~2]], np.int32),
    )
    low, high = tree.bounds
    assert low.tolist() == [[0, 0], [1, 0], [1, 0.5]]
    assert high.tolist() == [[1, 2], [4, 0.5], [4, 2]]
    again = Regions.from_json(tree.to_json())
    assert [bound.tolist() for bound in again.bounds] == [low.tolist(), high.tolist()]


def test_one_region_needs_no_cut() -> None:
    whole = Regions(
        Domain(np.zeros(1), np.ones(1)), np.zeros(0, np.int32), np.zeros(0), np.zeros((0, 2), np.int32)
    )
    assert whole.count == 1
    assert [bound.tolist() for bound in Regions.from_json(whole.to_json()).bounds] == [[[0.0]], [[1.0]]]
