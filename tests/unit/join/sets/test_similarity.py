from __future__ import annotations

from math import nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import FlowError
from tidegate.join.sets.similarity import fewest_common, least_common
from tidegate.join.sets.thresholds import InnerProduct, Jaccard, Overlap

SHARES = st.one_of(
    st.builds(lambda a, b: min(a, b) / max(a, b), st.integers(1, 40), st.integers(1, 40)),
    st.floats(0, 1, exclude_min=True),
)


@given(SHARES, st.integers(0, 30), st.integers(0, 30))
def test_whole_numbers_decide_as_the_quotient_does(share: float, a: int, b: int) -> None:
    least = least_common(Jaccard(share), 60)
    for common in range(min(a, b) + 1):
        union = a + b - common
        assert (common >= least[a + b]) == (union > 0 and common / union >= share)


@given(SHARES, st.integers(0, 20))
def test_no_match_has_fewer_common_items_than_the_fewest(share: float, size: int) -> None:
    needed = [c for b in range(41) for c in range(1, min(size, b) + 1) if c / (size + b - c) >= share]
    fewest = fewest_common(Jaccard(share), 20)[size]
    assert fewest == (min(needed) if needed else 0)


def test_an_overlap_needs_the_same_number_whatever_the_sizes() -> None:
    assert least_common(Overlap(3), 4).tolist() == [3] * 5
    assert fewest_common(Overlap(3), 2).tolist() == [3] * 3


@pytest.mark.parametrize("share", [0, -0.1, 1.1, nan])
def test_a_similarity_that_is_no_share_is_refused(share: float) -> None:
    with pytest.raises(FlowError, match=r"JOIN_SET_THRESHOLD.*Jaccard"):
        Jaccard(share)


@pytest.mark.parametrize("least", [0, -1.0, nan])
def test_an_inner_product_of_nothing_is_refused(least: float) -> None:
    with pytest.raises(FlowError, match="JOIN_SET_THRESHOLD"):
        InnerProduct(least)


def test_tables_reach_as_far_as_asked() -> None:
    assert least_common(Jaccard(0.5), 0).size == 1
    assert np.array_equal(fewest_common(Jaccard(1.0), 3), [0, 1, 2, 3])
