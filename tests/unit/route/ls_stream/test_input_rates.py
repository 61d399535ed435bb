from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.route.ls_stream.partition_load import trimmed_rates

SAMPLES = st.lists(st.floats(0, 1e9), min_size=3, max_size=12)


def test_the_highest_and_the_lowest_are_left_out() -> None:
    samples = np.array([[10.0, 1.0], [1000.0, 1.0], [12.0, 1.0], [0.0, 1.0]])
    assert trimmed_rates(samples).tolist() == [11, 1]


@pytest.mark.parametrize(("samples", "expected"), [([4.0], 4.0), ([4.0, 8.0], 6.0)])
def test_with_less_than_three_samples_all_count(samples: list[float], expected: float) -> None:
    assert trimmed_rates(np.array(samples)[:, None]).tolist() == [expected]


@given(SAMPLES)
def test_it_is_the_sum_less_both_extremes_over_what_is_left(samples: list[float]) -> None:
    """Equation 4 as its text says it; printed, the divisor counts the two extremes as well."""
    expected = (sum(samples) - max(samples) - min(samples)) / (len(samples) - 2)
    assert trimmed_rates(np.array(samples)[:, None])[0] == pytest.approx(expected, rel=1e-9, abs=1e-3)


@given(SAMPLES, st.floats(0, 1e12))
def test_one_burst_does_not_push_the_rate_above_what_was_seen_without_it(
    samples: list[float], burst: float
) -> None:
    with_burst = trimmed_rates(np.array([*samples, burst])[:, None])[0]
    assert min(samples) * (1 - 1e-12) <= with_burst <= max(samples) * (1 + 1e-12)
