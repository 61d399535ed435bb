"""What a partition and an instance weigh: memory and compute in one number.

Paper: Ls-Stream, resource model, equations 7 to 12.

    memory   rows stored + rows that come to look for partners     (7), (8)
    compute  rows stored × rows that come: every pair is compared  (9), (10)
    load     γ · memory + (1 − γ) · compute                        (11), summed over an instance (12)

Both directions of the join are added up: rows of one side stored, rows of the other coming, and the reverse.
Rows that come in a batch are the paper's queue of R: at a barrier all of them wait, and all are served.

Normalisation: none, as in the paper. Rows and pairs are added as they are counted, so where partitions hold
more than some hundred rows compute decides, whatever γ is (except 1, which looks at memory alone). That is
what the time of a batch follows, too. The worked example of the paper (figure 4) gives loads 43 and 15:
memory plus compute without the factors γ = 1 − γ = 0.5 of its own equation 11. We keep the factors;
imbalance, a ratio, is 0.48 either way.

Average input rates that one burst or one lull does not move: the mean without its extremes.

Paper: Ls-Stream, communication model, equations 3 and 4.

The rates of an instance over the last batches are summed, their maximum and minimum left out. Equation 4
still divides by the whole interval, which makes every average too small by two samples; the text says
"excluding the maximum and minimum values", so we divide by what is left. With fewer than three samples
nothing is left out.

Guarantee: the average lies between the second smallest and the second largest sample.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidegate.route.load import Work

if TYPE_CHECKING:
    from numpy.typing import NDArray


def trimmed_rates(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """Average of each column; one line per batch, one column per instance."""
    if len(samples) < 3:
        return np.asarray(samples.mean(axis=0))
    # Sorted, not total − max − min: that would lose small samples beside a huge one.
    return np.asarray(np.sort(samples, axis=0)[1:-1].mean(axis=0))


def memory(work: Work, coming: NDArray[np.float64]) -> NDArray[np.float64]:
    """Equation 7 for each partition; `coming` has shape (2, n) as `work.probes` has."""
    return np.asarray((work.stored + coming).sum(axis=0))


def compute(work: Work, coming: NDArray[np.float64]) -> NDArray[np.float64]:
    """Equation 9 for each partition: comparisons, if a row is compared with all of its partition."""
    return np.asarray((work.stored.astype(np.float64) * coming).sum(axis=0))


def partition_loads(
    work: Work, gamma: float, coming: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Equation 11 for each partition; without `coming` the rows that came in this very batch."""
    rows = work.probes.astype(np.float64) if coming is None else coming
    return gamma * memory(work, rows) + (1.0 - gamma) * compute(work, rows)


def per_instance(
    values: NDArray[np.float64], table: NDArray[np.int64], instances: int
) -> NDArray[np.float64]:
    """Equations 8, 10 and 12: what the partitions of each instance add up to."""
    return np.asarray(np.bincount(table, weights=values, minlength=instances), np.float64)
