from __future__ import annotations

import json

import numpy as np
import pytest

from tidegate.errors import StateError
from tidegate.join.selective.time_correlation import TimeCorrelation


def counts(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(numbers, np.int64)


def test_before_anything_was_seen_the_newest_comes_first() -> None:
    assert TimeCorrelation(4).order == (0, 1, 2, 3)


def test_ages_are_ordered_by_matches_per_comparison_and_not_by_matches() -> None:
    window = TimeCorrelation(3)
    window.observe(counts(30, 20, 9), counts(1000, 100, 10))
    assert window.adapt() == (2, 1, 0)
    assert window.value == pytest.approx((0.03 + 0.2 + 0.9) / 3)


def test_observations_add_up_within_a_period_and_are_forgotten_after_it() -> None:
    window = TimeCorrelation(2)
    window.observe(counts(5, 0), counts(10, 10))
    window.observe(counts(0, 9), counts(10, 10))
    assert window.adapt() == (1, 0)
    window.observe(counts(3, 2), counts(10, 10))
    assert window.adapt() == (0, 1)


def test_an_age_without_comparisons_keeps_its_value() -> None:
    window = TimeCorrelation(2)
    window.observe(counts(1, 5), counts(10, 10))
    window.adapt()
    window.observe(counts(2, 0), counts(10, 0))
    assert window.adapt() == (1, 0)
    assert window.values.tolist() == [0.2, 0.5]


def test_an_age_that_was_never_seen_is_an_average_one_and_no_part_of_the_value() -> None:
    window = TimeCorrelation(4)
    window.observe(counts(0, 1, 9, 2), counts(0, 10, 10, 10))
    assert window.adapt() == (2, 0, 3, 1)
    assert window.value == pytest.approx((0.1 + 0.9 + 0.2) / 3)
    restored = TimeCorrelation.restore(json.loads(json.dumps(window.snapshot())))
    assert (restored.order, restored.value) == (window.order, window.value)


def test_a_restored_window_goes_on_with_the_same_answers() -> None:
    window = TimeCorrelation(3)
    window.observe(counts(1, 5, 2), counts(10, 10, 10))
    window.adapt()
    window.observe(counts(9, 0, 0), counts(10, 10, 10))
    restored = TimeCorrelation.restore(json.loads(json.dumps(window.snapshot())))
    assert restored.order == window.order == (1, 2, 0)
    assert restored.adapt() == window.adapt() == (0, 1, 2)


def test_observations_of_another_window_are_refused() -> None:
    with pytest.raises(StateError, match=r"INTERNAL_ARRAYS_INCONSISTENT.*do not fit the basic windows"):
        TimeCorrelation(3).observe(counts(1, 2), counts(1, 2))
