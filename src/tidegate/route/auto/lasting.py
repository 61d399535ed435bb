"""Distinguishes lasting overload from chance, by the loads of instances over the last batches.

One batch with an instance far above the trigger is enough to act on. An instance just above it may be there
by chance, but chance does not last. So the mean since the last migration is tested as well, with the smaller
deviation that a mean has. The memory is one number per instance and the number of batches, as plain JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.model.json_values import Snapshot

#: Standard deviations that still count as chance.
_DEVIATIONS = 2.0
#: Batches in the mean; older ones fade out.
_BATCHES = 9


def observe(memory: Mapping[str, Any], shares: NDArray[np.float64]) -> Snapshot:
    """Add a batch: the load of each instance in fair shares. A new number of instances resets the memory."""
    old = np.array(memory.get("mean", ()), np.float64)
    if old.size != shares.size:
        return {"batches": 1, "mean": shares.tolist()}
    batches = min(int(memory["batches"]) + 1, _BATCHES)
    return {"batches": batches, "mean": (old + (shares - old) / batches).tolist()}


def too_heavy(
    memory: Mapping[str, Any], shares: NDArray[np.float64], noise: NDArray[np.float64], trigger: float
) -> bool:
    """True if an instance is above the trigger by more than chance, in this batch or on the mean.

    `noise` is the standard deviation of `shares`; `memory` already includes this batch.
    """
    now = shares - _DEVIATIONS * noise > trigger
    # With fading or equal weights, the mean over n batches deviates about sqrt(n) times less.
    mean = np.array(memory["mean"], np.float64)
    lasting = mean - _DEVIATIONS * noise / np.sqrt(memory["batches"]) > trigger
    return bool((now | lasting).any())
