from __future__ import annotations

import numpy as np
import pytest

from tidegate.errors import FlowError
from tidegate.papers.sifters import Workload, draw_queries, draw_rows, hits
from tidegate.sift.axes import Axis, places
from tidegate.sift.boxes import Boxes
from tidegate.sift.partitioners import PARTITIONERS, Partitioner, partitioner
from tidegate.sift.placing import frequencies
from tidegate.sift.qd_part import qd_part
from tidegate.sift.regions import Domain, Regions
from tidegate.sift.uniform_grid import per_axis

NUMBER, INTEGER, CATEGORY = Axis("x"), Axis("i", "integer"), Axis("c", "category", ("a", "b"))
named = pytest.mark.parametrize("partition", PARTITIONERS.values(), ids=PARTITIONERS)


def _boxes(axes: tuple[Axis, ...], low: list[list[float]], high: list[list[float]]) -> Boxes:
    lower, upper = (np.array(bound, np.float64).reshape(-1, len(axes)) for bound in (low, high))
    return Boxes(axes, places(lower), places(upper), np.arange(len(lower), dtype=np.int32), len(lower))


def _partition(
    name: str,
    sample: list[list[float]],
    regions: int,
    *,
    axes: tuple[Axis, ...] = (NUMBER, NUMBER),
    high: tuple[float, ...] = (1.0, 1.0),
    hits: list[int] | None = None,
) -> Regions:
    domain = Domain(np.zeros(len(high)), np.array(high))
    points = np.array(sample, np.float64).reshape(-1, len(high))
    counts = np.array(hits if hits is not None else [0] * len(points), np.int64)
    return partitioner(name)(domain, points, counts, _boxes(axes, [], []), regions)


@named
@pytest.mark.parametrize("regions", [1, 16, 100])
def test_the_papers_workload_gives_as_many_regions_as_asked_for(partition: Partitioner, regions: int) -> None:
    workload = Workload()
    sample, boxes = draw_rows(workload, 1000), draw_queries(workload).boxes
    found = partition(workload.domain, sample, hits(sample, boxes), boxes, regions)
    assert found.count == regions
    assert frequencies(found, sample).sum() == pytest.approx(1.0)


@named
def test_a_number_that_is_no_power_is_met_by_flexible_ones_and_the_power_below_by_the_others(
    partition: Partitioner,
) -> None:
    workload = Workload("unif", seed=2)
    sample, boxes = draw_rows(workload, 500), draw_queries(workload).boxes
    found = partition(workload.domain, sample, hits(sample, boxes), boxes, 10)
    flexible = partition in [PARTITIONERS[name] for name in ("flexp", "volume", "count")]
    assert found.count == (10 if flexible else 9)


def test_an_unknown_partitioner_is_refused_with_the_known_names() -> None:
    with pytest.raises(FlowError, match="Use one of ugrid, dedp, qedp, flexp, volume, count"):
        partitioner("kd")


@pytest.mark.parametrize(
    ("regions", "axes", "u"), [(1, 3, 1), (999, 3, 9), (1000, 3, 10), (63, 6, 1), (64, 6, 2)]
)
def test_the_largest_power_that_is_not_more_than_asked_for(regions: int, axes: int, u: int) -> None:
    assert per_axis(regions, axes) == u


def test_cells_of_the_uniform_grid_are_equal() -> None:
    low, high = _partition("ugrid", [], 9, high=(3.0, 30.0)).bounds
    assert (high - low).round(12).tolist() == [[1.0, 10.0]] * 9


def test_the_uniform_grid_cuts_whole_axes_at_whole_numbers() -> None:
    grid = _partition("ugrid", [], 16, axes=(INTEGER, CATEGORY), high=(10.0, 3.0))
    assert sorted(set(grid.at[grid.axis == 0])) == [3.0, 5.0, 8.0]
    # Three cells have no four ranges.
    assert sorted(set(grid.at[grid.axis == 1])) == [1.0, 2.0]
    assert grid.count == 12


def test_data_equi_depth_goes_axis_by_axis() -> None:
    # Two slabs along the first axis, each halved along the second where its own rows want it.
    sample = [[0.1, 0.2], [0.2, 0.4], [0.6, 0.6], [0.8, 0.8]]
    found = _partition("dedp", sample, 4)
    assert found.axis.tolist() == [0, 1, 1]
    assert found.at.tolist() == pytest.approx([0.4, 0.3, 0.7])


