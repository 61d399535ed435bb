"""Load imbalance as the larger deviation from the mean, for instances of equal or unequal speed.

Paper: Ls-Stream, equations 13 and 14:

    LI = max((max R − mean R) / mean R, (mean R − min R) / mean R)

0 is perfect balance; n − 1 means that one of n instances has all the load. The second term never exceeds 1,
so a threshold of 1 or more concerns the heaviest instance only. (FastJoin's imbalance, heaviest over
lightest, is a different measure.)

The paper says that unequal processors are supported, but not how. An instance of weight 2 is twice as fast:
its load is divided by its weight, and the mean is the load per weight if all were equally busy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def fair_load(loads: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Equation 14: load per weight if all instances were equally busy."""
    return float(loads.sum() / weights.sum())


def deviation(loads: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> float:
    """Equation 13; 0 where there is no load at all."""
    weights = np.ones(len(loads)) if weights is None else weights
    fair = fair_load(loads, weights)
    if fair == 0:
        return 0.0
    busy = loads / weights
    return float(max(busy.max() - fair, fair - busy.min()) / fair)
