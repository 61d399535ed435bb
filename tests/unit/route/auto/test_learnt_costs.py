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
    """How far predictions for new batches are off, relatively, up to the pace of the machine."""
    counts = np.concatenate(batches(10, seed=5), axis=1)
    times = prices_in(memory) @ counts / (true @ counts)
    return np.asarray(np.abs(times / np.median(times) - 1))


def test_without_measurements_prices_are_the_counted_ones() -> None:
    memory = learn({}, batches(1)[0], np.zeros(0))
    assert memory == {}
    assert prices_in(memory).tolist() == COUNTED.tolist()


def test_costs_are_predicted_well_also_with_noise_and_pauses() -> None:
    assert off(taught(TRUE, 0.0), TRUE).max() < 0.02
    assert off(taught(TRUE, 0.2), TRUE).mean() < 0.07
    assert off(taught(TRUE, 0.05, pauses=0.3), TRUE).max() < 0.25


def test_a_machine_that_changes_is_followed() -> None:
    memory = taught(TRUE, 0.0)
    for counts in batches(30, seed=9):
        memory = learn(memory, counts, 3 * TRUE @ counts)
    assert off(memory, TRUE).max() < 0.02
    counts = batches(1, seed=5)[0]
    assert prices_in(memory) @ counts == pytest.approx(3 * TRUE @ counts, rel=0.02)


def test_a_machine_that_is_busy_now_and_then_teaches_the_same_ratios() -> None:
    memory: dict[str, Any] = {}
    for number, counts in enumerate(batches(30)):
        memory = learn(memory, counts, (3 if number % 4 == 0 else 1) * TRUE @ counts)
    assert off(memory, TRUE).max() < 0.02


def test_the_luck_of_one_overloaded_instance_does_not_set_the_prices() -> None:
    """A hot key: one instance has eight times the rows and pairs, and its only measurement is bad luck."""
    memory = taught(TRUE, 0.05)
    hot = batches(1, seed=3)[0]
    hot[[STORE, MATCH, PROBE], 0] *= 8
    seconds = TRUE @ hot
    seconds[0] *= 1.6
    before, after = prices_in(memory), prices_in(learn(memory, hot, seconds))
    assert after[MATCH] / (after[STORE] + after[PROBE]) == pytest.approx(
        before[MATCH] / (before[STORE] + before[PROBE]), rel=0.25
    )


def test_a_fixed_price_is_told_from_one_batch_of_uneven_work() -> None:
    """Or what each batch costs anyway would be taken for the price of the few rows of light instances."""
    counts = np.outer([0, 1e3, 1e4, 1e3, 1e3], [8, 1, 0.5, 0.3, 0.2, 0.1, 0.1, 0.1])
    counts[FIXED] = 1
    true = 1e-7 * np.array([3e5, *COUNTED[1:]])
    learnt, paid = prices_in(learn({}, counts, true @ counts)), [FIXED, STORE, MATCH, PROBE]
    assert learnt[paid] == pytest.approx(true[paid], rel=0.01)


def test_a_batch_without_work_teaches_nothing() -> None:
    memory, idle = taught(TRUE, 0.0), np.zeros((5, 8))
    idle[FIXED] = 1
    assert learn(memory, idle, np.full(8, 1e-3)) == memory


def test_what_the_data_cannot_tell_apart_keeps_the_counted_ratio() -> None:
    memory: dict[str, Any] = {}
    for counts in batches(20):
        counts[STORE] = counts[PROBE]
        memory = learn(memory, counts, TRUE @ counts)
    prices = prices_in(memory)
    assert prices[STORE] == pytest.approx(prices[PROBE], rel=0.01)
    assert prices[STORE] + prices[PROBE] == pytest.approx(TRUE[STORE] + TRUE[PROBE], rel=0.05)


#: What eight instances took; next to nothing as well, which is no measure of the machine's pace.
TIMES = st.lists(st.floats(0, 100) | st.floats(0, 1e-300), min_size=8, max_size=8)


@given(st.lists(TIMES, min_size=3, max_size=3), st.integers(0, 5))
@settings(max_examples=40)
def test_prices_are_never_negative_nor_all_zero(story: list[list[float]], seed: int) -> None:
    memory: dict[str, Any] = {}
    for counts, seconds in zip(batches(3, seed), story, strict=True):
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


def test_work_of_which_nothing_was_foreseen_teaches_prices_as_any_other() -> None:
    counts = batches(1)[0]
    counts[MATCH] = 0
    only_matches = np.eye(5)[MATCH] * 1e-7
    prices = prices_in(learn({"prices": only_matches.tolist()}, counts, TRUE @ counts))
    assert np.isfinite(prices).all()
    assert prices[STORE] > 0
