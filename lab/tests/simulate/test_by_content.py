from __future__ import annotations

from statistics import median

import pytest

from tidegate_lab.simulate.join.basic_windows import Windows
from tidegate_lab.simulate.join.by_content import Outputs, compare
from tidegate_lab.simulate.join.counted_conditions import CountedOverlap
from tidegate_lab.workloads.selective_join import SECOND_US, Workload

WINDOWS = Windows((20 * SECOND_US, 20 * SECOND_US), SECOND_US)


def run(skew: float, seed: int, *, rate: float = 500, fraction: float = 0.2, slots: int = 24) -> Outputs:
    return compare(Workload(skew=skew, seed=seed), rate, WINDOWS, CountedOverlap(3), fraction, slots)


@pytest.mark.parametrize(("skew", "bar"), [(0.6, 1.6), (0.8, 1.3)])
def test_choosing_by_content_beats_the_best_choice_by_time_at_equal_cost(skew: float, bar: float) -> None:
    """Slots of 500 rows, a fifth of all comparisons, estimates charged: the hardest case that must hold."""
    runs = [run(skew, seed) for seed in range(5)]
    assert all(one.compared < 0.92 * one.allowed for one in runs)  # the rest is the price of estimating
    assert median(one.gain for one in runs) >= bar


def test_the_larger_the_slots_the_less_estimates_weigh() -> None:
    small, large = (run(0.6, 3, rate=rate, slots=6) for rate in (100, 500))
    assert small.compared / small.allowed < large.compared / large.allowed
    assert small.gain < large.gain


def test_with_time_for_nearly_everything_both_find_nearly_everything() -> None:
    most = run(0.8, 1, rate=300, fraction=0.95, slots=6)
    assert most.gain == pytest.approx(1, abs=0.06)
    assert most.compared <= most.allowed
