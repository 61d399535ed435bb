"""How much time is left free, from what predictions were off by."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tidegate.control.goal.safety_margin import SafetyMargin, SafetyMarginSettings


def told(errors: list[float], settings: SafetyMarginSettings | None = None) -> SafetyMargin:
    headroom = SafetyMargin(settings)
    for error in errors:
        headroom.observe(1.0, 1.0 + error, 1.0)
    return headroom


def noise(sigma: float, batches: int = 48, seed: int = 3) -> list[float]:
    errors: list[float] = (sigma * np.random.default_rng(seed).standard_normal(batches)).tolist()
    return errors


def test_the_first_headroom_holds_until_there_are_errors_and_gives_way_slowly() -> None:
    settings = SafetyMarginSettings(first=0.2)
    parts = [told([0.0] * batches, settings).part for batches in range(40)]
    assert parts[:3] == [0.2] * 3
    assert all(later <= earlier for earlier, later in pairwise(parts))
    assert parts[5] > 0.1 > parts[-1]


@pytest.mark.parametrize("sigma", [0.03, 0.06, 0.1])
def test_about_one_batch_in_ninety_takes_longer_than_the_headroom_allows(sigma: float) -> None:
    settings = SafetyMarginSettings(least=0.0, most=0.9)
    parts = [told(noise(sigma, seed=seed), settings).part for seed in range(40)]
    # Of the target t, a batch takes t (1 + error): too long from 1 / t on.
    assert np.median(parts) == pytest.approx(2.3 * sigma / (1 + 2.3 * sigma), rel=0.2)


def test_a_single_batch_that_goes_wrong_changes_little() -> None:
    errors = noise(0.04)
    assert told([*errors, 2.0]).part < 1.25 * told(errors).part


def test_batches_that_were_shorter_than_foreseen_ask_for_no_headroom() -> None:
    # What was known before the run is too dear, and is learnt anew.
    learning = np.linspace(-0.6, -0.02, 12)
    dear, cheap = (told([*errors.tolist(), *noise(0.03, 12)]).part for errors in (learning, -learning))
    assert dear < 0.1
    assert cheap > 2 * dear


def test_what_is_long_ago_counts_less() -> None:
    calm, rough = noise(0.03, 24), noise(0.12, 24)
    assert told([*rough, *calm]).part < told([*calm, *rough]).part


def test_restored_it_is_the_same() -> None:
    headroom = told(noise(0.05, 60))
    assert SafetyMargin.restore(headroom.snapshot()).part == headroom.part
