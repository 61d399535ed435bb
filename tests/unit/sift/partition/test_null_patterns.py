from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tidegate.sift.filter.lookup import Lookup
from tidegate.sift.partition.cut_tree import CutTree
from tidegate.sift.partition.null_patterns import null_patterns, with_null_patterns
from tidegate.sift.placing import region_of
from tidegate.sift.regions import Domain, Regions

NAN = np.nan


def quarters(axes: int = 3) -> Regions:
    tree = CutTree()
    for region in (0, tree.cut(0, 0, 0.5)):
        tree.cut(region, 1, 0.5)
    return tree.regions(Domain(np.zeros(axes), np.ones(axes)))


def test_patterns_are_those_of_the_sample_and_the_most_frequent_first() -> None:
    sample = np.array(
        [[0, 0, 0], [NAN, 0, 0], [NAN, 0, 0], [0, np.inf, NAN], [0, NAN, NAN], [0, NAN, NAN], [0, 0, NAN]]
    )
    found = null_patterns(sample, 9)
    assert found.tolist() == [[False, True, True], [True, False, False], [False, False, True]]
    assert null_patterns(sample, 1).tolist() == [[False, True, True]]
    assert len(null_patterns(sample[:1], 9)) == 0


def test_without_patterns_regions_stay_as_they_are() -> None:
    parts = quarters()
    assert with_null_patterns(parts, null_patterns(np.zeros((1, 3)), 9)) is parts


@pytest.mark.parametrize("seed", range(20))
def test_each_pattern_has_a_region_and_rows_without_nulls_keep_theirs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows: NDArray[np.float64] = rng.random((300, 3))
    rows[rng.random((300, 3)) < 0.3] = NAN
    lacking = np.isnan(rows)
    patterns = null_patterns(rows, int(rng.integers(1, 8)))
    found = with_null_patterns(quarters(), patterns)
    assert found.count == 4 + len(patterns)
    regions = region_of(found, rows)
    assert (Lookup.of(found).regions(list(rows.T)) == regions).all()
    own = [set(regions[(lacking == pattern).all(axis=1)].tolist()) for pattern in patterns]
    assert all(len(region) == 1 for region in own)
    assert len(set.union(*own)) == len(patterns), "two patterns share a region"
    whole = ~lacking.any(axis=1)
    assert not set.union(*own) & set(regions[whole].tolist())
    pairs = set(zip(regions[whole].tolist(), region_of(quarters(), rows[whole]).tolist(), strict=True))
    assert len(pairs) == 4
