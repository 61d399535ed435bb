from __future__ import annotations

import numpy as np
import pytest

from tidegate.errors import FlowError
from tidegate.sift.construction import Asked, Constructed, Sample, construct, reconfigure
from tidegate.sift.partition.partitioners import PARTITIONERS
from tidegate.sift.placing import frequencies, region_of
from tidegate_lab.workloads.sifters import Workload, draw_queries, draw_rows, hits

WORKLOAD = Workload(query_count=200)
QUERIES = draw_queries(WORKLOAD)
ROWS = draw_rows(WORKLOAD, 500)
ASKED = (QUERIES.boxes, QUERIES.weights, QUERIES.alphas)


def built(name: str = "flexp", *, z: float = 0.4, paper: bool = True, nulls: int = 0) -> Constructed:
    rows = ROWS.copy()
    rows[:nulls, 1] = np.nan
    sample = Sample(rows, hits(rows, QUERIES.boxes))
    return construct(
        PARTITIONERS[name], WORKLOAD.domain, sample, Asked(*ASKED), regions=16, z=z, fairness=0.5, paper=paper
    )


@pytest.mark.parametrize("name", sorted(PARTITIONERS))
def test_the_sample_passes_in_the_share_that_can_be_processed(name: str) -> None:
    found = built(name)
    passed = 1 - found.thresholds[region_of(found.regions, ROWS)]
    assert passed.mean() == pytest.approx(0.4)
    even = found.consolidated.overall_qos(np.full(found.regions.count, 0.6))
    assert found.overall_qos > even


@pytest.mark.parametrize("nulls", [100, 450, 500])
@pytest.mark.parametrize("name", sorted(PARTITIONERS))
def test_rows_with_nulls_get_regions_with_thresholds_like_any_other(name: str, nulls: int) -> None:
    found = built(name, nulls=nulls, z=0.2)
    rows = ROWS.copy()
    rows[:nulls, 1] = np.nan
    passed = 1 - found.thresholds[region_of(found.regions, rows)]
    assert passed.mean() == pytest.approx(0.2)
    assert found.regions.count <= 16
    (region,) = set(region_of(found.regions, rows[:nulls]).tolist())
    assert found.thresholds[region] == pytest.approx(min(1.0, 0.8 * 500 / nulls)), "no query accepts them"


def test_shrinking_changes_frequencies_and_not_the_regions_or_the_volume() -> None:
    plain, steady = built(), built(paper=False)
    assert plain.regions.to_json() == steady.regions.to_json()
    assert not np.allclose(plain.frequencies, steady.frequencies, rtol=0, atol=1e-4)
    assert steady.thresholds @ steady.frequencies == pytest.approx(0.6)


def test_counts_of_sources_give_the_volume_of_all_their_rows() -> None:
    regions, fresh = built().regions, draw_rows(WORKLOAD, 5_000, part=1)
    counts = np.rint(frequencies(regions, fresh) * 5_000).astype(np.int64)
    found = reconfigure(regions, counts, *ASKED, z=0.5)
    passed = 1 - found.thresholds[region_of(regions, fresh)]
    assert passed.sum() == pytest.approx(2_500)


def test_counts_that_do_not_fit_the_regions_are_refused() -> None:
    regions = built().regions
    for counts in (np.ones(regions.count + 1, np.int64), np.zeros(regions.count, np.int64)):
        with pytest.raises(FlowError, match="INTERNAL_ARRAYS_INCONSISTENT"):
            reconfigure(regions, counts, *ASKED, z=0.5)


@pytest.mark.parametrize("count", [0, 3])
def test_a_sample_without_rows_or_hits_is_refused(count: int) -> None:
    with pytest.raises(FlowError, match="INTERNAL_ARRAYS_INCONSISTENT"):
        Sample(np.zeros((count, 2)), np.zeros(0, np.int64))
