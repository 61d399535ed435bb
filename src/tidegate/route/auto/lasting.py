"""Too heavy, or just unlucky? Loads of instances over the last batches, against what chance explains.

One batch with an instance far above the trigger is enough to act on. An instance just above it may have had
bad luck; but luck does not last. So the mean since the last migration is judged as well, with the smaller
deviation that a mean has. Remembered: one number per instance and the number of batches, as plain JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Deviations that are still taken for chance.
_DEVIATIONS = 2.0
#: A mean over so many batches; older ones fade.
_BATCHES = 9


def observe(memory: Mapping[str, Any], shares: NDArray[np.float64]) -> dict[str, Any]:
    """One more batch: the load of each instance in fair shares. Another number of instances starts afresh."""
    old = np.array(memory.get("mean", ()), np.float64)
    if old.size != shares.size:
        return {"batches": 1, "mean": shares.tolist()}
    batches = min(int(memory["batches"]) + 1, _BATCHES)
    return {"batches": batches, "mean": (old + (shares - old) / batches).tolist()}


def too_heavy(
    memory: Mapping[str, Any], shares: NDArray[np.float64], noise: NDArray[np.float64], trigger: float
) -> bool:
    """Whether an instance is above the trigger by more than chance: in this batch, or on the mean.

    `noise` is the deviation of `shares` by chance; `memory` has observed them already.
    """
    now = shares - _DEVIATIONS * noise > trigger
    # Fading weights, or the same for all: either way a mean over n batches deviates about sqrt(n) times less.
    mean = np.array(memory["mean"], np.float64)
    lasting = mean - _DEVIATIONS * noise / np.sqrt(memory["batches"]) > trigger
    return bool((now | lasting).any())
