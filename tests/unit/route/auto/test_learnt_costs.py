"""Prices from measured seconds: exact without noise, near with it, never negative."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tidegate.route.auto.learnt_costs import learn, prices_in
from tidegate.route.auto.work_costs import COUNTED, FIXED, MATCH, PROBE, STORE

TRUE = 1e-7 * np.array([1000.0, 9.0, 0.5, 0.02, 3.0])


def batches(count: int, seed: int = 0) -> list[NDArray[np.float64]]:
    random = np.random.default_rng(seed)
    made = random.uniform(1, 2, (count, 5, 8)) * np.array([1, 1e4, 1e5, 1e5, 1e4])[None, :, None]
    made[:, FIXED] = 1
    return list(made)


def taught(true: NDArray[np.float64], noise: float, count: int = 30, pauses: float = 0.0) -> dict[str, Any]:
    random = np.random.default_rng(1)
    memory: dict[str, Any] = {}
    for counts in batches(count):
        seconds = true @ counts * np.exp(noise * random.standard_normal(8))
        seconds[0] *= 1 + 20 * (random.random() < pauses)
        memory = json.loads(json.dumps(learn(memory, counts, seconds)))
    return memory


def off(memory: dict[str, Any], true: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far predictions for new batches are off, relatively."""
    counts = np.concatenate(batches(10, seed=5), axis=1)
    return np.abs(prices_in(memory) @ counts / (true @ counts) - 1)


def test_without_measurements_prices_are_the_counted_ones() -> None:
    memory = learn({}, batches(1)[0], np.zeros(0))
    assert memory == {}
    assert prices_in(memory).tolist() == COUNTED.tolist()


def test_costs_are_predicted_well_also_with_noise_and_pauses() -> None:
    assert off(taught(TRUE, 0.0), TRUE).max() < 0.02
    assert off(taught(TRUE, 0.2), TRUE).mean() < 0.06
    assert off(taught(TRUE, 0.05, pauses=0.3), TRUE).max() < 0.25


def test_a_machine_that_changes_is_followed() -> None:
    memory = taught(TRUE, 0.0)
    for counts in batches(30, seed=9):
        memory = learn(memory, counts, 3 * TRUE @ counts)
    assert off(memory, 3 * TRUE).max() < 0.05


def test_what_the_data_cannot_tell_apart_keeps_the_counted_ratio() -> None:
    memory: dict[str, Any] = {}
    for counts in batches(20):
        counts[STORE] = counts[PROBE]
        memory = learn(memory, counts, TRUE @ counts)
    prices = prices_in(memory)
    assert prices[STORE] == pytest.approx(prices[PROBE], rel=0.01)
    assert prices[STORE] + prices[PROBE] == pytest.approx(TRUE[STORE] + TRUE[PROBE], rel=0.05)


@given(st.lists(st.floats(0, 100), min_size=8, max_size=8), st.integers(0, 5))
@settings(max_examples=40)
def test_prices_are_never_negative_nor_all_zero(seconds: list[float], seed: int) -> None:
    memory: dict[str, Any] = {}
    for counts in batches(3, seed):
        memory = learn(memory, counts, np.array(seconds))
    prices = prices_in(memory)
    assert np.isfinite(prices).all()
    assert (prices >= 0).all()
    assert prices.sum() > 0


def test_work_that_never_occurs_keeps_its_counted_price() -> None:
    counts = batches(1)[0]
    counts[MATCH] = 0
    prices = prices_in(learn({}, counts, TRUE @ counts))
    assert prices[MATCH] > 0
