"""Configuration: how much to drop in each region, so that queries keep as much of their QoS as possible.

Paper: sifters, section IV-C, equation 10. Given a region's QoS A (the value of its rows to all queries) and
its frequency f (its share of the rows), choose drop thresholds d:

    minimise  Σ A·d   such that   Σ f·d = 1 − z               the server gets the share z of all rows
                                  0 ≤ d ≤ 1
                                  lowest ≤ d ≤ lowest + Δ     in every region that some query intersects

The paper bounds the difference of every pair of regions. With the lowest threshold as one more variable
there are l bounds, and the program needs no solver. Regions that no query intersects cost nothing: they are
dropped first. For the others, lower the lowest threshold and raise regions at the top to compensate: rows
of the next region, with a value of A/f each, are dropped in place of rows from everywhere, with a value of
ΣA/Σf each. That gains as long as the region's rows are worth less than the mean. So at the optimum

    d = lowest + Δ   where a row is worth less than the mean of all,     d = lowest   elsewhere,

and `lowest` follows from the volume. Where that would leave [0, 1], the lowest or the highest threshold is
at the bound, and regions are raised by Δ in the order of A/f, the last one in part. Sorting is all it
takes.

Guarantee: the optimum, up to rounding, in O(l log l); the volume is met; regions whose rows have the same
value get the same threshold. Δ = 1 is the fractional knapsack, Δ = 0 drops evenly wherever a query asks for
rows.

Where we differ: without fairness the paper fills regions in the order of A; the optimum is in the order of
A/f. A region without any sample row may have any threshold. Where queries intersect it, it gets the lowest,
so that rows that appear there later are dropped as little as fairness allows; elsewhere it is treated like
other such regions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError

#: Frequencies up to this count as zero: the value of a row would overflow a float.
NO_ROWS = 1e-300
#: Row values that differ by less than this are equal up to rounding.
SAME = 1e-12
#: Tolerance of the sum of frequencies.
ROUNDING = 1e-9


def configure(
    region_qos: NDArray[np.float64],
    frequencies: NDArray[np.float64],
    nonempty: NDArray[np.bool_],
    z: float,
    fairness: float,
) -> NDArray[np.float64]:
    """The best drop threshold of every region; `nonempty` marks the regions that a query intersects."""
    _check(frequencies, z, fairness)
    thresholds = np.empty(len(frequencies))
    idle = ~nonempty
    idle_rows = frequencies[idle].sum()
    drop = min(1 - z, float(frequencies.sum()))  # a sum of shares may be a little less than 1
    thresholds[idle] = min(1.0, drop / idle_rows) if idle_rows > NO_ROWS else float(drop > 0)
    thresholds[nonempty] = _asked(
        region_qos[nonempty], frequencies[nonempty], max(0.0, drop - idle_rows), fairness
    )
    return thresholds


def _asked(
    region_qos: NDArray[np.float64], f: NDArray[np.float64], drop: float, fairness: float
) -> NDArray[np.float64]:
    """Thresholds of regions that queries intersect, together dropping this share of all rows."""
    rows = f.sum()
    if rows <= NO_ROWS:
        return np.zeros(len(f))
    worth = np.divide(region_qos, f, out=np.full(len(f), np.inf), where=f > NO_ROWS)
    cheap = f[worth < region_qos.sum() / rows * (1 - SAME)].sum()
    lowest = min(max((drop - fairness * cheap) / rows, 0.0), 1 - fairness)
    return np.asarray(np.minimum(lowest + _raised(worth, f, drop - lowest * rows, fairness), 1.0))


def _raised(
    worth: NDArray[np.float64], f: NDArray[np.float64], drop: float, most: float
) -> NDArray[np.float64]:
    """The height above the lowest threshold: `most`, cheapest rows first, until this share is dropped."""
    raised = np.zeros(len(f))
    if most <= 0 or drop <= 0:
        return raised
    order = np.argsort(worth, kind="stable")
    ordered, before = worth[order], np.concatenate(([0.0], np.cumsum(f[order] * most)))
    last = min(int(np.searchsorted(before[1:], drop)), int(np.isfinite(ordered).sum()) - 1)
    # Regions with the same value as the last one share the rest.
    begin = int(np.searchsorted(ordered, ordered[last] * (1 - SAME)))
    end = int(np.searchsorted(ordered, ordered[last] * (1 + SAME), side="right"))
    raised[order[:begin]] = most
    raised[order[begin:end]] = most * min(1.0, (drop - before[begin]) / (before[end] - before[begin]))
    return raised


def _check(frequencies: NDArray[np.float64], z: float, fairness: float) -> None:
    for name, share in (("throttler z", z), ("fairness bound Δ", fairness)):
        if not 0 <= share <= 1:
            raise FlowError(
                f"The {name} must be between 0 and 1",
                code="SIFTER_SETTING_INVALID",
                got=share,
                do="Give a number from 0 to 1, both included",
            )
    total = frequencies.sum()
    if not ((frequencies >= 0).all() and abs(total - 1) <= ROUNDING):
        raise FlowError(
            "The frequencies of regions must be zero or more and sum to 1",
            code="INTERNAL_ARRAYS_INCONSISTENT",
            got=f"frequencies from {frequencies.min()} that sum to {total}",
        )
