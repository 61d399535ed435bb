"""Load imbalance as the larger deviation from the mean, and how it is read for instances of unequal speed.

Paper: Ls-Stream, equations 13 and 14:

    LI = max((max R − mean R) / mean R, (mean R − min R) / mean R)

0 is perfect balance; the heaviest instance alone having all the load of n gives n − 1. The second term never
exceeds 1, so a threshold of 1 or more asks about the heaviest only. (FastJoin's imbalance, heaviest over
lightest, is another measure.)

The paper says that unequal processors are supported, not how. An instance of weight 2 is twice as fast: its
load is divided by its weight, and the mean is the load per weight if all were equally busy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def fair_load(loads: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Equation 14: load per weight when all instances are equally busy."""
    return float(loads.sum() / weights.sum())


def deviation(loads: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> float:
    """Equation 13; 0 where there is no load at all."""
    weights = np.ones(len(loads)) if weights is None else weights
    fair = fair_load(loads, weights)
    if fair == 0:
        return 0.0
    busy = loads / weights
    return float(max(busy.max() - fair, fair - busy.min()) / fair)