def test_query_equi_depth_counts_centres_of_boxes() -> None:
    # The second box goes on for ever and counts where the domain shows it: its centre is 0.7.
    boxes = _boxes((NUMBER,), [[0.0], [0.4], [0.7]], [[0.2], [np.inf], [0.9]])
    whole = partitioner("qedp")(
        Domain(np.zeros(1), np.ones(1)), np.zeros((0, 1)), np.zeros(0, np.int64), boxes, 3
    )
    assert np.sort(whole.at).tolist() == pytest.approx([0.4, 0.75])


@pytest.mark.parametrize("name", ["dedp", "count", "flexp"])
def test_rows_with_the_same_value_stay_together(name: str) -> None:
    sample = [[0.5], [0.5], [0.5], [0.5], [0.5], [0.9]]
    found = _partition(name, sample, 4, axes=(NUMBER,), high=(1.0,), hits=[0, 1, 2, 3, 4, 5])
    assert found.at.tolist() == pytest.approx([0.7])


@pytest.mark.parametrize("name", ["dedp", "count", "flexp"])
@pytest.mark.parametrize("sample", [[], [[0.3, 0.3]], [[0.3, 0.3]] * 5, [[np.nan, 0.1], [0.2, np.inf]]])
def test_rows_that_do_not_lie_apart_make_one_region(name: str, sample: list[list[float]]) -> None:
    assert _partition(name, sample, 4).count == 1


@pytest.mark.parametrize("name", ["dedp", "count", "flexp"])
def test_fewer_rows_than_regions_make_a_region_for_each_row(name: str) -> None:
    found = _partition(name, [[0.1], [0.5], [0.9]], 10, axes=(NUMBER,), high=(1.0,))
    assert np.sort(found.at).tolist() == pytest.approx([0.3, 0.7])


@pytest.mark.parametrize("name", ["dedp", "count", "flexp"])
def test_cuts_of_whole_axes_are_whole_numbers_inside_the_domain(name: str) -> None:
    # A value behind the domain counts as the last cell.
    sample = [[0.0], [1.0], [2.0], [99.0]]
    found = _partition(name, sample, 10, axes=(CATEGORY,), high=(3.0,))
    assert np.sort(found.at).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("high", [(1.0, 1.0), (1.0, 1e6)])
def test_the_approximate_grid_halves_the_edge_that_is_longest_for_its_domain(
    high: tuple[float, float],
) -> None:
    found = _partition("volume", [], 4, high=high)
    assert found.axis.tolist() == [0, 1, 1]
    assert found.at.tolist() == [0.5, high[1] / 2, high[1] / 2]


def test_the_approximate_grid_does_not_cut_a_single_cell() -> None:
    found = _partition("volume", [], 10, axes=(CATEGORY,), high=(3.0,))
    assert found.count == 3
    assert np.sort(found.at).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_the_approximate_equi_depth_cuts_the_axis_of_highest_variance_for_its_domain(scale: float) -> None:
    sample = [[0.1 * scale, 0.50], [0.2 * scale, 0.55], [0.8 * scale, 0.45], [0.9 * scale, 0.52]]
    found = _partition("count", sample, 2, high=(scale, 1.0))
    assert found.axis.tolist() == [0]
    assert found.at.tolist() == pytest.approx([0.5 * scale])


def test_qdpart_cuts_where_hits_change_and_not_where_rows_are_halved() -> None:
    sample = [[0.1 + 0.1 * k, 0.5] for k in range(8)]
    found = _partition("flexp", sample, 2, hits=[9, 9, 0, 0, 0, 0, 0, 0])
    assert found.axis.tolist() == [0]
    assert found.at.tolist() == pytest.approx([0.25])


def test_qdpart_halves_rows_whose_hits_do_not_differ() -> None:
    sample = [[0.5, 0.1 * k] for k in range(8)]
    found = _partition("flexp", sample, 4, hits=[3] * 8)
    assert found.axis.tolist() == [1, 1, 1]
    assert np.sort(found.at).tolist() == pytest.approx([0.15, 0.35, 0.55])


def test_qdpart_wants_hits_for_every_row() -> None:
    domain, boxes = Domain(np.zeros(1), np.ones(1)), _boxes((NUMBER,), [], [])
    with pytest.raises(FlowError, match="2 rows and 1 numbers"):
        qd_part(domain, np.zeros((2, 1)), np.zeros(1, np.int64), boxes, 2)
