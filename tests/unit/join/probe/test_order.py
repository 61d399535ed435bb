"""Sorting by (code, time): shapes that take each of the paths; the property test compares at random."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.errors import StateError
from tidegate.join.probe.order import sort_by_code_time

RANDOM = np.random.default_rng(7)
MIXED = RANDOM.integers(0, 2**64, 5000, dtype=np.uint64)
TIMES = RANDOM.integers(-(10**6), 10**6, 5000)
ENDS = np.array([-(2**63), 2**63 - 1, 0], np.int64)

SHAPES = {
    "well mixed codes": (MIXED, TIMES),
    "few keys, large groups": (MIXED[RANDOM.integers(0, 20, 5000)], TIMES),
    "keys of a few rows": (MIXED[RANDOM.integers(0, 1500, 5000)], TIMES),
    "one hot key": (np.full(5000, MIXED[0]), TIMES),
    "one hot key, many equal times": (np.full(5000, MIXED[0]), TIMES % 3),
    "hot keys over a long time": (MIXED[RANDOM.integers(0, 20, 5000)], RANDOM.integers(0, 2**55, 5000)),
    "hot keys over all of time": (MIXED[RANDOM.integers(0, 20, 5000)], ENDS[RANDOM.integers(0, 3, 5000)]),
    "codes that are not mixed": (MIXED % np.uint64(100), TIMES),
    "unmixed codes of few rows": (np.arange(10, dtype=np.uint64)[::-1].copy(), TIMES[:10]),
    "in order already": (np.sort(MIXED), TIMES),
    "hot keys in order of time": (MIXED[RANDOM.integers(0, 20, 5000)], np.sort(TIMES)),
    "codes in order, times not": (np.full(3, 5, np.uint64), np.array([1, 3, 2])),
    "the highest code": (np.array([2**64 - 1, 0, 2**64 - 1], np.uint64), np.array([1, 5, 0])),
    "one row": (MIXED[:1], TIMES[:1]),
    "no row": (MIXED[:0], TIMES[:0]),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_come_in_the_order_of_lexsort(shape: str) -> None:
    codes, times = SHAPES[shape]
    expected = np.lexsort((times, codes))
    rows = sort_by_code_time(codes, times)
    assert rows.order.dtype == np.int64
    np.testing.assert_array_equal(rows.order, expected)
    np.testing.assert_array_equal(rows.codes, codes[expected])
    np.testing.assert_array_equal(rows.times, times[expected])


def test_inputs_may_be_read_only_or_strided_and_stay_as_they_were() -> None:
    codes, times = MIXED[::2], TIMES[::2]
    expected = np.lexsort((times, codes))
    np.testing.assert_array_equal(sort_by_code_time(codes, times).order, expected)
    codes, times = codes.copy(), times.copy()
    codes.flags.writeable = times.flags.writeable = False
    np.testing.assert_array_equal(sort_by_code_time(codes, times).order, expected)


def test_codes_and_times_of_different_rows_are_refused() -> None:
    with pytest.raises(StateError, match=r"INTERNAL_ARRAYS_INCONSISTENT.*Got: 3 codes, 2 times"):
        sort_by_code_time(MIXED[:3], TIMES[:2])
