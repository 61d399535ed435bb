from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate.sift.construct.consolidation import Consolidated, consolidate
from tidegate.sift.queries.axes import END, FIRST, NAN, NULL, Axis, places
from tidegate.sift.queries.boxes import Boxes
from tidegate.sift.regions import Domain, Regions

#: [0, 10] × [0, 10], cut at x = 4, and its right part at y = 5.
THREE = Regions(
    Domain(np.zeros(2), np.full(2, 10.0)),
    np.array([0, 1], np.int32),
    np.array([4.0, 5.0]),
    np.array([[~0, 1], [~1, ~2]], np.int32),
)
F = np.array([0.5, 0.2, 0.3])
ALL = (FIRST, END)
XY = (Axis("x"), Axis("y"))


def at(value: float) -> int:
    return int(places(np.array([value]))[0])


def box(x: tuple[int, int], y: tuple[int, int] = ALL, owner: int = 0) -> tuple[list[int], list[int], int]:
    return [x[0], y[0]], [x[1], y[1]], owner


def between(low: float, high: float) -> tuple[int, int]:
    return at(low), at(high)


def only(value: float) -> tuple[int, int]:
    return at(value), at(value) + 1


def seen(
    *drawn: tuple[list[int], list[int], int], f: NDArray[np.float64] = F, kind: str = "number"
) -> Consolidated:
    low, high, owner = (np.array(part) for part in zip(*drawn, strict=True))
    queries = int(owner.max()) + 1
    boxes = Boxes((Axis("x", kind), Axis("y", kind)), low, high, owner.astype(np.int32), queries)
    return consolidate(THREE, f, boxes, np.full(queries, 1 / queries), np.full(queries, 1.5))


def test_a_query_is_worth_most_where_most_of_its_rows_are() -> None:
    found = seen(box(between(2, 7), between(0, 10)))
    # Half of the left region, and half of each right one.
    np.testing.assert_allclose(found.query_shares, [0.5 * 0.5 + 0.5 * 0.2 + 0.5 * 0.3])
    np.testing.assert_allclose(found.region_qos, 1.5 * np.array([0.5, 0.2, 0.3]))
    assert found.constant == -0.5
    assert found.overall_qos(np.zeros(3)) == pytest.approx(1)
    assert found.overall_qos(np.ones(3)) == -0.5


def test_boxes_of_one_query_share_its_completeness() -> None:
    found = seen(box(between(0, 4)), box(between(4, 10), between(0, 5)), box(ALL, owner=1))
    np.testing.assert_allclose(found.query_shares, [0.7, 1.0])
    np.testing.assert_allclose(found.region_qos, 0.75 * np.array([5 / 7 + 0.5, 2 / 7 + 0.2, 0.3]))


def test_a_query_without_data_is_complete_whatever_is_dropped() -> None:
    found = seen(box(between(0, 4)), box(between(5, 6), between(6, 7), owner=1), f=np.array([0.7, 0.3, 0.0]))
    assert found.query_shares.tolist() == [0.7, 0.0]
    assert found.nonempty.tolist() == [True, False, True]
    np.testing.assert_allclose(found.region_qos, [0.75, 0, 0])
    assert found.overall_qos(np.ones(3)) == pytest.approx(0.5 * -0.5 + 0.5 * 1)


def test_a_box_is_cut_off_at_the_walls_and_one_outside_has_no_data() -> None:
    found = seen(box(between(-5, 2)), box(between(-5, 0), owner=1), box(between(10.5, 12), owner=2))
    np.testing.assert_allclose(found.query_shares, [0.25, 0, 0])
    assert found.nonempty.tolist() == [True, False, False]


def test_nan_is_outside_of_every_domain() -> None:
    assert seen(box((NAN, NAN + 1))).query_shares.tolist() == [0]


def test_a_point_lies_in_the_region_that_holds_it() -> None:
    for value, region in ((0.0, 0), (3.999, 0), (4.0, 1), (9.0, 1), (10.0, 1)):
        found = seen(box(only(value), only(2.0)))
        np.testing.assert_allclose(found.region_qos, 1.5 * (np.arange(3) == region))
        assert found.query_shares[0] > 0
    assert seen(box(only(4.0), only(5.0))).nonempty.tolist() == [False, False, True]


def test_what_touches_the_upper_wall_lies_where_rows_at_the_wall_do() -> None:
    at_the_wall = Regions(THREE.domain, THREE.axis, np.array([10.0, 5.0]), THREE.children)
    beyond = Boxes(XY, np.array([[at(10.0), FIRST]]), np.full((1, 2), END), np.zeros(1, np.int32), 1)
    found = consolidate(at_the_wall, F, beyond, np.ones(1), np.ones(1))
    np.testing.assert_allclose(found.region_qos, [0, 0.4, 0.6])


