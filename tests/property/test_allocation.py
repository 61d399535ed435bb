"""Where to shed, against a linear program (HiGHS): as little loss as there can be, and no bound broken."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from tidegate.control.convex_hull import hull
from tidegate.control.goal.optimiser import Allocation, Curve, allocate


def curve(point: str, outputs: list[str], seed: int) -> Curve:
    """A convex curve of a few pieces."""
    random = np.random.default_rng(seed)
    seconds = random.uniform(0.1, 1, int(random.integers(1, 5)))
    slopes = np.sort(random.uniform(0, 1, seconds.size))
    lost = np.concatenate(([0.0], np.cumsum(seconds * slopes)))
    scale = {output: random.uniform(0.2, 1) / max(lost[-1], 1e-9) for output in outputs}
    return Curve(point, np.concatenate(([0.0], np.cumsum(seconds))), {o: lost * scale[o] for o in outputs})


def best(
    curves: list[Curve], weights: dict[str, float], bounds: dict[str, float], seconds: float
) -> float | None:
    """The least weighted loss; None where so much cannot be saved."""
    cost, width, of = [], [], []
    for one in curves:
        for k in range(one.saved.size - 1):
            width.append(one.saved[k + 1] - one.saved[k])
            of.append({o: (lost[k + 1] - lost[k]) / width[-1] for o, lost in one.lost.items()})
            cost.append(sum(weights.get(o, 1.0) * share for o, share in of[-1].items()))
    rows = [[-1.0] * len(cost)] + [[piece.get(o, 0.0) for piece in of] for o in bounds]
    found = linprog(cost, rows, [-seconds, *bounds.values()], bounds=[(0, w) for w in width])
    return float(found.fun) if found.status == 0 else None


def loss(allocation: Allocation, weights: dict[str, float]) -> float:
    return sum(weights.get(output, 1.0) * share for output, share in allocation.lost.items())


@given(
    feeds=st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=5),
    asked=st.floats(0, 1),
    bound=st.floats(0.01, 1),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=60)
def test_the_least_loss_where_every_point_feeds_one_output(
    feeds: list[str], asked: float, bound: float, seed: int
) -> None:
    curves = [curve(f"p{i}", [output], seed + i) for i, output in enumerate(feeds)]
    weights, bounds = {"a": 1.0, "b": 2.0, "c": 5.0}, {"a": bound, "b": 2 * bound}
    seconds = asked * sum(one.saved[-1] for one in curves)
    found, least = allocate(curves, weights, bounds, seconds), best(curves, weights, bounds, seconds)
    if least is None:
        assert found.short > 0
    else:
        assert found.short <= 1e-6
        assert loss(found, weights) == pytest.approx(least, abs=1e-6)


@given(seed=st.integers(0, 10**6), asked=st.floats(0, 1), bound=st.floats(0.01, 1))
@settings(max_examples=60)
def test_no_bound_is_broken_and_nothing_is_claimed_whoever_feeds_whom(
    seed: int, asked: float, bound: float
) -> None:
    random = np.random.default_rng(seed)
    names = ["a", "b", "c"]
    curves = [
        curve(f"p{i}", [o for o in names if random.random() < 0.6] or ["a"], seed + i) for i in range(4)
    ]
    bounds = {"a": bound, "b": bound / 2}
    seconds = asked * sum(one.saved[-1] for one in curves)
    found = allocate(curves, {}, bounds, seconds)
    assert found.total + found.short >= seconds - 1e-9
    assert all(found.lost.get(output, 0.0) <= most + 1e-9 for output, most in bounds.items())
    least = best(curves, {}, bounds, found.total)
    assert least is not None
    assert loss(found, {}) >= least - 1e-6


def test_what_loses_nothing_goes_first() -> None:
    idle = Curve("match", np.array([0.0, 0.5, 1.0]), {"o": np.array([0.0, 0.0, 1.0])})
    other = Curve("join", np.array([0.0, 1.0]), {"p": np.array([0.0, 0.1])})
    assert allocate([idle, other], {}, {}, 0.5).lost == {"o": 0.0, "p": 0.0}


def test_twice_the_weight_is_half_the_slope() -> None:
    curves = [Curve(name, np.array([0.0, 1.0]), {name: np.array([0.0, 0.5])}) for name in ("a", "b")]
    assert allocate(curves, {"a": 2.0}, {}, 1.0).saved == {"a": 0.0, "b": 1.0}


def test_a_dent_in_a_curve_is_bridged() -> None:
    assert hull(np.array([0.0, 1.0, 2.0, 2.0]), np.array([0.0, 1.0, 1.2, 5.0])) == [0, 2]
