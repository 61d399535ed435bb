from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tidegate.cli.demo.answers import WindowAnswers, judge_windows, summed_up

SIZE_US = 10
TIMES = np.array([1, 5, 9, 12, 25, 38, 41, 57])
EXACT = summed_up(TIMES, np.array([0, 1, 0, 0, 0, 0, 0, 0]), np.arange(8.0), SIZE_US)


def some(keep: list[int], **changed: list[float]) -> WindowAnswers:
    columns = {name: getattr(EXACT, name)[keep] for name in ("start_us", "district", "orders", "fares")}
    return WindowAnswers(**(columns | {name: np.array(values) for name, values in changed.items()}))


def test_orders_and_fares_are_added_up_by_window_and_district() -> None:
    assert EXACT.start_us.tolist() == [0, 0, 10, 20, 30, 40, 50]
    assert EXACT.orders.tolist() == [2, 1, 1, 1, 1, 1, 1]
    assert EXACT.fares.tolist() == [2.0, 1.0, 3.0, 4.0, 5.0, 6.0, 7.0]


def test_windows_may_be_missing_and_the_last_may_still_be_open() -> None:
    verdict = judge_windows(EXACT, some([0, 1, 4]), SIZE_US)
    assert (verdict.windows, verdict.missing, verdict.longest_gap, verdict.wrong) == (2, 2, 2, 0)
    assert judge_windows(EXACT, EXACT, SIZE_US).missing == 0


def test_windows_that_are_missing_at_the_beginning_count_too() -> None:
    verdict = judge_windows(EXACT, some([3, 5]), SIZE_US)
    assert (verdict.missing, verdict.longest_gap, verdict.missing_us) == (3, 2, (0, 10, 30))
    assert [verdict.missing_before(moment, SIZE_US) for moment in (5, 20, 39, 40)] == [0, 2, 2, 3]


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(some([0, 1, 2], orders=[2, 1, 2]), id="orders"),
        pytest.param(some([0, 1, 2], fares=[2.0, 1.0, 3.5]), id="fares"),
        pytest.param(some([0, 2]), id="a district is missing"),
        pytest.param(some([0, 1, 2, 2]), id="twice"),
        pytest.param(replace(some([0, 1, 2]), district=np.array([0, 1, 7])), id="a district too many"),
    ],
)
def test_a_window_that_is_there_must_be_right(wrong: WindowAnswers) -> None:
    assert judge_windows(EXACT, wrong, SIZE_US).wrong > 0
