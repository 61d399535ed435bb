"""Laws of hash routing: bounds agree with labels, labels never decrease, every partition is a range."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.route.hash_routing import PARTITIONS_MAX, partition_bounds, partition_of

PARTITIONS = st.one_of(st.integers(1, 40), st.integers(1, PARTITIONS_MAX), st.just(PARTITIONS_MAX))


@st.composite
def codes_near_edges(draw: st.DrawFn) -> tuple[list[int], int]:
    """Codes at random and codes one below, at and one above the edge of a partition."""
    partitions = draw(PARTITIONS)
    edges = st.builds(
        lambda partition, off: min(max((-(-(partition << 31) // partitions) << 33) + off, 0), 2**64 - 1),
        st.integers(0, partitions - 1),
        st.integers(-1, 1),
    )
    codes = draw(st.lists(st.one_of(edges, st.integers(0, 2**64 - 1)), max_size=40))
    # Copies make more rows than partitions: the bounds are then found in another way.
    return codes * draw(st.sampled_from([1, 40])), partitions


@given(codes_near_edges())
def test_bounds_agree_exactly_with_the_partition_of_every_row(drawn: tuple[list[int], int]) -> None:
    codes, partitions = np.sort(np.array(drawn[0], np.uint64)), drawn[1]
    labels = partition_of(codes, partitions)
    assert (np.diff(labels) >= 0).all()
    assert ((labels >= 0) & (labels < partitions)).all()
    owned, bounds = partition_bounds(codes, partitions)
    assert bounds.size == owned.size + 1
    assert (bounds[0], bounds[-1]) == (0, codes.size)
    assert (np.diff(owned) > 0).all()
    assert (np.diff(bounds) > 0).all()
    assert np.repeat(owned, np.diff(bounds)).tolist() == labels.tolist()
