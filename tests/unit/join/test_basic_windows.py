from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_lab.simulate.join.basic_windows import ages, ranges_by_age

TIMES = st.lists(st.integers(0, 60), max_size=30).map(sorted)


@given(TIMES, TIMES, st.integers(0, 40), st.integers(1, 15), st.booleans())
def test_every_partner_in_the_window_is_in_the_range_of_its_age_and_in_no_other(
    stored: list[int], probing: list[int], window: int, slot: int, equal_times: bool
) -> None:
    ranges = ranges_by_age(
        np.array(stored, int), np.array(probing, int), window, slot, equal_times=equal_times
    )
    assert ranges.starts.shape == (len(probing), ages(window, slot))
    for row, time in enumerate(probing):
        for age in range(ages(window, slot)):
            expected = [
                place
                for place, other in enumerate(stored)
                if time - window <= other <= time
                and (equal_times or other < time)
                and time // slot - other // slot == age
            ]
            start, end = ranges.starts[row, age], ranges.ends[row, age]
            assert list(range(start, end)) == expected


@given(TIMES, TIMES, st.integers(0, 40))
def test_without_basic_windows_the_whole_window_is_one_range(
    stored: list[int], probing: list[int], window: int
) -> None:
    whole = ranges_by_age(np.array(stored, int), np.array(probing, int), window, 0, equal_times=True)
    cut = ranges_by_age(np.array(stored, int), np.array(probing, int), window, 7, equal_times=True)
    assert whole.sizes.shape == (len(probing), 1)
    np.testing.assert_array_equal(whole.sizes[:, 0], cut.sizes.sum(axis=1))


@pytest.mark.parametrize(("window", "slot", "expected"), [(20, 1, 21), (20, 3, 8), (20, 0, 1), (0, 1, 1)])
def test_a_window_has_one_basic_window_more_than_fit_into_it(window: int, slot: int, expected: int) -> None:
    assert ages(window, slot) == expected
