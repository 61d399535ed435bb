"""The load of a partition and of an instance: memory and compute in one number, and average input rates.

Paper: Ls-Stream, resource model, equations 7 to 12.

    memory   rows stored + rows that come to probe                 (7), (8)
    compute  rows stored × rows that come: every pair is compared  (9), (10)
    load     γ · memory + (1 − γ) · compute                        (11), summed over an instance (12)

Both directions of the join are added up: rows of one side stored, rows of the other coming, and the
reverse. Rows that come in a batch are the paper's queue of R: at a barrier all of them wait, and all are
served.

Normalisation: none, as in the paper. Rows and pairs are added as counted, so where partitions hold more
than some hundred rows, compute dominates for any γ except 1, which uses memory alone. The time of a batch
behaves the same way. The worked example of the paper (figure 4) gives loads 43 and 15: memory plus compute
without the factors γ = 1 − γ = 0.5 of its own equation 11. We keep the factors; imbalance, a ratio, is 0.48
either way.

Input rates: communication model, equations 3 and 4. The rates of an instance over the last batches are
averaged without their maximum and minimum, so that one burst or lull does not move the average. Equation 4
still divides by the whole interval, which makes every average too small by two samples. The text says
"excluding the maximum and minimum values", so we divide by the number of samples that remain. With fewer
than three samples all are used.

Guarantee: the average lies between the second smallest and the second largest sample.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegate.route.load import LoadWork


def trimmed_rates(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """Average of each column; one line per batch, one column per instance."""
    if len(samples) < 3:
        return np.asarray(samples.mean(axis=0))
    # Sorted, because total − max − min would lose small samples beside a huge one.
    return np.asarray(np.sort(samples, axis=0)[1:-1].mean(axis=0))


def memory(work: LoadWork, coming: NDArray[np.float64]) -> NDArray[np.float64]:
    """Equation 7 for each partition; `coming` has shape (2, n) as `work.probes` has."""
    return np.asarray((work.stored + coming).sum(axis=0))


def compute(work: LoadWork, coming: NDArray[np.float64]) -> NDArray[np.float64]:
    """Equation 9 for each partition: comparisons, if every row is compared with its whole partition."""
    return np.asarray((work.stored.astype(np.float64) * coming).sum(axis=0))


def partition_loads(
    work: LoadWork, gamma: float, coming: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Equation 11 for each partition; `coming` defaults to the rows of this batch."""
    rows = work.probes.astype(np.float64) if coming is None else coming
    return gamma * memory(work, rows) + (1.0 - gamma) * compute(work, rows)


def per_instance(
    values: NDArray[np.float64], table: NDArray[np.int64], instances: int
) -> NDArray[np.float64]:
    """Equations 8, 10 and 12: the sum over the partitions of each instance."""
    return np.asarray(np.bincount(table, weights=values, minlength=instances), np.float64)
