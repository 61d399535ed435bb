"""The auto strategy on the jump of `tidegate bench skew`, with prices that must be learnt from noisy seconds.

True costs are those of small batches: much of an instance's time is fixed, the rest is rows and pairs, and
single measurements are a third off.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from tidegate.route.auto.strategy import Auto
from tidegate_lab.simulate.balance.join_costs import Indexed
from tidegate_lab.simulate.balance.join_trace import JoinTrace
from tidegate_lab.simulate.balance.key_counts import Arrivals, count_arrivals
from tidegate_lab.simulate.balance.skewed_join import SkewedJoin, simulate
from tidegate_lab.workloads.skew import ZipfStreams, jumping_batches

JUMP, BATCHES = 20, 60
#: As many rows as give four million pairs a batch.
ROWS = 1946


@cache
def stream(seed: int) -> Arrivals:
    streams = ZipfStreams((1.5, 1.5), 100_000, (ROWS, ROWS), BATCHES, seed)
    return count_arrivals(jumping_batches(streams, JUMP))


def balanced(seed: int, luck: int, fixed: float, row: float, pair: float) -> JoinTrace:
    """Costs in seconds; `luck` is the seed of their noise."""
    costs = Indexed(store=row / pair, probe=row / pair)
    join = SkewedJoin(
        8,
        64,
        (4, 4),
        costs,
        watch_share=2.5e-4,
        seconds_per_work=pair,
        seconds_fixed=fixed,
        noise=0.33,
        seed=luck,
    )
    return simulate(stream(seed), Auto(), join)


def counted_imbalance(trace: JoinTrace) -> NDArray[np.float64]:
    """Comparisons of the heaviest instance over an even share."""
    pairs = np.stack([batch.groups[0].cost.squared for batch in trace.batches])
    return np.asarray(pairs.max(axis=1) / pairs.mean(axis=1))


@pytest.mark.parametrize(
    ("seed", "luck", "fixed", "row", "pair"),
    [
        (7, 6, 30e-3, 3e-6, 1e-7),
        (7, 1, 15e-3, 5e-6, 3e-8),
        (7, 4, 15e-3, 5e-6, 3e-8),
        (8, 5, 15e-3, 5e-6, 3e-8),
    ],
)
def test_three_batches_after_a_jump_the_work_is_even_and_stays_so(
    seed: int, luck: int, fixed: float, row: float, pair: float
) -> None:
    imbalance = counted_imbalance(balanced(seed, luck, fixed, row, pair))
    for jump in range(JUMP, BATCHES, JUMP):
        assert imbalance[jump] > 3
        assert imbalance[jump + 3 : jump + JUMP].max() <= 1.25
        assert np.median(imbalance[jump + 3 : jump + JUMP]) <= 1.15
