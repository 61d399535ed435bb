"""Tables for another number of instances: which instances give, which take, and what stays.

Two functions, because their guarantees differ:

    evened_table   by count, for strategies without loads: all instances end with equally many partitions, and
                   partitions may also move between instances that stay
    resettled      by load, for strategies that balance anyway: nothing moves between instances that stay, and
                   the next decision corrects the remaining imbalance

No table can guarantee both: with 4 and 1 partitions on the two instances that stay, one of the 4 must move
or the counts stay uneven. (`auto` has a third way: its plans weigh the rows moved against the gain.)
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from heapq import heapify, heappop, heapreplace

import numpy as np
from numpy.typing import NDArray

from tidegate.route.hash_routing import check_instances

#: Sums of shares that should be equal may differ by this much through rounding.
_ROUNDING = 1e-9


def evened_table(table: Sequence[int], instances: int) -> tuple[int, ...]:
    """Equally many partitions per instance, give or take one, with the fewest moves.

    Partitions of removed instances (or -1: unplaced) must move; others move only from an instance that has
    more than its share.
    """
    partitions = len(table)
    check_instances(partitions, instances)
    owners = np.array(table, np.int64)
    housed = (owners >= 0) & (owners < instances)
    have = np.bincount(owners[housed], minlength=instances)
    share = _shares(have, partitions)
    leaves = ~housed
    leaves[housed] = _rank_within(owners[housed]) >= share[owners[housed]]
    owners[leaves] = np.repeat(np.arange(instances), np.maximum(share - have, 0))
    return tuple(owners.tolist())


def resettled(
    owners: NDArray[np.int64],
    loads: NDArray[np.float64],
    before: int,
    instances: int,
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.int64]:
    """New owners of items (partitions, keys) with these loads, after `before` instances became `instances`.

    fewer   items of a removed instance go, heaviest first, each to the least busy instance that stays
    more    each new instance takes items from the instance furthest above its fair share, largest first, as
            long as the giver keeps its share and the new one does not get more than its own

    Guarantee: with fewer instances only items of removed instances move; with more, items move only to new
    instances, and none of these stays empty if there are enough items. `weights` are the speeds of the
    instances from now on; None: all equal.
    """
    speeds = np.ones(instances) if weights is None else weights
    # Items without load count a little, so that they are spread as well: they may have load later.
    loads = loads + max(float(loads.mean()) * 1e-6, 1e-9)
    if instances <= before:
        return _handed_over(owners, loads, speeds)
    return _nobody_empty(_filled(owners, loads, speeds, before), loads, before, instances)


def _handed_over(
    owners: NDArray[np.int64], loads: NDArray[np.float64], speeds: NDArray[np.float64]
) -> NDArray[np.int64]:
    stays = owners < speeds.size
    sums = np.bincount(owners[stays], loads[stays], speeds.size)
    heap = [(busy, instance) for instance, busy in enumerate((sums / speeds).tolist())]
    heapify(heap)
    after = owners.copy()
    homeless = np.flatnonzero(~stays)
    for item in homeless[np.argsort(-loads[homeless], kind="stable")].tolist():
        busy, instance = heap[0]
        after[item] = instance
        heapreplace(heap, (busy + float(loads[item] / speeds[instance]), instance))
    return after


def _filled(
    owners: NDArray[np.int64], loads: NDArray[np.float64], speeds: NDArray[np.float64], before: int
) -> NDArray[np.int64]:
    fair = float(loads.sum() / speeds.sum())
    above = np.bincount(owners, loads, before) - fair * speeds[:before]
    items = _by_owner(owners, loads, before)
    heap = [(-excess, giver) for giver, excess in enumerate(above.tolist())]
    heapify(heap)
    after = owners.copy()
    for new in range(before, speeds.size):
        room = fair * float(speeds[new])
        done: list[tuple[float, int]] = []
        while heap and room > 0:
            excess, giver = heap[0]
            fits = min(room, -excess) * (1 + _ROUNDING)
            best = bisect_right(items[giver], (fits, owners.size)) - 1
            if best < 0:
                done.append(heappop(heap))  # nothing fits: finished for this new instance
                continue
            load, item = items[giver].pop(best)
            after[item] = new
            room -= load
            heapreplace(heap, (excess + load, giver))
        heap += done
        heapify(heap)
    return after


def _by_owner(
    owners: NDArray[np.int64], loads: NDArray[np.float64], instances: int
) -> list[list[tuple[float, int]]]:
    """The items of each instance, lightest first."""
    items: list[list[tuple[float, int]]] = [[] for _ in range(instances)]
    order = np.argsort(loads, kind="stable")
    for load, item, owner in zip(loads[order].tolist(), order.tolist(), owners[order].tolist(), strict=True):
        items[owner].append((load, item))
    return items


def _nobody_empty(
    owners: NDArray[np.int64], loads: NDArray[np.float64], before: int, instances: int
) -> NDArray[np.int64]:
    """A new instance that is still empty takes the lightest item of the instance with the most items."""
    for new in range(before, instances):
        counts = np.bincount(owners, minlength=instances)
        if counts[new] == 0 and counts.max() > 1:
            own = np.flatnonzero(owners == np.argmax(counts))
            owners[own[np.argmin(loads[own])]] = new
    return owners


def _shares(have: NDArray[np.int64], partitions: int) -> NDArray[np.int64]:
    """The target count of each instance; the remainder goes to those with most, so that fewer items move."""
    share = np.full(have.size, partitions // have.size, np.int64)
    share[np.argsort(-have, kind="stable")[: partitions % have.size]] += 1
    return share


def _rank_within(owners: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each partition's place among those of the same instance: 0, 1, …"""
    order = np.argsort(owners, kind="stable")
    ordered = owners[order]
    ranks = np.empty(owners.size, np.int64)
    ranks[order] = np.arange(owners.size) - np.searchsorted(ordered, ordered)
    return ranks
