from __future__ import annotations

import numpy as np
import pytest
from tests.unit.sift.queries.small_spaces import CATEGORY, INTEGER, NUMBER, boxes

from tidegate.sift.construction import Asked, Sample, construct
from tidegate.sift.partition.auto.partition import auto_partition
from tidegate.sift.placing import frequencies
from tidegate.sift.queries.boxes import Boxes
from tidegate.sift.regions import Domain, Regions
from tidegate_lab.workloads.sifters import Workload, draw_queries, draw_rows, hits

LINE = Domain(np.zeros(1), np.full(1, 10.0))


def cut(sample: list[float], queries: Boxes, regions: int, domain: Domain = LINE) -> Regions:
    rows = np.array(sample, np.float64).reshape(-1, len(queries.axes))
    return auto_partition(domain, rows, np.zeros(len(rows), np.int64), queries, regions)


def test_data_that_nobody_asks_for_is_cut_off_at_the_edge_of_the_query() -> None:
    found = cut(np.linspace(0, 9.9, 100).tolist(), boxes((NUMBER,), [[7.25]], [[10.0]]), 2)
    assert found.at.tolist() == [7.25]


def test_cells_of_whole_numbers_and_categories_are_not_parted() -> None:
    found = cut([v for v in range(10) for _ in range(20)], boxes((INTEGER,), [[3.0]], [[5.0]]), 3)
    assert np.sort(found.at).tolist() == [3.0, 5.0]
    kinds = Domain(np.zeros(1), np.full(1, 3.0))
    found = cut([0.0] * 50 + [1.0] * 50 + [2.0] * 50, boxes((CATEGORY,), [[1.0]], [[2.0]]), 3, kinds)
    assert np.sort(found.at).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("sample", [[], [np.nan, np.inf]])
def test_without_rows_there_is_one_region(sample: list[float]) -> None:
    assert cut(sample, boxes((NUMBER,), [[1.0]], [[2.0]]), 8).count == 1


@pytest.mark.parametrize(("low", "high"), [([], []), ([[20.0]], [[30.0]])])
def test_without_queries_in_the_domain_there_is_one_region(
    low: list[list[float]], high: list[list[float]]
) -> None:
    assert cut([1.0, 2.0, 3.0], boxes((NUMBER,), low, high), 8).count == 1


def test_queries_that_lose_nothing_still_bound_what_nobody_asks_for() -> None:
    queries = boxes((NUMBER,), [[2.0], [6.0]], [[4.0], [8.0]])
    rows = np.linspace(0, 9.9, 200)[:, None]
    found = auto_partition(LINE, rows, np.zeros(200, np.int64), queries, 3, gain=np.zeros(2))
    assert np.sort(found.at).tolist() == [2.0, 8.0]


@pytest.mark.parametrize("by_alpha", [False, True])
def test_dear_queries_get_regions_of_their_own_before_cheap_ones(by_alpha: bool) -> None:
    low = [[1.0], [3.0], [5.0], [7.0]]
    queries = boxes((NUMBER,), [*low, [0.0]], [[2.0], [4.0], [6.0], [8.0], [10.0]])
    rows = np.linspace(0, 9.99, 1000)[:, None]
    dear, alike = np.array([1, 1, 30, 1, 10]) / 43, np.full(5, 0.2)
    weights, alphas = (alike, 5 * dear) if by_alpha else (dear, np.ones(5))
    hits_of_rows = np.zeros(1000, np.int64)
    found = auto_partition(LINE, rows, hits_of_rows, queries, 3, gain=weights * alphas)
    assert np.sort(found.at) == pytest.approx([5.0, 6.0], abs=0.2)


def test_a_dear_query_of_a_few_rows_gets_no_region_that_only_luck_would_tell_apart() -> None:
    queries = boxes((NUMBER,), [[0.0], [5.0]], [[10.0], [5.08]])
    rows = np.linspace(0, 9.99, 1000)[:, None]
    found = auto_partition(LINE, rows, np.zeros(1000, np.int64), queries, 3, gain=np.array([0.5, 0.5]))
    assert found.count == 3
    # Spread rows of others count in part.
    assert frequencies(found, rows).min() >= 0.014


@pytest.mark.parametrize("axes", [1, 3, 5])
@pytest.mark.parametrize("sample_rows", [50, 1000])
def test_any_number_of_axes_and_few_rows_promise_more_than_random_dropping(
    axes: int, sample_rows: int
) -> None:
    workload = Workload(axes=axes, query_sides=(0.05, 0.1))
    queries, rows = draw_queries(workload), draw_rows(workload, sample_rows)
    found = construct(
        auto_partition,
        workload.domain,
        Sample(rows, hits(rows, queries.boxes)),
        Asked(queries.boxes, queries.weights, queries.alphas),
    )
    assert 2 <= found.regions.count <= 16
    assert frequencies(found.regions, rows).sum() == pytest.approx(1.0)
    even = found.consolidated.overall_qos(np.full(found.regions.count, 0.5))
    assert found.overall_qos > even + 0.01
