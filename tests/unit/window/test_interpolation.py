from __future__ import annotations

import numpy as np
import pytest
from tidegate.window.interpolation import with_estimates

from tidegate.errors import FlowError
from tidegate.window.drop.decisions import Decisions

DROPPED = Decisions(10, 0, 20, ((1, 3), (4, 5), (6, 9)))


def test_dropped_windows_lie_on_the_line_between_their_neighbours_and_are_marked() -> None:
    series = with_estimates(np.array([0, 30, 50]), np.array([10.0, 16.0, 12.0]), DROPPED, 10)
    assert series.starts.tolist() == [0, 10, 20, 30, 40, 50]
    assert series.values.tolist() == [10, 12, 14, 16, 14, 12]
    assert series.estimated.tolist() == [False, True, True, False, True, False]


def test_a_window_that_was_kept_but_had_no_rows_stays_missing() -> None:
    series = with_estimates(np.array([0, 50]), np.array([1.0, 2.0]), DROPPED, 10)
    assert series.starts.tolist() == [0, 10, 20, 40, 50]


def test_nothing_is_guessed_beyond_the_last_exact_window() -> None:
    assert with_estimates(np.array([30]), np.array([1.0]), DROPPED, 10).starts.tolist() == [30]
    series = with_estimates(np.array([50, 90]), np.array([1.0, 5.0]), DROPPED, 10)
    assert series.values.tolist() == [1, 2, 3, 4, 5]
    assert not with_estimates(np.array([], np.int64), np.array([]), DROPPED, 10).starts.size


def test_where_decisions_are_shared_the_windows_of_an_output_are_filled_in_at_its_own_slide() -> None:
    # A decision about 30 microseconds stands for three windows of this output.
    decisions = Decisions(30, 0, 20, ((1, 2),))
    series = with_estimates(np.array([20, 60]), np.array([0.0, 4.0]), decisions, 10)
    assert series.starts.tolist() == [20, 30, 40, 50, 60]
    assert series.values.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("starts", "values"), [([0, 10], [1.0]), ([10, 0], [1.0, 2.0]), ([0, 0], [1.0, 2.0])]
)
def test_a_series_out_of_order_is_refused(starts: list[int], values: list[float]) -> None:
    with pytest.raises(FlowError, match="window starts that ascend"):
        with_estimates(np.array(starts), np.array(values), DROPPED, 10)
