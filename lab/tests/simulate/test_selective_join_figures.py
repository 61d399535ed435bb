"""Figures 4 and 7 of the selective join paper, at half of its rates: counted cost, medians of five seeds.

Rates step from 50 to 250 to 150 rows a second; the capacity is what 100 rows a second take. The paper's 60
calm seconds are cut to 25, in which the windows of 20 s fill.
"""

from __future__ import annotations

from statistics import median

import pytest

from tidegate_lab.reproduce.experiment import Options
from tidegate_lab.reproduce.selective_join.policies import RANDOM_DROP, RATE, RATE_MODEL, TIME
from tidegate_lab.reproduce.selective_join.scenarios import (
    SHIFT,
    Rush,
    Scenario,
    Stretch,
    both_windows,
    one_window,
    ratios,
)
from tidegate_lab.reproduce.selective_join.steady import direction_gains

OPTIONS = Options()
RUSH = Rush((25, 15, 30, 0.25), (50, 250, 150, 50), 100.0)
ONE = Scenario(RUSH, one_window())


def gain(policy: str, over: str, stretch: Stretch, scenario: Scenario = ONE) -> float:
    """Output of one policy over that of another, median over the seeds."""
    return median(ratios(scenario, policy, over, stretch, OPTIONS.seeds))


def test_figure_4_rate_adaptation_finds_half_more_than_random_drop_after_the_rush() -> None:
    assert gain(RATE, RANDOM_DROP, RUSH.long) >= 1.5


def test_figure_4_rate_adaptation_finds_twice_as_much_once_it_has_adapted_to_the_rush() -> None:
    """The paper's rule starts from r = 1 and takes three of its five-second periods to come down."""
    assert gain(RATE, RANDOM_DROP, RUSH.adapted) >= 2.0
    assert gain(RATE, RANDOM_DROP, RUSH.rush) < 2.0


def test_figure_4_the_model_finds_much_more_than_the_papers_rule_over_the_whole_rush() -> None:
    assert gain(RATE_MODEL, RANDOM_DROP, RUSH.rush) >= 2.0
    assert gain(RATE_MODEL, RATE, RUSH.rush) >= 1.3


@pytest.mark.parametrize("skew", [0.8, pytest.param(0.6, marks=pytest.mark.soak)])
def test_figure_7_time_correlation_finds_half_more_than_rate_adaptation_alone(skew: float) -> None:
    assert gain(TIME, RATE, RUSH.shedding, Scenario(RUSH, both_windows(), skew, SHIFT)) >= 1.5


@pytest.mark.parametrize(("fraction", "bar"), [(0.1, 1.18), (0.2, 1.10)])
@pytest.mark.parametrize("skew", [0.8, pytest.param(0.6, marks=pytest.mark.soak)])
def test_figure_7_direction_adds_to_time_correlation(skew: float, fraction: float, bar: float) -> None:
    assert median(direction_gains(skew, fraction, OPTIONS)) >= bar
