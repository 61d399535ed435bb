"""Curves out of what seeds gave."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tidegate_lab.plots.plots import Curve


def band_curve(
    name: str,
    x: Sequence[float],
    found: Sequence[Sequence[float]] | NDArray[np.float64],
    style: str = "line",
    colour: int = 0,
) -> Curve:
    """(seed, place on x) → the median over the seeds, in a band from least to most."""
    values = np.asarray(found, np.float64)
    return Curve(
        name,
        x,
        np.median(values, axis=0).tolist(),
        style,
        low=values.min(axis=0).tolist(),
        high=values.max(axis=0).tolist(),
        colour=colour,
    )
