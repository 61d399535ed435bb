from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tidegate.window.estimate.estimates import AVERAGE, COUNT, SUM
from tidegate.window.estimate.horvitz_thompson import _student, _studentised, bounds, estimate


def columns_of(rows: list[tuple[float, float]]) -> dict[str, list[Any]]:
    """Partials of one window, row by row, from (value, π) of the rows that were kept."""
    x, w = (np.array(column) for column in (list(zip(*rows, strict=True)) or [(), ()]))
    w = 1 / w
    u = w * (w - 1)
    mean = (u * x).sum() / u.sum() if u.sum() else 0.0
    off = x - mean
    weights = [(w - 1).sum(), u.sum(), (u * u).sum()]
    values = [((w - 1) * x).sum(), u.sum(), mean, (u * off**2).sum(), (u * off**3).sum()]
    given = {
        COUNT: [x.size, *weights],
        SUM: [x.sum(), *weights, *values],
        AVERAGE: [x.sum(), x.size, *weights, *values],
    }
    return {name: [np.array([float(one)]) for one in columns] for name, columns in given.items()}


def rows(count: int, share: float, seed: int = 1) -> list[tuple[float, float]]:
    rng = np.random.default_rng(seed)
    return [(float(x), share) for x in rng.exponential(10, count)]


def of(name: str, given: list[tuple[float, float]]) -> tuple[float, float, float]:
    columns = columns_of(given)[name]
    low, high = bounds(name, columns)
    return float(estimate(name, columns)[0]), float(low[0]), float(high[0])


@pytest.mark.parametrize("name", [COUNT, SUM, AVERAGE])
def test_estimates_are_sums_of_what_each_row_stands_for(name: str) -> None:
    given = rows(60, 0.25) + rows(30, 0.5, seed=2) + rows(10, 1.0, seed=3)
    x, w = np.array([one for one, _ in given]), np.array([1 / share for _, share in given])
    wanted = {COUNT: w.sum(), SUM: (w * x).sum(), AVERAGE: (w * x).sum() / w.sum()}
    value, low, high = of(name, given)
    assert value == pytest.approx(wanted[name])
    assert low < value < high


@pytest.mark.parametrize("name", [COUNT, SUM, AVERAGE])
def test_with_many_rows_the_interval_is_the_textbook_one(name: str) -> None:
    given = rows(200_000, 0.1)
    x, w = np.array([one for one, _ in given]), 10.0
    e = {COUNT: np.ones(x.size), SUM: x, AVERAGE: (x - x.mean()) / (w * x.size)}[name]
    deviation = math.sqrt((w * (w - 1) * e * e).sum())
    value, low, high = of(name, given)
    assert (value - low) / deviation == pytest.approx(1.96, rel=0.02)
    assert (high - value) / deviation == pytest.approx(1.96, rel=0.02)


def test_skewed_values_have_more_above_than_below() -> None:
    value, low, high = of(SUM, rows(80, 0.1))
    assert high - value > 1.2 * (value - low)
    value, low, high = of(SUM, [(-x, share) for x, share in rows(80, 0.1)])
    assert value - low > 1.2 * (high - value)


@pytest.mark.parametrize(("name", "least"), [(COUNT, 10), (SUM, 50), (AVERAGE, 50)])
def test_few_sampled_rows_give_no_interval(name: str, least: int) -> None:
    assert math.isnan(of(name, rows(least - 1, 0.2))[1])
    assert not math.isnan(of(name, rows(least, 0.2))[1])
    # Rows that stand for themselves only are no sample; and few that stand for many are few.
    assert math.isnan(of(name, rows(least - 1, 0.2) + rows(1000, 1.0))[1])
    assert math.isnan(of(name, rows(least // 2, 0.01) + rows(1000, 0.9))[1])


@pytest.mark.parametrize("name", [SUM, AVERAGE])
def test_values_that_do_not_differ_give_no_interval(name: str) -> None:
    assert math.isnan(of(name, [(0.0, 0.2)] * 100)[1])


def test_a_count_is_at_least_what_was_seen() -> None:
    for kept in range(10, 40):
        value, low, high = of(COUNT, [(1.0, 0.9)] * kept)
        assert kept <= low <= value <= high


@pytest.mark.parametrize("name", [COUNT, SUM, AVERAGE])
def test_nothing_sampled_and_nothing_there_are_no_errors(name: str) -> None:
    assert of(name, rows(5, 1.0))[0] == pytest.approx(
        {COUNT: 5, SUM: sum(x for x, _ in rows(5, 1.0)), AVERAGE: np.mean([x for x, _ in rows(5, 1.0)])}[name]
    )
    value, low, high = of(name, [])
    assert value == 0
    assert math.isnan(low)
    assert math.isnan(high)


def test_values_far_from_zero_keep_their_digits() -> None:
    near, far = rows(100, 0.2), [(x + 1e9, share) for x, share in rows(100, 0.2)]
    _, low, high = of(AVERAGE, near)
    value, low_far, high_far = of(AVERAGE, far)
    assert high_far - low_far == pytest.approx(high - low, rel=1e-4)
    assert low_far < value < high_far


def test_students_t_is_near_enough() -> None:
    freedom = np.array([49.0, 60.0, 100.0, 1000.0])
    assert _student(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), abs=1e-4)


def test_halls_transformation_is_undone() -> None:
    skewness, excess = np.linspace(-1.5, 1.5, 31), 4.0
    for z in (-1.96, 0.0, 1.96):
        t = _studentised(np.full(31, z), skewness, np.full(31, excess))
        a, c = (1 + 2 * excess) * skewness / 6, (excess - 1) * skewness / 6
        back = np.where(a == 0, t, ((1 + a * t) ** 3 - 1) / np.where(a == 0, 1, 3 * a)) + c
        assert back == pytest.approx(np.full(31, z))
