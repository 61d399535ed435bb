"""How many instances a heavy key should lie on.

A key on k instances costs each of them repeated + divided / k (`work_costs.py`). The fewest k are taken whose
pieces weigh at most `piece` of a fair share. More would be waste: every further instance repeats the probes.
Where probes alone weigh more than that, no k is small enough, and k = sqrt(n · divided / repeated) is the
best of them: there the weight of a piece plus what repeating adds to everybody's mean is least.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidegate.route.auto.work_costs import UnitCosts

if TYPE_CHECKING:
    from numpy.typing import NDArray


def instances_needed(costs: UnitCosts, fair: float, piece: float, instances: int) -> NDArray[np.int64]:
    """Per key: 1 (whole), or the number of instances that makes its pieces small enough."""
    room = piece * fair - costs.repeated
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        enough = np.where(room > 0, np.ceil(costs.divided / room), np.inf)
        best = np.rint(np.sqrt(instances * costs.divided / costs.repeated))
    needed = np.fmax(1, np.fmin(np.fmin(enough, best), instances))
    return np.where(costs.whole > piece * fair, needed, 1).astype(np.int64)
