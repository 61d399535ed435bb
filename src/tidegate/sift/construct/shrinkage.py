"""Shrinkage: corrects the frequencies of regions for sampling error, so that the volume that passes is z.

Ours, not in the papers. Configuration drops most where a row seems to have the least value, A/f, and so
prefers regions whose f the sample overestimates: fewer rows are dropped there than planned, and more than z
pass. Where data and queries have the same distribution, all differences of A/f are sampling error.

So frequencies are moved towards their expectation if rows had the same value everywhere, p = A/ΣA, by the
part of their difference that chance explains:

    chance     = (regions − 1) / Σ [(rows seen − rows expected)² / rows expected]        at most 1
    frequency  = (1 − chance) · share of the sample + chance · p

The sum is Pearson's X², about regions − 1 by chance alone. The result is the posterior mean of f in the
Dirichlet-multinomial model, its dispersion estimated from the counts (empirical Bayes), up to terms of the
order of 1 / rows: a choice by a posterior mean is not overestimated.

Regions that were *fitted* (`auto`) differ by more than that without any difference in the data, because each
cut was placed where the same sample shows the largest difference. Such a cut counts as one and a half: where
data and queries coincide, the mean of what passes is then within 0.007 of z for any global skew.

Guarantee: the sum of frequencies is unchanged; regions without value keep theirs; the more rows there are,
the smaller the change.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Degrees of freedom of a cut that was placed by the sample.
FITTED = 1.5


def shrunk(
    frequencies: NDArray[np.float64], region_qos: NDArray[np.float64], rows: int, *, fitted: bool = False
) -> NDArray[np.float64]:
    """Corrected frequencies, from a sample of `rows` rows; `fitted`: the sample also placed the cuts."""
    worth = region_qos > 0
    seen = rows * frequencies[worth]
    if len(seen) < 2 or not seen.sum() > 0:
        return frequencies
    expected = region_qos[worth] * (seen.sum() / region_qos[worth].sum())
    difference = ((seen - expected) ** 2 / expected).sum()
    by_chance = (len(seen) - 1) * (FITTED if fitted else 1.0)
    chance = min(1.0, by_chance / difference) if difference > 0 else 1.0
    found = frequencies.copy()
    found[worth] = (seen + chance * (expected - seen)) / rows
    return found