def test_sample_rows_tell_more_than_volume_which_counts_as_one_row() -> None:
    half = Boxes(XY, np.array([[at(2.0), FIRST]]), np.array([[at(7.0), END]]), np.zeros(1, np.int32), 1)
    # By volume half, a fifth and 0.3 of its rows; of its three sample rows two lie in the last region.
    sample = np.array([[3.0, 1.0], [5.0, 8.0], [6.0, 9.0], [1.0, 1.0], [np.nan, 1.0]])
    found = consolidate(THREE, F, half, np.ones(1), np.ones(1), sample)
    np.testing.assert_allclose(found.region_qos, np.array([1.5, 0.2, 2.3]) / 4)
    np.testing.assert_allclose(found.query_shares, 3 / 5)


#: The right part of THREE without its cut, and the rows without an x.
WITHOUT_X = Regions(
    THREE.domain, np.zeros(2, np.int32), np.array([np.inf, 4.0]), np.array([[1, ~2], [~0, ~1]], np.int32)
)


@pytest.mark.parametrize(
    ("x", "y", "shares"),
    [
        (ALL, between(0, 5), [0.5, 0.2, 0.3]),
        (between(0, 4), ALL, [1.0, 0.0, 0.0]),
        (between(4, 99), ALL, [0.0, 1.0, 0.0]),
        (only(10.0), ALL, [0.0, 1.0, 0.0]),
        ((NULL, END), ALL, [0.0, 0.0, 1.0]),
        ((at(4.0), END), ALL, [0.0, 0.4, 0.6]),
    ],
)
def test_a_query_reaches_rows_without_a_value_if_it_accepts_null(
    x: tuple[int, int], y: tuple[int, int], shares: list[float]
) -> None:
    low, high, owner = box(x, y)
    boxes = Boxes(XY, np.array([low]), np.array([high]), np.array([owner], np.int32), 1)
    found = consolidate(WITHOUT_X, F, boxes, np.ones(1), np.ones(1))
    np.testing.assert_allclose(found.region_qos, shares)
    assert found.nonempty.tolist() == [share > 0 for share in shares]


def test_sample_rows_without_a_value_count_for_queries_that_accept_null() -> None:
    low, high, owner = (
        np.array(part) for part in zip(box(between(0, 4)), box(ALL, between(0, 2), owner=1), strict=True)
    )
    boxes = Boxes(XY, low, high, owner.astype(np.int32), 2)
    sample = np.array([[np.nan, 1.0], [np.nan, 9.0], [2.0, 1.0]])
    found = consolidate(WITHOUT_X, F, boxes, np.full(2, 0.5), np.ones(2), sample)
    np.testing.assert_allclose(found.query_shares, [1 / 3, 2 / 3])
    np.testing.assert_allclose(found.region_qos, [0.5 + 1.5 / 6, 0.2 / 6, 1.3 / 6])


def test_a_line_is_split_by_density_whatever_the_distance_of_floats() -> None:
    for value in (4.0, 5.0, 9.0):
        found = seen(box(only(value)))
        np.testing.assert_allclose(found.region_qos, 1.5 * np.array([0, 0.4, 0.6]))
    # Zero has neighbours 5e-324 away, 9 has neighbours 2e-15 away; rows per width are 0.5 / 4 and 0.5 / 6.
    found = seen(box(only(0.0)), box(only(9.0)))
    np.testing.assert_allclose(found.region_qos[0], 1.5 * (0.5 / 4) / (0.5 / 4 + 0.5 / 6))


def test_whole_numbers_fill_their_cells_and_a_gap_between_them_holds_nothing() -> None:
    np.testing.assert_allclose(seen(box(only(3.0)), kind="integer").query_shares, [0.5 / 4])
    assert seen(box(between(3.2, 3.8)), kind="integer").query_shares.tolist() == [0]


def test_without_queries_nothing_is_worth_anything() -> None:
    none = Boxes(XY, np.zeros((0, 2), np.int64), np.zeros((0, 2), np.int64), np.zeros(0, np.int32), 0)
    found = consolidate(THREE, F, none, np.zeros(0), np.zeros(0))
    assert (found.region_qos.tolist(), found.constant) == ([0, 0, 0], 0)
    assert not found.nonempty.any()


WHOLE = Boxes(XY, np.full((1, 2), FIRST, np.int64), np.full((1, 2), END, np.int64), np.zeros(1, np.int32), 1)


@pytest.mark.parametrize(
    ("weights", "alphas", "message"),
    [
        ([1.0], [1.0, 1.0], "INTERNAL_ARRAYS_INCONSISTENT.*1 queries, 1 weights, 2 sensitivities"),
        ([0.9], [1.0], "INTERNAL_ARRAYS_INCONSISTENT.*sum to 1"),
        ([np.nan], [1.0], "INTERNAL_ARRAYS_INCONSISTENT.*sum to 1"),
        ([1.0], [-0.5], r"QUERY_SENSITIVITY_RANGE.*Got: -0\.5"),
        ([1.0], [np.inf], "QUERY_SENSITIVITY_RANGE.*finite number"),
    ],
)
def test_weights_and_alphas_that_make_no_sense_are_refused(
    weights: list[float], alphas: list[float], message: str
) -> None:
    with pytest.raises(FlowError, match=message):
        consolidate(THREE, F, WHOLE, np.array(weights), np.array(alphas))
