from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate.sift.construct.configuration import configure

#: Rows of the first region are worth 1 each, of the second 2, of the third 5; the mean is 2.5.
A = np.array([0.25, 1.0, 1.25])
F = np.array([0.25, 0.5, 0.25])
ASKED = np.ones(3, np.bool_)


def test_rows_worth_less_than_the_mean_are_dropped_more_by_the_fairness_bound() -> None:
    # 0.75 of the rows are cheap: lowest + 0.4 · 0.75 = 0.5.
    np.testing.assert_allclose(configure(A, F, ASKED, 0.5, 0.4), [0.6, 0.6, 0.2], rtol=0, atol=1e-15)


def test_at_the_lower_wall_the_cheapest_rows_are_dropped_first() -> None:
    np.testing.assert_allclose(configure(A, F, ASKED, 0.8, 0.4), [0.4, 0.2, 0.0], rtol=0, atol=1e-15)


def test_at_the_upper_wall_the_dearest_rows_are_kept_last() -> None:
    np.testing.assert_allclose(configure(A, F, ASKED, 0.1, 0.4), [1.0, 1.0, 0.6], rtol=0, atol=1e-15)
    np.testing.assert_allclose(configure(A, F, ASKED, 0.05, 0.4), [1.0, 1.0, 0.8], rtol=0, atol=1e-15)


def test_regions_whose_rows_are_worth_the_same_get_the_same_threshold() -> None:
    third = np.full(3, 1 / 3)
    np.testing.assert_allclose(configure(0.7 * third, third, ASKED, 0.9, 1.0), 0.1, rtol=0, atol=1e-15)
    # Worths 1, 2, 2: the last two share what is left.
    found = configure(np.array([0.5, 0.5, 0.5]), np.array([0.5, 0.25, 0.25]), ASKED, 0.4, 1.0)
    np.testing.assert_allclose(found, [1.0, 0.2, 0.2], rtol=0, atol=1e-15)


def test_what_nobody_asks_about_is_dropped_first_and_evenly() -> None:
    asked = np.array([True, False, False])
    worth = np.array([1.0, 0.0, 0.0])
    np.testing.assert_allclose(configure(worth, F, asked, 0.7, 0.0), [0.0, 0.4, 0.4], rtol=0, atol=1e-15)
    np.testing.assert_allclose(configure(worth, F, asked, 0.2, 0.0), [0.2, 1.0, 1.0], rtol=0, atol=1e-15)


def test_a_region_without_rows_is_treated_as_kindly_as_fairness_allows() -> None:
    frequencies = np.array([0.5, 0.5, 0.0, 0.0])
    found = configure(
        np.array([0.1, 0.9, 0.0, 0.0]), frequencies, np.array([True, True, True, False]), 0.5, 0.5
    )
    np.testing.assert_allclose(found, [0.75, 0.25, 0.25, 1.0], rtol=0, atol=1e-15)


def test_nothing_is_dropped_where_everything_can_be_processed() -> None:
    assert configure(A, F, ASKED, 1.0, 0.5).tolist() == [0, 0, 0]
    assert configure(np.zeros(2), np.array([1.0, 0.0]), np.zeros(2, np.bool_), 1.0, 0.5).tolist() == [0, 0]


@pytest.mark.parametrize("share", [-0.1, 1.1, np.nan])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(FlowError, match=r"SIFTER_SETTING_INVALID.*throttler z.*Got: .*from 0 to 1"):
        configure(A, F, ASKED, share, 0.5)
    with pytest.raises(FlowError, match=r"SIFTER_SETTING_INVALID.*fairness bound Δ"):
        configure(A, F, ASKED, 0.5, share)


@pytest.mark.parametrize("frequencies", [F * 0.9, np.array([-0.1, 0.8, 0.3]), F * np.nan])
def test_frequencies_that_do_not_add_up_are_refused(frequencies: NDArray[np.float64]) -> None:
    with pytest.raises(FlowError, match="INTERNAL_ARRAYS_INCONSISTENT"):
        configure(A, frequencies, ASKED, 0.5, 0.5)
