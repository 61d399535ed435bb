from __future__ import annotations

import json

import pytest

from tidegate_lab.simulate.join.yield_curve import YieldCurve


def learnt(*seen: tuple[float, float]) -> YieldCurve:
    """From pairs of r and matches per comparison."""
    curve = YieldCurve()
    for fraction, found in seen:
        curve.observe(fraction, 1_000_000, found * 1_000_000)
    return curve


def test_nothing_is_expected_before_anything_was_found() -> None:
    assert YieldCurve().at(0.5) == 0.0
    assert learnt((1.0, 0.0)).at(0.5) == 0.0


def test_where_all_parts_are_alike_r_does_not_matter() -> None:
    curve = learnt((1.0, 0.001), (0.5, 0.001), (0.25, 0.001))
    assert curve.at(1.0) == pytest.approx(0.001)


def test_where_the_best_parts_go_first_more_of_the_window_finds_less_per_comparison() -> None:
    curve = learnt(*[(r, 0.001 * r**-0.5) for r in (1.0, 0.25, 1.0, 0.25, 1.0, 0.25)])
    assert curve.bend == pytest.approx(0.5, abs=0.03)
    assert curve.at(1.0) == pytest.approx(0.001, rel=0.1)
    assert curve.at(0.25) == pytest.approx(0.002, rel=0.1)


def test_chance_does_not_bend_the_curve_without_limit() -> None:
    assert 0.2 <= learnt((1.0, 0.001), (0.9, 0.1)).bend <= 1.5


def test_a_curve_comes_back_as_it_was() -> None:
    curve = learnt((1.0, 0.001), (0.5, 0.002))
    again = YieldCurve.restore(json.loads(json.dumps(curve.snapshot())))
    assert again.at(0.3) == curve.at(0.3)
