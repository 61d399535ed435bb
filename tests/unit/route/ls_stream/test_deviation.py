from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.route.ls_stream.deviation import deviation, fair_load

LOADS = st.lists(st.floats(1, 1e6), min_size=1, max_size=20)


def test_the_papers_example_has_imbalance_0_48() -> None:
    assert deviation(np.array([43.0, 15.0])) == pytest.approx(14 / 29)


@pytest.mark.parametrize(
    ("loads", "expected"),
    [
        ([5.0, 5.0, 5.0], 0.0),
        ([0.0, 0.0], 0.0),
        ([7.0], 0.0),
        ([12.0, 0.0, 0.0, 0.0], 3.0),
        ([3.0, 3.0, 0.0], 1.0),
    ],
)
def test_the_larger_of_both_deviations_counts(loads: list[float], expected: float) -> None:
    assert deviation(np.array(loads)) == pytest.approx(expected)


@given(LOADS, st.floats(0.001, 1000))
def test_it_is_a_ratio(loads: list[float], factor: float) -> None:
    assert deviation(factor * np.array(loads)) == pytest.approx(deviation(np.array(loads)), abs=1e-9)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9), st.floats(0.1, 100))
def test_loads_in_proportion_to_the_weights_are_balanced(weights: list[int], each: float) -> None:
    speeds = np.array(weights, np.float64)
    assert deviation(each * speeds, speeds) == pytest.approx(0, abs=1e-9)
    assert fair_load(each * speeds, speeds) == pytest.approx(each)


def test_the_same_load_is_an_imbalance_where_speeds_differ() -> None:
    assert deviation(np.array([10.0, 10.0]), np.array([1.0, 3.0])) == pytest.approx(1.0)
