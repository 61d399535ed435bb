"""M/M/1 as Ls-Stream uses it: closed forms, their sums, and a queue that is really simulated."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tidegate_lab.simulate.balance.sojourn import presence, queue_length, service_rate, sojourn_time

BUSY = [(0.5, 1.0), (0.9, 1.0), (3.0, 4.0)]


@pytest.mark.parametrize(("rate", "service"), BUSY)
def test_probabilities_add_up_to_one_and_their_mean_is_the_queue_length(rate: float, service: float) -> None:
    probabilities = [presence(rate, service, rows) for rows in range(2_000)]
    assert sum(probabilities) == pytest.approx(1)
    mean = sum(rows * each for rows, each in enumerate(probabilities))
    assert mean == pytest.approx(queue_length(rate, service))


@pytest.mark.parametrize(("rate", "service"), BUSY)
def test_littles_law_ties_queue_length_and_sojourn_time(rate: float, service: float) -> None:
    assert sojourn_time(rate, service) == pytest.approx(queue_length(rate, service) / rate)


def test_equation_21_is_equation_20_with_the_memory_of_a_window() -> None:
    window, rate, service = 30.0, 7.0, 9.0
    memory = rate * window
    assert sojourn_time(rate, service) == pytest.approx(window / (window * service - memory))


def test_a_queue_simulated_row_by_row_agrees() -> None:
    rate, service, rows = 0.7, 1.0, 200_000
    random = np.random.default_rng(5)
    gaps, services = random.exponential(1 / rate, rows), random.exponential(1 / service, rows)
    waits = np.zeros(rows)
    wait = 0.0
    for row in range(1, rows):
        wait = max(0.0, wait + services[row - 1] - gaps[row])
        waits[row] = wait
    assert (waits + services).mean() == pytest.approx(sojourn_time(rate, service), rel=0.05)


@pytest.mark.parametrize("rate", [1.0, 2.0])
def test_with_more_coming_than_can_be_served_there_is_no_average(rate: float) -> None:
    assert sojourn_time(rate, 1.0) == math.inf
    assert queue_length(rate, 1.0) == math.inf
    assert presence(rate, 1.0, 3) == 0


def test_the_service_rate_falls_as_the_load_grows_and_theorem_1_follows() -> None:
    """Theorem 1: more load, longer sojourn times."""
    times = [sojourn_time(5.0, service_rate(5.0, load, 100.0)) for load in (10.0, 40.0, 70.0, 99.0)]
    assert times == sorted(times)
    assert service_rate(5.0, 50.0, 100.0) == pytest.approx(10.0)
    assert sojourn_time(5.0, service_rate(5.0, 100.0, 100.0)) == math.inf
    assert sojourn_time(5.0, service_rate(5.0, 0.0, 100.0)) == 0
