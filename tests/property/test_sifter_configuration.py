"""Laws of configuration: the least cost (also by HiGHS), every constraint, and the two ends of fairness."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from tidegate.sift.construct.configuration import configure

SHARES = st.one_of(st.sampled_from([0.0, 1.0, 0.5, 0.25]), st.floats(0, 1))


class Program:
    """What a sifter is configured from."""

    def __init__(self, worth: list[float], f: list[float], nonempty: list[bool]) -> None:
        self.A, self.nonempty = np.array(worth), np.array(nonempty)
        total = sum(f)
        # Without any row, the regions share them evenly.
        self.f = np.array(f) / total if total else np.full(len(f), 1 / len(f))

    def __repr__(self) -> str:
        return f"Program({self.A.tolist()}, {self.f.tolist()}, {self.nonempty.tolist()})"

    def configured(self, z: float, fairness: float) -> NDArray[np.float64]:
        return configure(self.A, self.f, self.nonempty, z, fairness)

    def least_cost(self, z: float, fairness: float) -> float:
        """By HiGHS, in l + 2 variables: the thresholds, and the lowest and highest of non-empty regions."""
        count = len(self.f)
        own = np.eye(count)[self.nonempty]
        ones, zeros = np.ones((len(own), 1)), np.zeros((len(own), 1))
        below = np.vstack(
            [
                np.hstack([-own, ones, zeros]),
                np.hstack([own, zeros, -ones]),
                np.hstack([np.zeros((1, count)), [[-1.0, 1.0]]]),
            ]
        )
        found = linprog(
            np.concatenate([self.A, [0.0, 0.0]]),
            A_ub=below,
            b_ub=np.concatenate([np.zeros(2 * len(own)), [fairness]]),
            A_eq=np.concatenate([self.f, [0.0, 0.0]])[None, :],
            # A hair less than all rows, or rounding makes z = 0 infeasible.
            b_eq=[min(1 - z, self.f.sum() * (1 - 1e-14))],
            bounds=(0, 1),
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        assert found.success, found.message
        return float(found.fun)

    def exact_least_cost(self, z: float, fairness: float) -> Fraction:
        """In fractions: cost is piecewise linear in the lowest threshold, so a breakpoint is the best."""
        asked = [(Fraction(a), Fraction(f)) for a, f in zip(*self._asked(), strict=True)]
        asked.sort(key=lambda region: (region[1] == 0, region[0] / region[1] if region[1] else 0))
        idle = sum(map(Fraction, self.f[~self.nonempty]), Fraction())
        rows = sum((f for _, f in asked), Fraction())
        drop, most = max(Fraction(), min(1 - Fraction(z), idle + rows) - idle), Fraction(fairness)
        lowest = {Fraction(), 1 - most}
        top = Fraction()  # rows of regions at the highest threshold
        for _, f in [*asked, (0, Fraction())]:
            if rows:
                lowest.add((drop - most * top) / rows)
            if rows > top:
                lowest.add((drop - top) / (rows - top))
            top += f
        costs = [self._filled(asked, drop, low, min(most, 1 - low)) for low in lowest if 0 <= low <= 1]
        return min(cost for cost in costs if cost is not None)

    def _asked(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self.A[self.nonempty], self.f[self.nonempty]

    @staticmethod
    def _filled(
        asked: list[tuple[Fraction, Fraction]], drop: Fraction, low: Fraction, most: Fraction
    ) -> Fraction | None:
        """Cost of raising regions above the lowest threshold in order of worth; None: wrong volume."""
        left = drop - low * sum(f for _, f in asked)
        cost = low * sum(a for a, _ in asked)
        for a, f in asked:
            if f and left > 0:
                part = min(most, left / f)
                cost, left = cost + a * part, left - f * part
        return cost if left == 0 else None


def drawn(seed: int, least: float) -> Program:
    """Worths and frequencies are zeros, ties, plain, or tiny (about `least`)."""
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 13))
    kinds = random.integers(0, 4, (2, count))
    tiny, plain = least * random.uniform(1, 10, (2, count)), random.uniform(least, 1, (2, count))
    A, f = np.choose(kinds, [np.zeros((2, count)), np.full((2, count), 0.5), plain, tiny])
    nonempty = random.random(count) < random.choice([0.3, 0.8, 1.0])
    return Program((A * nonempty).tolist(), f.tolist(), nonempty.tolist())


def programs(least: float = 1e-9) -> st.SearchStrategy[Program]:
    return st.integers(0, 2**32 - 1).map(lambda seed: drawn(seed, least))


# Nothing tiny here: HiGHS takes coefficients below 1e-9 for zeros.
@given(programs(least=1e-3), SHARES, SHARES)
def test_a_general_solver_finds_no_better_thresholds(program: Program, z: float, fairness: float) -> None:
    cost = float(program.A @ program.configured(z, fairness))
    assert abs(cost - program.least_cost(z, fairness)) <= 1e-9


@given(programs(), SHARES, SHARES)
@example(drawn(25823884, 1e-9), 0.0, 0.0)
def test_thresholds_cost_the_least_even_where_rows_are_very_few(
    program: Program, z: float, fairness: float
) -> None:
    cost = float(program.A @ program.configured(z, fairness))
    # The volume is met up to the rounding of shares, and rounding costs what such a share of rows is worth:
    # of one region, or of all that are asked about, because fairness moves their thresholds together.
    seen = program.f > 0
    alone = float((program.A[seen] / program.f[seen]).max(initial=0))
    asked = float(program.f[program.nonempty].sum())
    rounding = 1e-15 * max(alone, float(program.A.sum()) / asked if asked else 0.0)
    assert abs(cost - program.exact_least_cost(z, fairness)) <= 1e-9 + rounding


@given(programs(), SHARES, SHARES)
@example(Program([1.0, 1.0], [0.5, 0.5], [True, True]), 0.3, 1.0)
def test_thresholds_keep_every_constraint(program: Program, z: float, fairness: float) -> None:
    d = program.configured(z, fairness)
    assert ((d >= 0) & (d <= 1)).all()
    assert abs(d @ program.f - (1 - z)) <= 1e-12
    asked = d[program.nonempty]
    assert asked.max(initial=0) - asked.min(initial=1) <= fairness + 1e-12
    if (asked > 0).any():  # what nobody asks about goes first
        assert (d[~program.nonempty] == 1).all()


@given(programs(), SHARES)
def test_without_fairness_the_least_worth_goes_first(program: Program, z: float) -> None:
    d = program.configured(z, 1.0)
    seen = program.nonempty & (program.f > 0)
    worth = program.A[seen] / program.f[seen]
    kept, dropped = worth[d[seen] < 1], worth[d[seen] > 0]
    if kept.size and dropped.size:
        assert dropped.max() <= kept.min() * (1 + 1e-9)


@given(programs(), SHARES)
def test_full_fairness_drops_evenly_wherever_somebody_asks(program: Program, z: float) -> None:
    d = program.configured(z, 0.0)
    assert np.unique(d[program.nonempty]).size <= 1


@given(programs(least=1e-3), SHARES, SHARES, st.randoms(use_true_random=False))
def test_the_order_of_regions_does_not_matter(
    program: Program, z: float, fairness: float, order: Random
) -> None:
    place = list(range(len(program.f)))
    order.shuffle(place)
    shuffled = configure(program.A[place], program.f[place], program.nonempty[place], z, fairness)
    np.testing.assert_allclose(shuffled, program.configured(z, fairness)[place], rtol=0, atol=1e-9)
