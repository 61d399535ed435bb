from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tidegate_lab.reproduce.selective_join.over_time import fractions, output_curve, rate_curve
from tidegate_lab.reproduce.selective_join.policies import COLOURS, POLICIES, RANDOM_DROP, RATE
from tidegate_lab.reproduce.selective_join.scenarios import (
    PAPER_RUSH,
    SHIFT,
    Rush,
    Scenario,
    both_windows,
    one_window,
    output_rate,
    ratios,
    run,
)

SHORT = Scenario(Rush((10, 5, 5, 5), (10, 50, 30, 10), 20.0), one_window(5.0))


def test_the_rush_is_the_papers() -> None:
    assert PAPER_RUSH.steps.at(np.array([0.0, 59.9, 60.1, 74.9, 75.1, 104.9, 105.1])).tolist() == [
        100, 100, 500, 500, 300, 300, 100,
    ]  # fmt: skip
    assert PAPER_RUSH.rush == (60, 75)
    assert PAPER_RUSH.long == (75, 105)
    assert PAPER_RUSH.adapted == (70, 75)
    assert PAPER_RUSH.shedding == (65, 105)


def test_the_machine_just_manages_the_rate_that_fits() -> None:
    """200 rows a second meet the 4,000 rows of a window of 20 s."""
    assert Scenario(PAPER_RUSH, one_window()).capacity == 200 * 4000
    assert Scenario(PAPER_RUSH, both_windows()).capacity == 2 * 200 * 4000
    assert Scenario(PAPER_RUSH, one_window(40.0), fitted_seconds=20.0).capacity == 200 * 4000


def test_period_and_shift_follow_the_window() -> None:
    workload = Scenario(PAPER_RUSH, both_windows(40.0), shift_share=SHIFT).workload
    assert workload.period_seconds == 80
    assert workload.shift_seconds.levels == ((1.0, 50.0),)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_setting_runs_to_the_end_and_has_a_colour(policy: str) -> None:
    trace = run(SHORT, policy, seed=3)
    assert trace.ticks("outputs").size == 25 * 4
    assert trace.total("offered") == 2 * (100 + 250 + 150 + 50)
    assert policy in COLOURS


def test_settings_that_are_compared_see_the_same_rows_and_seeds_differ() -> None:
    one, other = (run(SHORT, policy, 3).total("outputs", 0, 10) for policy in (RANDOM_DROP, RATE))
    assert one == other
    assert run(SHORT, RATE, 4).total("outputs") != run(SHORT, RATE, 3).total("outputs")


def test_a_run_is_a_function_of_scenario_setting_and_seed() -> None:
    one = run(SHORT, RATE, 3).ticks("outputs").tolist()
    run.cache_clear()
    assert run(SHORT, RATE, 3).ticks("outputs").tolist() == one


def test_ratios_and_rates_are_those_of_the_runs() -> None:
    (ratio,) = ratios(SHORT, RATE, RANDOM_DROP, (10, 20), [3])
    one, other = (run(SHORT, policy, 3).total("outputs", 10, 20) for policy in (RATE, RANDOM_DROP))
    assert ratio == one / other
    assert output_rate(SHORT, RATE, (10, 20), [3]) == one / 10


def test_curves_over_time_show_rates_outputs_and_fractions() -> None:
    assert rate_curve(SHORT.rush).x == [0, 10, 15, 20, 25]
    curve = output_curve(SHORT, RATE, [3, 4])
    assert sum(curve.y) > 0
    assert all(low <= y <= high for low, y, high in zip(curve.low, curve.y, curve.high, strict=True))
    tight = replace(SHORT, fitted_seconds=1.0)
    assert fractions(tight, RATE, [3], 0).min() < 1.0
