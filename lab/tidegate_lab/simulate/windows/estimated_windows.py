"""Measures how often intervals of estimated aggregates contain the true value, on repeatedly sampled windows.

Every run is a window of one group. Its rows arrive in several batches, each with its own probability π; kept
rows become partials as Spark makes them, which the engine's own kernels merge and finish.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidegate.window.aggregate.aggregates import Merge
from tidegate.window.aggregate.closing import Stretches
from tidegate.window.aggregate.columns import Column
from tidegate.window.aggregate.combine import combine
from tidegate.window.estimate.estimates import AVERAGE, COUNT, SUM
from tidegate.window.estimate.horvitz_thompson import bounds, estimate

if TYPE_CHECKING:
    Reals = NDArray[np.float64]

Draw = Callable[[np.random.Generator, tuple[int, int]], "Reals"]
#: Fares around a price, differences around zero, waiting times, fares with a tail, mostly nothing; and, for
#: those who have such data, a tail that no hundred rows know.
VALUES: Mapping[str, Draw] = {
    "around a price": lambda rng, shape: rng.normal(50, 10, shape),
    "around zero": lambda rng, shape: rng.normal(0, 10, shape),
    "exponential": lambda rng, shape: rng.exponential(10, shape),
    "lognormal": lambda rng, shape: rng.lognormal(2, 0.7, shape),
    "mostly zero": lambda rng, shape: rng.exponential(10, shape) * (rng.random(shape) < 0.4),
    "heavy tail": lambda rng, shape: rng.lognormal(2, 1, shape),
}
AGGREGATES = (COUNT, SUM, AVERAGE)


@dataclass(frozen=True)
class Setting:
    """Windows of so many kept rows, in expectation, that came in batches with these probabilities."""

    values: str
    kept: int
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Covered:
    """Per aggregate: the share of runs with an interval, and of those whose interval holds the truth."""

    given: Mapping[str, float]
    held: Mapping[str, float]
    #: How far estimates are off on average, in standard errors of that average.
    bias: Mapping[str, float]


def covered(setting: Setting, runs: int, seed: int) -> Covered:
    """The same windows sampled once each."""
    rng = np.random.default_rng(seed)
    batches = len(setting.shares)
    rows = batches * round(setting.kept / sum(setting.shares))
    values = VALUES[setting.values](rng, (runs, rows))
    shares = np.repeat(setting.shares, rows // batches)
    kept = rng.random(values.shape) < shares
    columns = merged(values, kept, setting.shares)
    truth = {
        COUNT: np.full(runs, float(rows)),
        SUM: values.sum(1),
        AVERAGE: values.mean(1),
    }
    given, held, bias = {}, {}, {}
    for name in AGGREGATES:
        low, high = bounds(name, columns[name])
        there = ~np.isnan(low)
        inside = (low <= truth[name]) & (truth[name] <= high)
        given[name], held[name] = float(there.mean()), float(inside.sum() / max(1, there.sum()))
        error = estimate(name, columns[name]) - truth[name]
        bias[name] = float(error.mean() / (error.std() / np.sqrt(runs)))
    return Covered(given, held, bias)


def merged(values: Reals, kept: NDArray[np.bool_], shares: Sequence[float]) -> dict[str, list[Reals]]:
    """The partial columns of each aggregate, a window per line; its rows are cut into a batch per share."""
    runs, batches = values.shape[0], len(shares)
    cut = (runs, batches, values.shape[1] // batches)
    x, there = np.where(kept, values, 0.0).reshape(cut), kept.reshape(cut)
    weight = np.tile(1 / np.asarray(shares), (runs, 1))
    count = there.sum(2).astype(np.float64)
    total, spread = x.sum(2), weight * (weight - 1)
    mean = total / np.maximum(count, 1)
    off = np.where(there, x - mean[:, :, None], 0.0)
    moments = [count * spread, mean, spread * (off**2).sum(2), spread * (off**3).sum(2)]
    begin = np.arange(runs) * batches
    windows = Stretches(np.arange(runs), begin, begin + batches)

    def over(merge: Merge, *columns: Reals) -> list[Reals]:
        return [one.values for one in combine(merge, [Column(c.ravel()) for c in columns], windows)]

    counted, summed = over(Merge.SUM, count), over(Merge.SUM, total)
    weights = over(Merge.SUM, (weight - 1) * count, spread * count, spread**2 * count)
    spreads = [*over(Merge.SUM, (weight - 1) * total), *over(Merge.MOMENTS, *moments)]
    return {
        COUNT: [*counted, *weights],
        SUM: [*summed, *weights, *spreads],
        AVERAGE: [*summed, *counted, *weights, *spreads],
    }
