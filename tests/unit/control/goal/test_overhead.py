"""Overhead: fixed and per row, told apart as soon as batches differ, and not confused by noise."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tidegate.control.goal.overhead import Overhead


def learnt(rows: list[float], fixed: float, per_row: float, noise: float = 0.0, seed: int = 1) -> Overhead:
    overhead, random = Overhead(), np.random.default_rng(seed)
    for count in rows:
        overhead.observe(count, (fixed + per_row * count) * (1 + noise * random.standard_normal()))
    return overhead


def test_nothing_is_known_before_the_first_batch() -> None:
    nothing = Overhead()
    assert (nothing.fixed, nothing.per_row) == (0.0, 0.0)


def test_all_of_it_is_first_put_down_to_rows_and_the_next_size_tells_what_is_true() -> None:
    overhead = learnt([100_000, 103_000], 0.4, 1e-6)
    assert overhead.per_row == pytest.approx(5e-6, rel=0.05)
    assert overhead.fixed == pytest.approx(0.0, abs=0.02)
    overhead.observe(150_000, 0.4 + 150_000 * 4e-6)
    assert overhead.per_row == pytest.approx(1e-5, rel=0.1)


def test_a_batch_without_rows_tells_what_is_not_theirs_until_sizes_differ() -> None:
    overhead = Overhead()
    for seconds in (0.5, 0.4, 0.9):
        overhead.observe_empty(seconds)
    overhead.observe(20_000, 1.0)
    assert overhead.per_row == pytest.approx(0.5 / 20_000)
    assert overhead.fixed == pytest.approx(0.5)
    overhead.observe(40_000, 1.8)
    assert overhead.per_row == pytest.approx(0.8 / 20_000)
    assert overhead.fixed == pytest.approx(0.2, abs=0.01)
    # Rows that take next to nothing are not told from none, as ever.
    calm = Overhead()
    calm.observe_empty(0.5)
    calm.observe(20_000, 0.6)
    assert (calm.per_row, calm.fixed) == (0.0, 0.6)


def test_fewer_rows_show_that_it_was_not_them() -> None:
    slow = learnt([1_000, 500, 1_000, 300, 900, 400, 700, 1_000], 2.0, 0.0)
    assert slow.per_row == 0
    assert slow.fixed == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize("seed", range(5))
def test_rows_and_fixed_costs_are_told_apart_by_batches_of_several_sizes(seed: int) -> None:
    rows = np.random.default_rng(seed).uniform(50_000, 200_000, 20).tolist()
    found = learnt(rows, 0.5, 8e-6, 0.05, seed)
    assert found.per_row == pytest.approx(8e-6, rel=0.25)
    assert found.fixed + found.per_row * 400_000 == pytest.approx(0.5 + 8e-6 * 400_000, rel=0.2)


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_not_taken_for_a_price_of_rows(seed: int) -> None:
    rows = (10_000 * (1 + 0.03 * np.random.default_rng(seed).standard_normal(40))).tolist()
    overhead = learnt([5_000, 20_000, 10_000, *rows], 0.2, 0.0, 0.05, seed)
    assert overhead.per_row == 0
    assert overhead.fixed == pytest.approx(0.2, rel=0.1)


def test_a_restored_one_goes_on_with_the_same_answers() -> None:
    rows = [10_000.0, 50_000.0, 20_000.0, 80_000.0]
    one = learnt(rows, 0.5, 1e-5)
    one.observe_empty(0.3)
    other = Overhead.restore(json.loads(json.dumps(one.snapshot())))
    for overhead in (one, other):
        overhead.observe(30_000, 0.9)
    assert (one.fixed, one.per_row) == (other.fixed, other.per_row)
