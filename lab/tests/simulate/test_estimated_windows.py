"""Intervals of estimated aggregates hold the truth as often as they say."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.window.estimate.estimates import AVERAGE, COUNT, SUM
from tidegate_lab.simulate.windows.estimated_windows import AGGREGATES, Setting, covered

VALUES = ("around a price", "around zero", "exponential", "lognormal", "mostly zero")
#: Kept rows and probabilities: of a tenth of the rows, half of them, nearly all, and of changing shares.
SAMPLES = ((200, (0.1,)), (200, (0.5,)), (200, (0.02,)), (400, (0.8,)), (400, (0.3, 0.6)))
SETTINGS = [Setting(values, kept, shares) for values in VALUES for kept, shares in SAMPLES]
RUNS = 4000


def test_of_4000_windows_of_all_kinds_intervals_hold_the_truth_in_94_to_96_percent() -> None:
    each = [covered(setting, RUNS // len(SETTINGS), seed=8) for setting in SETTINGS]
    for name in AGGREGATES:
        held = np.mean([one.held[name] for one in each])
        assert 0.94 <= held <= 0.96, f"{name}: {held:.2%}"
        assert np.mean([one.given[name] for one in each]) > 0.99


@pytest.mark.parametrize("values", VALUES)
def test_with_fewer_rows_intervals_hold_it_nearly_as_often(values: str) -> None:
    found = covered(Setting(values, 75, (0.2,)), 1000, seed=4)
    assert all(0.925 <= held <= 0.975 for held in found.held.values()), found.held


@pytest.mark.parametrize("kept", [60, 400])
def test_a_heavy_tail_is_said_to_be_harder(kept: int) -> None:
    found = covered(Setting("heavy tail", kept, (0.2,)), 1000, seed=2)
    assert 0.94 <= found.held[COUNT] <= 0.965
    assert 0.93 <= found.held[SUM] <= 0.97
    assert 0.91 <= found.held[AVERAGE] <= 0.96


@pytest.mark.parametrize("kept", [12, 30])
def test_counts_of_few_rows_are_rather_too_careful(kept: int) -> None:
    found = covered(Setting("exponential", kept, (0.1,)), 2000, seed=3)
    assert 0.94 <= found.held[COUNT] <= 0.99
    assert found.given[SUM] < 0.02


def test_estimates_are_not_biased() -> None:
    for setting in SETTINGS[::4]:
        found = covered(setting, 1000, seed=5)
        # A ratio is biased by the inverse of its rows: too little to be seen among its errors.
        assert all(abs(bias) < 4 for bias in found.bias.values()), setting


@pytest.mark.soak
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_of_4000_windows_of_each_kind_as_well(setting: Setting) -> None:
    found = covered(setting, RUNS, seed=8)
    # Of 4,000 runs, three standard errors are a percent.
    assert all(0.935 <= held <= 0.965 for held in found.held.values()), found.held
