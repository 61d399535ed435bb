from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tidegate.sift.partition.auto.growth import Grown, Points, grow


def grown(
    data: Sequence[float],
    worth: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    *,
    parts: int = 2,
    least: float = 0.0,
    whole: bool = False,
) -> Grown:
    """Along one axis from 0 to 10, rows and worth of 1 at these places, boxes from `low` to `high`."""
    points = Points(
        np.array([*data, *worth], np.float64)[:, None],
        np.repeat([1 / len(data), 0.0], [len(data), len(worth)]),
        np.repeat([0.0, 1 / max(len(worth), 1)], [len(data), len(worth)]),
    )
    extents = (np.array(low, np.float64)[:, None], np.array(high, np.float64)[:, None])
    return grow(points, extents, (np.zeros(1), np.full(1, 10.0)), np.array([whole]), parts, least)


def test_the_first_cut_parts_data_from_worth() -> None:
    # One box reaches over all, so that no part is unasked.
    found = grown([1, 2, 3, 8], [5, 6, 7, 9], [0], [10])
    assert found.at[0] == 4.0
    assert found.data.tolist() == [1.0, 0.75, 0.25]
    assert found.worth.tolist() == [1.0, 0.0, 1.0]
    assert found.asked.all()


def test_space_that_no_query_meets_is_cut_off_exactly_at_the_edge_of_the_boxes() -> None:
    found = grown([1, 2, 3, 5, 6, 7, 8, 9], [5, 6, 7], [3.25, 5.5], [5.5, 7.125], parts=3)
    assert sorted(found.at[found.children[:, 0] >= 0].tolist()) == [3.25, 7.125]
    leaves = found.children[:, 0] < 0
    assert found.asked[leaves].sum() == 1
    assert found.data[leaves & ~found.asked].sum() == pytest.approx(5 / 8)


def test_a_part_within_a_box_is_asked_for_all_the_way_down() -> None:
    found = grown([1, 2, 3, 8, 9], [2, 5, 6], [0, 5], [4, 7], parts=4)
    for node in range(len(found.axis)):
        if found.children[node, 0] >= 0 and not found.asked[node]:
            assert not found.asked[found.children[node]].any()
    assert found.asked[0]
    # What is above 7 and what lies between 4 and 5 is asked for by nobody, and the former has data.
    assert found.data[~found.asked].max() == pytest.approx(2 / 5)


def test_a_side_without_enough_data_is_not_cut_off_unless_the_other_is_unasked() -> None:
    # Between 3 and 6 data and worth come apart best, but then there is no data above.
    assert grown([1, 2, 3], [6, 7], [0], [10], least=0.1).at[0] == 2.5
    assert grown([1, 2, 3], [6, 7], [5], [10], least=0.1).at[0] == 5.0


def test_whole_axes_are_cut_at_whole_numbers() -> None:
    assert grown([1, 1, 2], [5, 6], [0], [10], whole=True).at[0] == 4.0


def test_points_at_one_place_stay_together() -> None:
    assert len(grown([3, 3, 3], [3], [0], [10]).axis) == 1


def test_where_data_and_worth_go_together_nothing_is_cut() -> None:
    assert len(grown([1, 2, 3, 4], [1, 2, 3, 4], [0], [10], least=0.25).axis) == 1


def test_every_node_knows_its_data_and_worth_and_whether_a_query_meets_it() -> None:
    random = np.random.default_rng(1)
    rows, centres = random.random((300, 2)), random.random((40, 2)) ** 3
    points = Points(
        np.concatenate((rows, centres)),
        np.repeat([1 / 300, 0.0], [300, 40]),
        np.repeat([0.0, 1 / 40], [300, 40]),
    )
    low, high = centres - 0.02, centres + 0.02
    found = grow(points, (low, high), (np.zeros(2), np.ones(2)), np.zeros(2, np.bool_), 30, 0.01)
    walls = {0: (np.zeros(2), np.ones(2))}
    for node in range(len(found.axis)):
        lower, upper = walls[node]
        inside = ((lower <= points.at) & (points.at < upper)).all(axis=1)
        assert found.data[node] == pytest.approx(points.data[inside].sum())
        assert found.worth[node] == pytest.approx(points.worth[inside].sum())
        assert found.asked[node] == ((low < upper) & (high > lower)).all(axis=1).any()
        if found.children[node, 0] >= 0:
            k, (below, above) = found.axis[node], found.children[node].tolist()
            walls[below], walls[above] = (lower, upper.copy()), (lower.copy(), upper)
            walls[below][1][k] = walls[above][0][k] = found.at[node]
    assert len(found.axis) == 59
