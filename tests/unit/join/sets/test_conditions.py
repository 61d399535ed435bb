from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import FlowError, StateError
from tidegate.join.sets.item_sets import bitsets
from tidegate_lab.simulate.join.basic_windows import Ranges
from tidegate_lab.simulate.join.counted_conditions import CountedOverlap, Equality, codes

SETS = st.lists(st.lists(st.integers(0, 149), max_size=6), max_size=12)


def packed(sets: list[list[int]], universe: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    bounds = np.concatenate([[0], np.cumsum([len(s) for s in sets])]).astype(np.int64)
    words: np.ndarray[tuple[int, int], np.dtype[np.uint64]] = bitsets(
        bounds, np.array([i for s in sets for i in s], np.int64), universe
    )
    return words


def two_ranges(probing: int, stored: int) -> Ranges:
    middle = stored // 2
    return Ranges(np.tile([0, middle], (probing, 1)), np.tile([middle, stored], (probing, 1)))


@pytest.mark.parametrize("universe", [150, 100, 50])
@given(left=SETS, right=SETS, at_least=st.integers(1, 4))
def test_overlaps_are_counted_as_sets_say(
    universe: int, left: list[list[int]], right: list[list[int]], at_least: int
) -> None:
    left, right = ([[i % universe for i in one] for one in sets] for sets in (left, right))
    ranges = two_ranges(len(left), len(right))
    counts = CountedOverlap(at_least).count(packed(left, universe), packed(right, universe), ranges)
    halves = right[: len(right) // 2], right[len(right) // 2 :]
    expected = [[sum(len({*a} & {*b}) >= at_least for b in half) for half in halves] for a in left]
    assert counts.tolist() == expected


@given(st.lists(st.integers(-3, 3), max_size=12), st.lists(st.integers(-3, 3), max_size=12))
def test_equal_values_are_counted(left: list[int], right: list[int]) -> None:
    ranges = two_ranges(len(left), len(right))
    counts = Equality().count(codes(np.array(left, int)), codes(np.array(right, int)), ranges)
    halves = right[: len(right) // 2], right[len(right) // 2 :]
    assert counts.tolist() == [[half.count(a) for half in halves] for a in left]


def test_an_overlap_of_nothing_is_refused() -> None:
    with pytest.raises(FlowError, match="JOIN_SET_THRESHOLD"):
        CountedOverlap(0)


def test_an_item_without_a_code_is_refused() -> None:
    with pytest.raises(FlowError, match="INTERNAL_POSITION_OUT_OF_BOUNDS"):
        packed([[100]], 100)


def test_a_range_outside_the_stored_rows_is_refused() -> None:
    with pytest.raises(StateError, match="do not fit together"):
        CountedOverlap(1).count(packed([[1]], 100), packed([[1]], 100), two_ranges(1, 4))
