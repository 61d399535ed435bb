"""Both readings of "normals within hot spots": what differs between them, and what does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate_lab.workloads import hot_spots
from tidegate_lab.workloads.hot_spots import Spread, draw_points, in_some_spot
from tidegate_lab.workloads.sifters import Workload, draw_queries, draw_rows, spreads

WITHIN = Workload("skew", "skew", local_skew=1.0, seed=4)
WHOLE = replace(WITHIN, whole_normals=True)


def query_centres(workload: Workload) -> NDArray[np.float64]:
    """As `draw_queries` draws them, before sides cut them off at the border."""
    return draw_points(spreads(workload)[1], workload.query_count, np.random.default_rng([workload.seed, 1]))


@pytest.mark.parametrize("global_skew", [1.0, 4.0, 10.0])
def test_within_spots_every_skewed_row_and_query_lies_in_some_hot_spot(global_skew: float) -> None:
    within, whole = (replace(one, global_skew=global_skew) for one in (WITHIN, WHOLE))
    for one, all_inside in ((within, True), (whole, False)):
        data, queries = spreads(one)
        assert in_some_spot(draw_rows(one, 5000), data).all() == all_inside
        assert in_some_spot(query_centres(one), queries).all() == all_inside


def test_a_row_may_lie_in_another_hot_spot_than_its_own() -> None:
    data = replace(
        spreads(WITHIN)[0],
        low=np.array([[0.2, 0.2], [0.4, 0.2]]),
        high=np.array([[0.4, 0.4], [0.6, 0.4]]),
        mean=np.array([[0.39, 0.3], [0.39, 0.3]]),
        deviation=np.full((2, 2), 0.1),
    )
    points = draw_points(data, 2000, np.random.default_rng(0))
    # A normal cut off at its own hot spot would end at 0.4.
    assert 0.4 < np.mean(points[:, 0] > 0.4) < 0.6
    assert in_some_spot(points, data).all()


def test_a_hot_spot_holds_its_lower_edge_and_not_its_upper_one() -> None:
    data = replace(spreads(WHOLE)[0], low=np.array([[0.25, 0.5]]), high=np.array([[0.5, 0.75]]))
    edges = np.array([[0.25, 0.5], [0.5, 0.5], [0.25, 0.75], [0.24, 0.5], [0.4, 0.7]])
    assert in_some_spot(edges, data).tolist() == [True, False, False, False, True]


def test_rows_that_lie_in_hot_spots_are_the_same_in_both_readings() -> None:
    whole, within = draw_rows(WHOLE, 5000), draw_rows(WITHIN, 5000)
    inside = in_some_spot(whole, spreads(WHOLE)[0])
    assert 0.1 < inside.mean() < 0.5
    assert (whole[inside] == within[inside]).all()
    assert (whole[~inside] != within[~inside]).any(axis=1).all()
    assert (draw_rows(WITHIN, 5000) == within).all()


def test_sides_and_alphas_of_queries_are_the_same_in_both_readings() -> None:
    whole, within = (draw_queries(one) for one in (WHOLE, WITHIN))
    assert (whole.alphas == within.alphas).all()
    inside = in_some_spot(query_centres(WHOLE), spreads(WHOLE)[1])
    for end, other in zip(whole.boxes.extents, within.boxes.extents, strict=True):
        assert (end[inside] == other[inside]).all()
        assert (end[~inside] != other[~inside]).any()


def test_what_is_uniform_is_the_same_in_both_readings() -> None:
    within = Workload("unif", "unif", seed=4)
    whole = replace(within, whole_normals=True)
    assert (draw_rows(whole, 1000) == draw_rows(within, 1000)).all()
    for end, other in zip(draw_queries(whole).boxes.extents, draw_queries(within).boxes.extents, strict=True):
        assert (end == other).all()


def test_the_points_that_published_figures_were_taken_with_have_not_changed() -> None:
    whole = Workload("skew", "skew", whole_normals=True)
    assert draw_rows(whole, 2) == pytest.approx(
        np.array([[0.5956785559936131, 0.8494218740525474], [0.6890729460471154, 0.2009103123476801]])
    )
    within = Workload("skew", "skew")
    # Of six rows the second lies in no hot spot at first.
    assert draw_rows(whole, 6)[1] == pytest.approx([0.6488292438672674, 0.173501192253756])
    assert draw_rows(within, 6)[1] == pytest.approx([0.711664516749225, 0.22239173006829752])
    for one in (whole, within):
        assert draw_queries(one).alphas[:2] == pytest.approx([1.4491801040640397, 1.603834209596976])


def test_points_lie_within_the_hot_spots_unless_normals_are_asked_for_whole() -> None:
    assert not Workload().whole_normals
    assert (draw_rows(Workload(seed=4), 1000) != draw_rows(Workload(seed=4, whole_normals=True), 1000)).any()


def test_points_that_find_no_hot_spot_are_an_error_and_no_endless_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hot_spots, "REDRAWS_MOST", 3)
    far, near = np.array([[0.1, 0.1]]), np.array([[0.9, 0.9]])
    lost = Spread("skew", far, far + 0.01, near, near / 100)
    with pytest.raises(FlowError, match=r"finds no place in the hot spots for some points\. Got: 7 points"):
        draw_points(lost, 7, np.random.default_rng(0))
