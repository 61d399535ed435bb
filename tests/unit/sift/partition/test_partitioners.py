from __future__ import annotations

import numpy as np
import pytest
from tests.unit.sift.queries.small_spaces import CATEGORY, NUMBER, cut

from tidegate.errors import FlowError
from tidegate.sift.partition.partitioners import PARTITIONERS, Partitioner, partitioner
from tidegate.sift.placing import frequencies
from tidegate_lab.workloads.sifters import Workload, draw_queries, draw_rows, hits

named = pytest.mark.parametrize("partition", PARTITIONERS.values(), ids=PARTITIONERS)
data_driven = pytest.mark.parametrize("name", ["dedp", "count", "flexp"])


@named
@pytest.mark.parametrize("regions", [1, 16, 100])
def test_the_papers_workload_gives_as_many_regions_as_asked_for(partition: Partitioner, regions: int) -> None:
    workload = Workload()
    sample, boxes = draw_rows(workload, 1000), draw_queries(workload).boxes
    found = partition(workload.domain, sample, hits(sample, boxes), boxes, regions)
    # `auto` stops where nothing more is to be gained.
    assert found.count == regions or (
        partition is PARTITIONERS["auto"] and 0.8 * regions <= found.count < regions
    )
    assert frequencies(found, sample).sum() == pytest.approx(1.0)


@named
def test_a_number_that_is_no_power_is_met_by_flexible_ones_and_the_power_below_by_the_others(
    partition: Partitioner,
) -> None:
    workload = Workload("unif", seed=2)
    sample, boxes = draw_rows(workload, 500), draw_queries(workload).boxes
    found = partition(workload.domain, sample, hits(sample, boxes), boxes, 10)
    flexible = partition in [PARTITIONERS[name] for name in ("flexp", "volume", "count", "auto")]
    assert found.count == (10 if flexible else 9)


def test_an_unknown_partitioner_is_refused_with_the_known_names() -> None:
    with pytest.raises(
        FlowError,
        match=r"SIFTER_PARTITIONER_UNKNOWN.*Use one of ugrid, dedp, qedp, flexp, volume, count, auto",
    ):
        partitioner("kd")


@data_driven
def test_rows_with_the_same_value_stay_together(name: str) -> None:
    sample = [[0.5], [0.5], [0.5], [0.5], [0.5], [0.9]]
    found = cut(name, sample, 4, axes=(NUMBER,), high=(1.0,), hits=[0, 1, 2, 3, 4, 5])
    assert found.at.tolist() == pytest.approx([0.7])


@data_driven
@pytest.mark.parametrize("sample", [[], [[0.3, 0.3]], [[0.3, 0.3]] * 5, [[np.nan, 0.1], [0.2, np.inf]]])
def test_rows_that_do_not_lie_apart_make_one_region(name: str, sample: list[list[float]]) -> None:
    assert cut(name, sample, 4).count == 1


@data_driven
def test_fewer_rows_than_regions_make_a_region_for_each_row(name: str) -> None:
    found = cut(name, [[0.1], [0.5], [0.9]], 10, axes=(NUMBER,), high=(1.0,))
    assert np.sort(found.at).tolist() == pytest.approx([0.3, 0.7])


@data_driven
def test_cuts_of_whole_axes_are_whole_numbers_inside_the_domain(name: str) -> None:
    # A value behind the domain counts as the last cell.
    sample = [[0.0], [1.0], [2.0], [99.0]]
    found = cut(name, sample, 10, axes=(CATEGORY,), high=(3.0,))
    assert np.sort(found.at).tolist() == [1.0, 2.0]
