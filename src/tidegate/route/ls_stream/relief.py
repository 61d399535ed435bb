"""One step towards balance: some partitions of the most loaded instance go to the least loaded one.

Paper: Ls-Stream, state migration costs (27) and conditions (30) and (31), for instances of unequal weight w
(all 1 in the paper). With R̄ the fair load per weight, h the straggler, l the receiver, the load that moves
must be

    at least  R_h − w_h·R̄·(1 + α)                so that the straggler comes down to the threshold   (30)
         and  w_l·R̄·(1 − α) − R_l                so that the receiver comes up to it (only if α < 1)  (27)
    below     (R_h·w_l − R_l·w_h) / (w_h + w_l)  so that the straggler stays the busier of the two    (31)

`partition_annealing.py` chooses the partitions, also where no set meets both conditions.

Guarantee, from (31) alone: both instances end up strictly between their previous loads. So the heaviest
load never grows, the lightest never shrinks, the imbalance (13) never grows, and steps on the same loads
end.

The price of (31): where partitions are large, one that would lower the imbalance stays because its new
instance would be the busier one. This is the paper's rule; more partitions per instance are the remedy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.route.ls_stream.deviation import fair_load
from tidegate.route.ls_stream.partition_annealing import Ends, PartitionAnnealing, choose_partitions
from tidegate.route.ls_stream.partition_load import per_instance

#: Assumed utilisation of the straggler. Queueing theory needs a capacity; the choice between sets only needs
#: that the straggler's queue is long and its mean finite.
STRAGGLER_BUSY = 0.95
#: Keeps rounding of long sums from turning "strictly below" into "equal".
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Partitions:
    """Statistics of each partition: arrays of one length."""

    loads: NDArray[np.float64]
    #: Input rows per batch.
    rates: NDArray[np.float64]
    #: Rows in the state: the cost of a move.
    rows: NDArray[np.float64]


def relieved(
    partitions: Partitions,
    table: NDArray[np.int64],
    weights: NDArray[np.float64],
    alpha: float,
    annealing: PartitionAnnealing,
    draw: int = 0,
) -> NDArray[np.int64] | None:
    """The table after one step; None where no partition of the straggler may move."""
    loads = per_instance(partitions.loads, table, len(weights))
    busy = loads / weights
    heavy, light = int(np.argmax(busy)), int(np.argmin(busy))
    most = (loads[heavy] * weights[light] - loads[light] * weights[heavy]) / (weights[heavy] + weights[light])
    if not most > 0:
        return None
    own = np.flatnonzero(table == heavy)
    chosen = choose_partitions(
        partitions.loads[own],
        partitions.rates[own],
        partitions.rows[own],
        _ends(partitions, table, loads, weights, heavy, light),
        _least(loads, weights, heavy, light, alpha),
        float(most) * (1.0 - _ROUNDING),
        annealing,
        draw,
    )
    if not chosen.any():
        return None
    after = table.copy()
    after[own[chosen]] = light
    return after


def _least(
    loads: NDArray[np.float64], weights: NDArray[np.float64], heavy: int, light: int, alpha: float
) -> float:
    fair = fair_load(loads, weights)
    down = loads[heavy] - weights[heavy] * fair * (1.0 + alpha)
    up = weights[light] * fair * (1.0 - alpha) - loads[light]
    return float(max(down, up))


def _ends(
    partitions: Partitions,
    table: NDArray[np.int64],
    loads: NDArray[np.float64],
    weights: NDArray[np.float64],
    heavy: int,
    light: int,
) -> Ends:
    rates = per_instance(partitions.rates, table, len(weights))
    capacity = loads[heavy] / (weights[heavy] * STRAGGLER_BUSY)
    return Ends(
        (float(loads[heavy]), float(loads[light])),
        (float(rates[heavy]), float(rates[light])),
        (float(capacity * weights[heavy]), float(capacity * weights[light])),
    )
