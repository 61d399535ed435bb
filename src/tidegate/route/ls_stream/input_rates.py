"""Average input rates that one burst or one lull does not move: the mean without its extremes.

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

if TYPE_CHECKING:
    from numpy.typing import NDArray


def trimmed_rates(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """Average of each column; one line per batch, one column per instance."""
    if len(samples) < 3:
        return np.asarray(samples.mean(axis=0))
    # Sorted, not total − max − min: that would lose small samples beside a huge one.
    return np.asarray(np.sort(samples, axis=0)[1:-1].mean(axis=0))
