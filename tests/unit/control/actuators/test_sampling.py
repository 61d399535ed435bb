from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.api.goal import Shed, WindowPolicyName
from tidegate.control.actuators.paper_rate import FRACTION_MIN
from tidegate.control.actuators.sampling import fixed_share, keep_shares


@given(
    rows=st.lists(st.integers(0, 10**6), min_size=1, max_size=64),
    fraction=st.floats(0.01, 1.0),
)
def test_as_many_rows_are_kept_as_there_is_time_for(rows: list[int], fraction: float) -> None:
    counts = np.array(rows, np.float64)
    shares = keep_shares(fraction, counts)
    assert ((shares >= FRACTION_MIN) & (shares <= 1)).all()
    assert (shares * counts).sum() == pytest.approx(fraction * counts.sum(), rel=1e-9, abs=FRACTION_MIN)
    # Larger strata keep more rows, and a smaller part of them; of those that are cut, roots decide.
    order = np.argsort(counts)
    assert (np.diff(shares[order]) <= 1e-12).all()
    assert (np.diff((shares * counts)[order]) >= -1e-6).all()
    cut = (shares < 1) & (shares > FRACTION_MIN) & (counts > 0)
    lots = shares[cut] * np.sqrt(counts[cut])
    assert lots == pytest.approx(np.full(lots.size, lots[0] if lots.size else 0.0))


def test_no_other_shares_have_less_variance() -> None:
    """The variance of a count is N (1/π − 1): relative to N, the sum over strata is least."""
    rng = np.random.default_rng(1)
    counts = np.round(rng.pareto(1.0, 64) * 100 + 1)
    best = keep_shares(0.3, counts)
    for _ in range(200):
        other = np.clip(best * rng.uniform(0.7, 1.3, 64), 0.001, 1)
        other = np.clip(other * (best * counts).sum() / (other * counts).sum(), 0.001, 1)
        if (other * counts).sum() <= (best * counts).sum() + 1e-6:
            assert (1 / other).sum() >= (1 / best).sum() - 1e-9


def test_time_for_all_keeps_all_and_nothing_known_treats_all_alike() -> None:
    assert (keep_shares(1.0, np.array([5.0, 500.0])) == 1).all()
    assert (keep_shares(0.4, np.zeros(3)) == 0.4).all()
    assert keep_shares(0.5, np.array([0.0, 100.0])) == pytest.approx([1.0, 0.5])


@pytest.mark.parametrize(
    ("window", "kept"), [("auto", None), ("none", 1.0), (0.0, 1.0), (0.7, 0.3), (1.0, FRACTION_MIN)]
)
def test_what_is_not_dropped_always_is_kept_and_some_rows_are(
    window: WindowPolicyName | float, kept: float | None
) -> None:
    assert fixed_share(Shed(window=window)) == (kept if kept is None else pytest.approx(kept))
