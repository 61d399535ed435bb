"""Least squares that never answers with a negative cost, held near an answer that is known already.

What cost how much is learnt from sums over batches, where `made` are the amounts that a batch had and
`seconds` what it took:

    products = Σ made · madeᵀ        times = Σ made · seconds

Costs that the data cannot tell apart stay near the given ones. How strongly each is held is relative to what
its part contributed (`unit`), so that seconds per row and seconds per batch are weighed alike.

Guarantee: costs are >= 0; those of parts that are not `used` are 0. A cost that comes out negative becomes
zero and the others are solved again, so it ends after as many rounds as there are parts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def held_costs(
    products: NDArray[np.float64],
    times: NDArray[np.float64],
    unit: NDArray[np.float64],
    used: NDArray[np.bool_],
    hold: NDArray[np.float64],
    near: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The costs of the used parts that explain the times best, each held near `near` by its `hold`."""
    matrix = products / np.outer(unit, unit) + np.diag(hold)
    wanted = times / unit + hold * near * unit
    while True:
        parts = np.zeros(times.size)
        parts[used] = np.linalg.solve(matrix[np.ix_(used, used)], wanted[used])
        if (parts >= 0).all():
            return np.asarray(parts / unit)
        used = used & (parts > 0)
