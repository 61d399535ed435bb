"""Algorithm 1 of Ls-Stream, against all subsets where there are few."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.route.ls_stream.partition_annealing import (
    Ends,
    PartitionAnnealing,
    _impact,
    choose_partitions,
    fill,
)
from tidegate_lab.simulate.balance.sojourn import service_rate, sojourn_time

LONG = PartitionAnnealing(cooling=0.9, steps=60, seed=1)
Partition = tuple[int, int, int]
PARTITIONS = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 20), st.integers(0, 30)), min_size=1, max_size=8
)


def migration_impact(both: Ends, load: float, rate: float, rows_share: float) -> float:
    """Equation 25, for a set with so much load and input rate, and that share of the straggler's rows."""
    return float(_impact(both.packed(), load, rate, rows_share))


def ends(loads: tuple[float, float], rates: tuple[float, float] = (40.0, 10.0)) -> Ends:
    capacity = loads[0] / 0.95
    return Ends(loads, rates, (capacity, capacity))


def columns(partitions: list[Partition]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    loads, rates, rows = np.array(partitions, np.float64).T
    return loads.copy(), rates.copy(), rows.copy()


def test_the_impact_is_equation_25_with_both_gains_as_shares() -> None:
    """By the functions of sojourn.py, in the words of equations 22 to 25."""
    heavy, light, heavy_rate, light_rate, capacity = 90.0, 20.0, 40.0, 10.0, 100.0
    load, rate, share = 30.0, 8.0, 0.2

    def stay(load: float, rate: float) -> float:
        return sojourn_time(rate, service_rate(rate, load, capacity))

    relief = 2 * load / (heavy - light)
    before = stay(heavy, heavy_rate) + stay(light, light_rate)
    after = stay(heavy - load, heavy_rate - rate) + stay(light + load, light_rate + rate)
    found = migration_impact(
        Ends((heavy, light), (heavy_rate, light_rate), (capacity, capacity)), load, rate, share
    )
    assert found == pytest.approx((relief + (before - after) / before) / share)


@given(PARTITIONS, st.floats(0, 60), st.floats(1, 100))
@settings(max_examples=60)
def test_what_is_chosen_relieves_enough_where_the_start_does_and_never_too_much(
    partitions: list[Partition], least: float, most: float
) -> None:
    loads, rates, rows = columns(partitions)
    both = ends((float(loads.sum()) + 1, 0.0), (float(rates.sum()) + 1, 1.0))
    chosen = choose_partitions(loads, rates, rows, both, least, most, PartitionAnnealing(steps=5))
    assert loads[chosen].sum() < most
    fits = loads[(loads > 0) & (loads < most)]
    if least > 0:
        assert chosen.any() == (fits.size > 0)
        # A single partition that is enough by itself is always found.
        if (fits >= least).any():
            assert loads[chosen].sum() >= least * (1 - 1e-9)


@given(PARTITIONS, st.integers(0, 5))
@settings(max_examples=40)
def test_a_long_search_comes_close_to_the_best_of_all_subsets(partitions: list[Partition], seed: int) -> None:
    loads, rates, rows = columns(partitions)
    total = float(loads.sum())
    both = ends((total + 1, 0.0), (float(rates.sum()) + 1, 1.0))
    least, most = 0.2 * total, 0.5 * total
    chosen = choose_partitions(loads, rates, rows, both, least, most, PartitionAnnealing(0.9, 60, seed))

    def value(flags: np.ndarray) -> float:
        share = max(rows[flags].sum(), 1.0) / max(rows.sum(), 1.0)
        return migration_impact(both, float(loads[flags].sum()), float(rates[flags].sum()), float(share))

    subsets = [np.array(flags) for flags in product([False, True], repeat=len(partitions))]
    allowed = [flags for flags in subsets if flags.any() and least <= loads[flags].sum() < most]
    if chosen.any() and loads[chosen].sum() >= least and total > 0:
        best = max(value(flags) for flags in allowed)
        assert value(chosen) <= best * (1 + 1e-9)
        assert value(chosen) >= 0.6 * best


@given(PARTITIONS, st.integers(0, 3))
@settings(max_examples=40)
def test_the_answer_is_never_worse_than_the_greedy_start(partitions: list[Partition], seed: int) -> None:
    loads, rates, rows = columns(partitions)
    total = float(loads.sum())
    both = ends((total + 1, 0.0), (float(rates.sum()) + 1, 1.0))
    least, most = 0.2 * total, 0.5 * total
    start = fill(loads, np.argsort(-loads / np.maximum(rows, 1.0), kind="stable"), least, most)
    if not (start.any() and loads[start].sum() >= least):
        return
    chosen = choose_partitions(loads, rates, rows, both, least, most, PartitionAnnealing(steps=2, seed=seed))
    values = [
        migration_impact(
            both,
            float(loads[flags].sum()),
            float(rates[flags].sum()),
            float(max(rows[flags].sum(), 1.0) / max(rows.sum(), 1.0)),
        )
        for flags in (chosen, start)
    ]
    assert values[0] >= values[1] * (1 - 1e-9)


def test_cheap_partitions_are_moved_rather_than_dear_ones() -> None:
    """Equal loads and rates: the one with the fewest stored rows has the largest impact."""
    loads, rates = np.full(4, 10.0), np.full(4, 5.0)
    rows = np.array([40.0, 4.0, 400.0, 41.0])
    chosen = choose_partitions(loads, rates, rows, ends((41.0, 1.0), (21.0, 1.0)), 5.0, 20.0, LONG)
    assert chosen.tolist() == [False, True, False, False]


def test_one_partition_too_heavy_to_move_leaves_the_others_to_go() -> None:
    loads = np.array([1000.0, 3.0, 2.0])
    chosen = choose_partitions(
        loads, loads / 10, loads, ends((1005.0, 1.0), (100.5, 1.0)), 900.0, 502.0, LONG
    )
    assert chosen.tolist() == [False, True, True]


def test_nothing_that_fits_means_nothing_moves() -> None:
    loads = np.array([10.0, 12.0])
    assert not choose_partitions(loads, loads, loads, ends((22.0, 1.0)), 1.0, 9.0, LONG).any()


def test_a_denser_set_is_found_where_the_greedy_start_is_not_the_best() -> None:
    """Never below the start: by load per row the first is best, but only the last two together are enough."""
    loads = np.array([9.0, 6.0, 6.0, 6.0, 6.0])
    rows = np.array([90.0, 61.0, 61.0, 61.0, 20.0])
    rates = np.ones(5)
    both = ends((34.0, 1.0), (6.0, 1.0))
    chosen = choose_partitions(loads, rates, rows, both, 10.0, 16.0, LONG)
    assert chosen[4]
    assert 10 <= loads[chosen].sum() < 16


def test_the_same_seed_gives_the_same_set_and_draws_differ() -> None:
    random = np.random.default_rng(3)
    loads, rates, rows = random.random((3, 200))
    both = ends((float(loads.sum()), 1.0), (float(rates.sum()), 1.0))

    def chosen(draw: int) -> list[bool]:
        flags: list[bool] = choose_partitions(
            loads, rates, rows, both, 10.0, 40.0, PartitionAnnealing(steps=3), draw
        ).tolist()
        return flags

    assert chosen(4) == chosen(4)
    assert any(chosen(4) != chosen(draw) for draw in range(5, 10))
