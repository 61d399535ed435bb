"""The selective policy against one who knows the true value of every cell, and against random drop.

Counted cost; every run spends r of what joining everything would cost, exploring included.
"""

from __future__ import annotations

from statistics import median

import numpy as np
import pytest

from tidegate.control.actuators.paper_rate import FixedRate
from tidegate.control.actuators.policy import RandomDropPolicy
from tidegate_lab.reproduce.selective_join.beyond import (
    FRACTIONS,
    share_of_random_drop,
    shares_after_a_move,
    shares_of_clairvoyant,
)
from tidegate_lab.reproduce.selective_join.steady import WINDOWS, per_comparison
from tidegate_lab.simulate.join.counted_conditions import CountedOverlap
from tidegate_lab.simulate.join.machine import SECOND_US, Machine, paper_streams
from tidegate_lab.simulate.join.stream_join import StreamJoin
from tidegate_lab.workloads.selective_join import Steps, Workload


@pytest.mark.parametrize("skew", [0.8, *(pytest.param(k, marks=pytest.mark.soak) for k in (0.6, 1.0))])
def test_steady_output_is_95_percent_of_the_clairvoyant_choice_at_the_same_cost(skew: float) -> None:
    for fraction in FRACTIONS:
        output, cost = shares_of_clairvoyant(skew, fraction, seed=7)
        assert output >= 0.95
        assert cost == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize(
    "fraction",
    [FRACTIONS[1], *(pytest.param(r, marks=pytest.mark.soak) for r in FRACTIONS if r != FRACTIONS[1])],
)
def test_without_any_correlation_a_comparison_is_worth_what_it_is_worth_to_random_drop(
    fraction: float,
) -> None:
    assert median(share_of_random_drop(fraction, seed) for seed in range(5)) >= 0.97


def test_random_drop_finds_on_average_as_much_per_comparison_as_joining_everything() -> None:
    still = Workload(period_seconds=1e9, shift_seconds=Steps(((1, 0.0),)))
    streams = paper_streams(still, (Steps(((45, 150),)),) * 2)
    worth = []
    for seed, fraction in [(0, 1.0), *((seed, 0.3) for seed in range(12))]:
        machine = Machine(tick_us=SECOND_US // 2, seed=seed)
        join = StreamJoin(streams, WINDOWS, CountedOverlap(3), machine)
        worth.append(per_comparison(join.run(RandomDropPolicy(WINDOWS, FixedRate(fraction)), 45), 20.0))
    assert np.mean(worth[1:]) == pytest.approx(worth[0], rel=0.03)


@pytest.mark.parametrize("shift", [15.0, 35.0])
def test_a_correlation_that_moves_by_half_a_window_is_found_again_within_three_periods(shift: float) -> None:
    back = [shares_after_a_move(shift, seed) for seed in range(3)]
    assert np.median(back, axis=0).min() >= 0.9
