from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import FlowError
from tidegate.route.fastjoin.greedy_fit import Candidates, greedy_fit
from tidegate.route.fastjoin.sa_fit import BENEFIT, FACTOR, KeyAnnealing, sa_fit

BY_BENEFIT = KeyAnnealing(value=BENEFIT)


def random_keys(count: int, seed: int, fill: float = 0.5) -> Candidates:
    random = np.random.default_rng(seed)
    benefits = random.zipf(1.5, count).clip(max=1000).astype(np.float64)
    return Candidates(benefits, random.integers(0, 20, count).astype(np.float64), benefits.sum() * fill)


@given(st.integers(0, 1000), st.integers(1, 30), st.floats(0.05, 1.5), st.sampled_from([FACTOR, BENEFIT]))
@settings(max_examples=50)
def test_the_benefits_chosen_fit_into_the_gap(seed: int, count: int, fill: float, value: str) -> None:
    keys = random_keys(count, seed, fill)
    chosen = sa_fit(keys, KeyAnnealing(value=value), np.random.default_rng(seed))
    assert (np.diff(chosen) > 0).all()
    assert keys.benefits[chosen].sum() <= keys.gap * (1 + 1e-12)


@pytest.mark.parametrize("value", [FACTOR, BENEFIT])
def test_the_same_generator_gives_the_same_choice(value: str) -> None:
    keys, settings_ = random_keys(50, 3), KeyAnnealing(value=value)
    one, other = (sa_fit(keys, settings_, np.random.default_rng(5)).tolist() for _ in range(2))
    assert one == other


def test_on_the_sum_of_benefits_it_fills_the_gap_as_well_as_greedy_fit() -> None:
    keys = random_keys(200, 8)
    annealed = keys.benefits[sa_fit(keys, BY_BENEFIT, np.random.default_rng(0))].sum()
    assert annealed >= 0.999 * keys.gap
    assert annealed >= 0.98 * keys.benefits[greedy_fit(keys)].sum()


def test_on_the_papers_value_it_finds_the_best_key_and_leaves_the_gap_open() -> None:
    keys = Candidates(np.array([50.0, 10.0, 10.0, 10.0]), np.array([1.0, 5.0, 5.0, 5.0]), 75.0)
    assert sa_fit(keys, KeyAnnealing(), np.random.default_rng(0)).tolist() == [0]


def test_keys_without_rows_have_a_finite_value() -> None:
    keys = Candidates(np.array([5.0, 7.0]), np.array([0.0, 0.0]), 100.0)
    assert sa_fit(keys, KeyAnnealing(), np.random.default_rng(0)).tolist() == [0, 1]


@pytest.mark.parametrize("gap", [0.0, -1.0])
def test_without_a_gap_or_without_benefits_nothing_is_chosen(gap: float) -> None:
    assert (
        sa_fit(Candidates(np.array([1.0]), np.array([1.0]), gap), BY_BENEFIT, np.random.default_rng(0)).size
        == 0
    )
    assert sa_fit(Candidates(np.zeros(3), np.ones(3), 9.0), BY_BENEFIT, np.random.default_rng(0)).size == 0


@pytest.mark.parametrize("wrong", [{"end": 2.0}, {"cooling": 1.0}, {"flips": 0}, {"value": "speed"}])
def test_an_annealing_that_would_never_end_or_never_search_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(FlowError, match=r"BALANCE_SETTING_INVALID.*0 < cooling < 1"):
        KeyAnnealing(**wrong)  # type: ignore[arg-type]
