"""GreedyFit against all subsets, and the law that it rests on: benefits add up."""

from __future__ import annotations

from itertools import product
from statistics import median
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.unit.route.loads import one_sided, zipf_counts

from tidegate.route.fastjoin.greedy_fit import Candidates, candidates, greedy_fit
from tidegate.route.fastjoin.imbalance import InstanceWork
from tidegate.route.load import LoadWork

COUNTS = st.lists(st.tuples(*[st.integers(0, 50)] * 4), min_size=1, max_size=12)


def work_of(counts: NDArray[np.int64]) -> LoadWork:
    """Rows (stored left, stored right, probes of left, probes of right) of each key."""
    return LoadWork(counts[:, :2].T.copy(), counts[:, 2:].T.copy(), np.zeros(len(counts), np.int64))


def two_instances(giver: LoadWork, taker: LoadWork) -> InstanceWork:
    stored = np.stack([giver.stored.sum(axis=1), taker.stored.sum(axis=1)], axis=1).astype(np.float64)
    probes = np.stack([giver.probes.sum(axis=1), taker.probes.sum(axis=1)], axis=1).astype(np.float64)
    return InstanceWork(stored, probes)


def after(giver: LoadWork, taker: LoadWork, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
    """Loads of both instances, counted anew with the keys moved."""
    stays = np.setdiff1d(np.arange(len(giver)), chosen)
    moved = giver.at(chosen)
    left = giver.at(stays)
    right = LoadWork(
        np.concatenate([taker.stored, moved.stored], axis=1),
        np.concatenate([taker.probes, moved.probes], axis=1),
        np.concatenate([taker.matches, moved.matches]),
    )
    return two_instances(left, right).loads


def best_filling(keys: Candidates) -> float:
    """The most of the gap that any set of keys fills without reaching it."""
    sums = [
        float(sum(f for f, taken in zip(keys.benefits.tolist(), which, strict=True) if taken))
        for which in product((False, True), repeat=keys.benefits.size)
    ]
    return max(total for total in sums if total < keys.gap)


@given(COUNTS, COUNTS, st.integers(0, 2**12 - 1))
def test_the_benefit_of_a_set_is_the_sum_of_its_keys_benefits(
    mine: list[tuple[int, ...]], theirs: list[tuple[int, ...]], which: int
) -> None:
    giver, taker = work_of(np.array(mine)), work_of(np.array(theirs))
    keys = candidates(two_instances(giver, taker), 0, 1, giver)
    chosen = np.array([k for k in range(len(giver)) if which >> k & 1], np.int64)
    heavy, light = after(giver, taker, chosen)
    assert keys.gap - keys.benefits[chosen].sum() == heavy - light


@given(COUNTS, COUNTS)
@settings(max_examples=60)
def test_never_more_than_the_gap_and_nothing_that_still_fits_is_left(
    mine: list[tuple[int, ...]], theirs: list[tuple[int, ...]]
) -> None:
    giver, taker = work_of(np.array(mine)), work_of(np.array(theirs))
    keys = candidates(two_instances(giver, taker), 0, 1, giver)
    chosen = greedy_fit(keys)
    if chosen.size == 0:
        assert not ((keys.benefits > 0) & (keys.benefits < keys.gap)).any()
        return
    filled = keys.benefits[chosen].sum()
    assert 0 < filled < keys.gap
    heavy, light = after(giver, taker, chosen)
    assert heavy > light
    left = np.delete(keys.benefits, chosen)
    assert not ((left > 0) & (left < keys.gap - filled)).any()


def test_on_twelve_keys_most_of_what_is_possible_is_found() -> None:
    """Brute force over all sets: never better than it, and how close (see scripts/key_choice_speed.py)."""
    shares = []
    for seed in range(40):
        counts = np.random.default_rng(seed).zipf(1.6, (12, 4)).clip(max=200)
        giver, taker = work_of(counts[:, :]), work_of(counts[:4] // 4)
        keys = candidates(two_instances(giver, taker), 0, 1, giver)
        best = best_filling(keys)
        if best > 0:
            shares.append(keys.benefits[greedy_fit(keys)].sum() / best)
    assert len(shares) >= 35
    assert max(shares) <= 1 + 1e-12
    assert median(shares) >= 0.9


def test_keys_go_by_benefit_per_row() -> None:
    keys = Candidates(np.array([30.0, 20.0, 40.0, 5.0]), np.array([3.0, 1.0, 1.0, 5.0]), 66.0)
    # 40 a row (2), then 20 (1); 10 a row (0) does not fit any more, the last one does.
    assert greedy_fit(keys).tolist() == [1, 2, 3]


def test_keys_without_a_stored_row_fill_what_the_others_leave_the_largest_first() -> None:
    keys = Candidates(np.array([30.0, 3.0, 40.0, 4.0]), np.array([3.0, 0.0, 0.0, 0.0]), 36.0)
    # 10 a row (0); of those without a row 40 does not fit, 4 does (3), and 3 would fill the gap to the last.
    assert greedy_fit(keys).tolist() == [0, 3]
    assert greedy_fit(Candidates(keys.benefits, keys.rows, 100.0)).tolist() == [0, 1, 2, 3]


def test_small_benefits_are_left_alone_and_useless_keys_always() -> None:
    keys = Candidates(np.array([30.0, 4.0, 0.0]), np.array([3.0, 1.0, 0.0]), 100.0)
    assert greedy_fit(keys).tolist() == [0, 1]
    assert greedy_fit(keys, least_benefit=5.0).tolist() == [0]


@pytest.mark.parametrize("gap", [0.0, -5.0])
def test_without_a_gap_nothing_moves(gap: float) -> None:
    assert greedy_fit(Candidates(np.array([1.0]), np.array([1.0]), gap)).tolist() == []


def test_one_key_that_is_all_the_load_stays() -> None:
    giver, taker = work_of(np.array([[10, 0, 10, 0]])), work_of(np.array([[0, 0, 0, 0]]))
    assert greedy_fit(candidates(two_instances(giver, taker), 0, 1, giver)).tolist() == []


def test_a_hundred_thousand_keys_take_little_time() -> None:
    """The bar is 50 ms for a whole plan; ten times that here, for busy machines."""
    stored, probes = (one_sided(zipf_counts(100_000, 1.0, 10_000_000, s).tolist()) for s in (1, 2))
    giver = LoadWork(stored, probes, np.zeros(100_000, np.int64))
    keys = candidates(two_instances(giver, giver.at(np.arange(30_000))), 0, 1, giver)
    greedy_fit(keys)  # compiles
    began = perf_counter()
    chosen = greedy_fit(keys)
    assert perf_counter() - began < 0.5
    assert keys.benefits[chosen].sum() > 0.999 * keys.gap
