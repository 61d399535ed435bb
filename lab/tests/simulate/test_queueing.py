"""Queues of the latency simulation, against the formulas of queueing theory and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import FlowError
from tidegate_lab.simulate.balance.queueing import Pause, latency_per_step, random_arrivals, sojourn_times
from tidegate_lab.simulate.balance.sojourn import sojourn_time

SECONDS = 200_000.0


def served(arrivals: list[float], services: list[float], pauses: tuple[Pause, ...] = ()) -> list[float]:
    """One instance, by hand."""
    found = sojourn_times(np.array(arrivals), np.array(services), np.zeros(len(arrivals), np.int64), pauses)
    return [float(one) for one in found]


@pytest.mark.parametrize("rate", [0.3, 0.8])
def test_random_arrivals_and_services_are_mm1(rate: float) -> None:
    random = np.random.default_rng(11)
    times, sources = random_arrivals(np.array([rate, rate]), SECONDS, random)
    found = sojourn_times(times, random.exponential(1.0, times.size), sources)
    assert found.mean() == pytest.approx(sojourn_time(rate, 1.0), rel=0.05)
    # The sojourn time of M/M/1 is exponential with rate μ − λ.
    assert np.quantile(found, 0.95) == pytest.approx(math.log(20) / (1 - rate), rel=0.05)


@pytest.mark.parametrize("busy", [0.3, 0.8])
def test_random_arrivals_with_equal_services_are_md1(busy: float) -> None:
    random = np.random.default_rng(12)
    times, sources = random_arrivals(np.array([busy]), SECONDS, random)
    found = sojourn_times(times, np.ones(times.size), sources)
    assert found.mean() == pytest.approx(1 + busy / (2 * (1 - busy)), rel=0.05)


def test_a_row_waits_for_those_before_it() -> None:
    assert served([0, 1, 1, 10], [2, 2, 2, 2]) == [2, 3, 5, 2]


def test_instances_do_not_wait_for_each_other() -> None:
    found = sojourn_times(np.array([0.0, 0.0, 0.0]), np.array([5.0, 1.0, 1.0]), np.array([0, 1, 0]))
    assert found.tolist() == [5, 1, 6]


def test_during_a_pause_the_row_at_hand_is_finished_and_no_new_one_is_taken() -> None:
    assert served([0, 1, 2], [2, 1, 1], (Pause(0, 1.0, 5.0),)) == [2, 5, 5]


def test_pauses_that_overlap_or_follow_each_other_hold_until_the_last_ends() -> None:
    pauses = (Pause(0, 6.0, 7.0), Pause(0, 1.0, 4.0), Pause(0, 2.0, 3.0), Pause(0, 4.0, 5.0))
    assert served([1, 6.5], [0.5, 0.5], pauses) == [4.5, 1]


def test_a_pause_of_another_instance_changes_nothing() -> None:
    assert served([0, 1], [2, 2], (Pause(3, 0.0, 100.0),)) == [2, 3]


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5), st.integers(0, 2)), max_size=30),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(0, 20)), max_size=4),
)
@settings(max_examples=60)
def test_nobody_is_served_early_twice_or_in_a_pause(
    rows: list[tuple[int, int, int]], drawn: list[tuple[int, int, int]]
) -> None:
    rows.sort()
    arrivals, services, instances = np.array(rows, np.float64).reshape(-1, 3).T
    pauses = tuple(Pause(instance, begin, begin + length) for instance, begin, length in drawn)
    found = sojourn_times(arrivals, services, instances.astype(np.int64), pauses)
    for instance in range(3):
        mine = instances == instance
        ends = (arrivals + found)[mine]
        starts = ends - services[mine]
        assert (starts >= arrivals[mine]).all()
        assert (starts[1:] >= ends[:-1]).all()
        for pause in pauses:
            if pause.instance == instance:
                assert not ((pause.begin <= starts) & (starts < pause.end)).any()


def test_steps_tell_mean_p95_and_largest_of_the_rows_that_come_in_them() -> None:
    arrivals = np.concatenate([np.linspace(0, 0.99, 100), [2.5]])
    sojourns = np.concatenate([np.arange(100, 0, -1), [7.0]])
    found = latency_per_step(arrivals, sojourns, 1.0, 3.0)
    assert found.begins.tolist() == [0, 1, 2]
    assert found.rows.tolist() == [100, 0, 1]
    assert (found.mean[0], found.p95[0], found.max[0]) == (50.5, 95, 100)
    assert np.isnan([found.mean[1], found.p95[1], found.max[1]]).all()
    assert (found.mean[2], found.p95[2], found.max[2]) == (7, 7, 7)


def test_arrivals_have_the_rate_asked_for_and_come_again_with_the_seed() -> None:
    rates = np.array([5.0, 0.0, 20.0])
    times, sources = random_arrivals(rates, 1000.0, np.random.default_rng(3))
    assert (np.diff(times) >= 0).all()
    assert np.bincount(sources, minlength=3) / 1000 == pytest.approx(rates, rel=0.05)
    again, _ = random_arrivals(rates, 1000.0, np.random.default_rng(3))
    assert again.tolist() == times.tolist()


def test_no_rows_are_no_trouble() -> None:
    assert served([], []) == []
    assert latency_per_step(np.zeros(0), np.zeros(0), 1.0, 2.0).rows.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("arrivals", "services", "says"),
    [
        ([1.0, 0.0], [1.0, 1.0], "order of time"),
        ([0.0], [-1.0], "0 or more"),
        ([0.0], [1.0, 2.0], "Each row needs"),
    ],
)
def test_rows_that_cannot_be_are_refused(arrivals: list[float], services: list[float], says: str) -> None:
    with pytest.raises(FlowError, match=says):
        served(arrivals, services)
