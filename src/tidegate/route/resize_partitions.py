"""Another number of instances for partitions with known loads, of instances with weights.

Ls-Stream names elastic instances as future work; this is ours.

    fewer   partitions of instances that are gone go, heaviest first, each to the least busy instance
    more    each new instance takes from the busiest first, largest partitions first, up to its fair
            load; nobody gives more than what is above his

Guarantee: with fewer instances nothing moves that need not; with more, only to new instances. Every instance
has a partition. Where no load is known, partitions count the same.
"""

from __future__ import annotations

from heapq import heapify, heapreplace
from typing import TYPE_CHECKING

import numpy as np

from tidegate.route.ls_stream.deviation import fair_load
from tidegate.route.ls_stream.partition_annealing import fill
from tidegate.route.ls_stream.partition_load import per_instance

if TYPE_CHECKING:
    from numpy.typing import NDArray


def fewer_instances(
    loads: NDArray[np.float64], table: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.int64]:
    """`weights` has one entry per instance that stays."""
    loads = _never_nothing(loads)
    stays = table < len(weights)
    totals = per_instance(loads[stays], table[stays], len(weights))
    heap = [(busy, instance) for instance, busy in enumerate((totals / weights).tolist())]
    heapify(heap)
    after = table.copy()
    homeless = np.flatnonzero(~stays)
    for partition in homeless[np.argsort(-loads[homeless], kind="stable")].tolist():
        busy, instance = heap[0]
        after[partition] = instance
        heapreplace(heap, (busy + float(loads[partition] / weights[instance]), instance))
    return after


def more_instances(
    loads: NDArray[np.float64], table: NDArray[np.int64], weights: NDArray[np.float64], before: int
) -> NDArray[np.int64]:
    """`weights` has one entry per instance, old and new; `before` of them are old."""
    loads = _never_nothing(loads)
    after = table.copy()
    fair = fair_load(loads, weights)
    for new in range(before, len(weights)):
        room = fair * weights[new]
        excess = per_instance(loads, after, len(weights))[:before] - fair * weights[:before]
        for giver in np.argsort(-excess, kind="stable").tolist():
            own = np.flatnonzero(after == giver)
            given = own[_largest_below(loads[own], min(room, float(excess[giver])))]
            after[given] = new
            room -= float(loads[given].sum())
    return _nobody_empty(after, loads, before, len(weights))


def _largest_below(loads: NDArray[np.float64], limit: float) -> NDArray[np.bool_]:
    """Largest first, whatever still fits."""
    return fill(loads, np.argsort(-loads, kind="stable"), np.inf, limit * (1 + 1e-9))


def _never_nothing(loads: NDArray[np.float64]) -> NDArray[np.float64]:
    """A partition without load may have some tomorrow: it counts a little, so that such are spread, too."""
    return loads + max(float(loads.mean()) * 1e-6, 1e-9)


def _nobody_empty(
    table: NDArray[np.int64], loads: NDArray[np.float64], before: int, instances: int
) -> NDArray[np.int64]:
    """New instances that nobody could give to take the lightest partition of whoever has most of them."""
    table = table.copy()
    for new in range(before, instances):
        counts = np.bincount(table, minlength=instances)
        if counts[new] == 0:
            own = np.flatnonzero(table == np.argmax(counts))
            table[own[np.argmin(loads[own])]] = new
    return table
