"""How much time is left free, from what predictions were off by."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tidegate.control.goal.control_tuning import TUNING, ControlTuning
from tidegate.control.goal.load_model import SafetyMargin


def tuned(**numbers: float) -> ControlTuning:
    return replace(TUNING, margin=replace(TUNING.margin, **numbers))


def part_after(errors: list[float], tuning: ControlTuning = TUNING) -> float:
    margin = SafetyMargin()
    for error in errors:
        margin.observe(1.0, 1.0 + error, 1.0, tuning)
    return margin.part(tuning)


def noise(sigma: float, batches: int = 48, seed: int = 3) -> list[float]:
    errors: list[float] = (sigma * np.random.default_rng(seed).standard_normal(batches)).tolist()
    return errors


def test_the_first_margin_gives_way_slowly() -> None:
    parts = [part_after([0.0] * batches, tuned(first=0.2)) for batches in range(60)]
    assert parts[0] == 0.2
    assert all(later <= earlier for earlier, later in pairwise(parts))
    assert parts[5] > 0.1 > parts[-1]


@pytest.mark.parametrize("sigma", [0.03, 0.06, 0.1])
def test_about_one_batch_in_ninety_takes_longer_than_the_margin_allows(sigma: float) -> None:
    parts = [part_after(noise(sigma, 100, seed), tuned(most=0.9)) for seed in range(40)]
    # Of the target t, a batch takes t (1 + error): too long from 1 / t on.
    assert np.median(parts) == pytest.approx(2.3 * sigma / (1 + 2.3 * sigma), rel=0.2)


def test_a_single_batch_that_goes_wrong_changes_little() -> None:
    errors = noise(0.04)
    assert part_after([*errors, 2.0]) < 1.4 * part_after(errors)


def test_batches_that_were_shorter_than_foreseen_ask_for_no_margin() -> None:
    # What was known before the run is too dear, and is learnt anew.
    learning = np.linspace(-0.6, -0.02, 12)
    dear, cheap = (part_after([*errors.tolist(), *noise(0.03, 12)]) for errors in (learning, -learning))
    assert dear < 0.13
    assert cheap > 2 * dear


def test_what_is_long_ago_counts_less() -> None:
    calm, rough = noise(0.03, 24), noise(0.12, 24)
    assert part_after([*rough, *calm]) < part_after([*calm, *rough])
