from __future__ import annotations

import numpy as np

from tidegate.sift.construct.shrinkage import shrunk


def test_differences_that_chance_explains_disappear() -> None:
    # Expected are 25 rows each; X² is 0.16, where chance alone makes 3.
    found = shrunk(np.array([0.24, 0.26, 0.25, 0.25]), np.full(4, 0.3), 100)
    np.testing.assert_allclose(found, 0.25)


def test_differences_beyond_chance_stay_the_more_the_more_rows_there_are() -> None:
    seen, worth = np.array([0.7, 0.1, 0.1, 0.1]), np.full(4, 0.3)
    # X² is 1.08 a row.
    for rows in (100, 10_000):
        np.testing.assert_allclose(shrunk(seen, worth, rows), seen + 3 / (1.08 * rows) * (0.25 - seen))


def test_cuts_that_were_fitted_to_the_sample_count_half_as_much_again() -> None:
    seen, worth = np.array([0.7, 0.1, 0.1, 0.1]), np.full(4, 0.3)
    once, more = (shrunk(seen, worth, 100, fitted=fitted) for fitted in (False, True))
    np.testing.assert_allclose(more - seen, 1.5 * (once - seen))


def test_shares_add_up_to_the_same_and_what_has_no_worth_keeps_its_own() -> None:
    seen = np.array([0.4, 0.1, 0.2, 0.1])
    found = shrunk(seen, np.array([0.1, 0.0, 0.3, 0.2]), 20)
    assert abs(found.sum() - 0.8) <= 1e-15
    assert found[1] == 0.1
    assert (found[0], found[2]) != (0.4, 0.2)


def test_a_single_region_and_one_without_rows_are_left_alone() -> None:
    for seen in (np.array([1.0]), np.zeros(3)):
        assert shrunk(seen, np.ones(len(seen)), 10).tolist() == seen.tolist()
