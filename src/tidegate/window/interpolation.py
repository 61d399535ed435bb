"""Estimates for windows that were dropped, from the exact ones around them.

Paper: window drop, section 6, future work: a gap is a value that is missing from a series, and can be guessed
by a straight line between the results on both sides of it.

    windows      0    1    2    3    4    5
    exact        10   ·    ·    16   ·    12
    estimated         12   14        14

Guarantee: exact values come back as they are, and every estimate is marked as one. Only windows between two
exact ones are estimated: nothing is guessed beyond what is known. A window that was kept but in which a group
had no rows is no gap, and stays missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.errors import FlowError, explain
from tidegate.window.decisions import Decisions

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Series:
    """Window starts in order, a value each, and whether it is an estimate."""

    starts: NDArray[np.int64]
    values: NDArray[np.float64]
    estimated: NDArray[np.bool_]


def with_estimates(
    starts: NDArray[np.int64], values: NDArray[np.float64], decisions: Decisions, slide_us: int
) -> Series:
    """The exact results of one group, with dropped windows between them filled in."""
    if starts.size != values.size or (np.diff(starts) <= 0).any():
        raise FlowError(
            explain(
                "A series has one value per window, and window starts that ascend",
                got=f"{starts.size} starts, {values.size} values",
                do="Give the results of one group, in order of window_start",
            )
        )
    if starts.size < 2:
        return Series(starts, values, np.zeros(starts.size, np.bool_))
    every = np.arange(starts[0], starts[-1] + 1, slide_us)
    missing = np.setdiff1d(every[~decisions.kept(every)], starts, assume_unique=True)
    guesses = np.interp(missing, starts, values)
    order = np.argsort(np.concatenate((starts, missing)), kind="stable")
    return Series(
        np.concatenate((starts, missing))[order],
        np.concatenate((values, guesses))[order],
        np.concatenate((np.zeros(starts.size, np.bool_), np.ones(missing.size, np.bool_)))[order],
    )
