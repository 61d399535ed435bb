"""Chooses basic windows of both windows together, by the value of a comparison with them.

Beyond the selective join paper (join direction adaptation): algorithm 4 gives one window everything it can
use before the other gets anything. The paper itself says that this is wrong where both have productive parts.
A cell is (window, age). Its cost is its length in time: per second, comparing all new rows of one stream with
b seconds of the other costs λ₁ λ₂ b, whichever stream is stored. So a budget of r · (w₁ + w₂) is spent on the
cells with the highest value per cost, the last one in part:

    value ▲  █                             r₁ w₁ = length of the cells taken from the left window,
          │  █ █ ▓                         r₂ w₂ = length of the cells taken from the right window,
          │  █ █ ▓ ▓ █ ▒ ▒ …               r₁ w₁ + r₂ w₂ = r (w₁ + w₂), as in algorithm 4
          └──────────┘ budget

Guarantee: for the given values, no other choice of cells yields more within the budget, up to one partial
cell (the greedy order is optimal where a cell can be taken in part). Ties go to the newer age.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def choose_cells(
    values: tuple[NDArray[np.float64], NDArray[np.float64]],
    lengths: tuple[NDArray[np.float64], NDArray[np.float64]],
    fraction: float,
) -> tuple[tuple[float, tuple[int, ...]], tuple[float, tuple[int, ...]]]:
    """Per window: the fraction to process and the order of its ages, for the most value within the budget."""
    value, length = np.concatenate(values), np.concatenate(lengths)
    window = np.repeat([0, 1], [v.size for v in values])
    age = np.concatenate([np.arange(v.size) for v in values])
    best = np.lexsort((window, age, -value))
    budget = fraction * length.sum()
    taken = np.zeros(value.size)
    taken[best] = np.clip(budget - (np.cumsum(length[best]) - length[best]), 0, length[best])
    left, right = (
        (
            _share(float(taken[window == side].sum()), float(length[window == side].sum()), fraction),
            tuple(age[best[window[best] == side]].tolist()),
        )
        for side in (0, 1)
    )
    return left, right


def _share(taken: float, length: float, fraction: float) -> float:
    """A window of length zero costs nothing; it keeps the common fraction."""
    return min(1.0, taken / length) if length > 0 else fraction
