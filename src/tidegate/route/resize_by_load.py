"""Another number of instances, moving little: who takes over from instances that go, who gives to new ones.

What weighs how much is told by FastJoin's migration benefit (equation 8) with the totals of all instances:
a partition or key weighs its share of all stored rows plus its share of all probes, per side of the join.
Such weights add up, unlike loads. Where nothing is known yet, partitions weigh the same.

    fewer    what lay on an instance that goes is taken, heaviest first, each by the lightest that stays
    more     each new instance takes from the heaviest, largest first, as long as it stays below the mean

Guarantee: partitions and keys of instances that stay only move to new instances; every instance named
exists. A key that arrives where its partition lies loses its entry. Keys that are split keep those of
their instances that stay.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from heapq import heapify, heappop, heapreplace
from typing import TYPE_CHECKING

import numpy as np

from tidegate.route.assignment import Assignment
from tidegate.route.hash import first_table, partition_of
from tidegate.route.load import Load, Work

if TYPE_CHECKING:
    from numpy.typing import NDArray


def resized(load: Load, current: Assignment, instances: int) -> Assignment:
    """The same partitions and keys on `instances` instances."""
    partitions = len(current.table)
    first_table(partitions, instances)  # refuses a number of instances that cannot be
    staying = {
        code: tuple(place for place in places if place < instances)
        for code, places in current.keys.items()
        if len(places) > 1
    }
    # A split key that loses all its instances is one thing to place, as a key with one place is.
    single = [code for code in current.keys if not staying.get(code)]
    owners = np.array([*current.table, *(current.keys[code][0] for code in single)], np.int64)
    weights = _weights(load, partitions, single)
    if instances < current.instances:
        _hand_over(owners, weights, instances)
    else:
        _fill_new(owners, weights, current.instances, instances)
    table = tuple(owners[:partitions].tolist())
    codes = np.array(single, np.uint64)
    homes = partition_of(codes, partitions).tolist()
    keys: dict[int, tuple[int, ...]] = {
        code: (place,)
        for code, place, home in zip(single, owners[partitions:].tolist(), homes, strict=True)
        if table[home] != place
    }
    keys |= {code: places for code, places in staying.items() if places}
    return Assignment(instances, table, min(current.spread, instances), keys)


def _weights(load: Load, partitions: int, keys: list[int]) -> NDArray[np.float64]:
    """Of each partition, then of each key: shares of all rows and probes."""
    position = {code: k for k, code in enumerate(load.codes.tolist())} if keys else {}
    known = [k for k, code in enumerate(keys) if code in position]
    watched = load.keys.at(np.array([position[keys[k]] for k in known], np.int64))
    weights = np.zeros(partitions + len(keys))
    if len(load.partitions) == partitions:
        weights[:partitions] = _shares(load.partitions, load)
    weights[partitions + np.array(known, np.int64)] = _shares(watched, load)
    if not weights.any():
        weights[:partitions] = 1.0
    return weights


def _shares(work: Work, load: Load) -> NDArray[np.float64]:
    found = np.zeros(len(work))
    for counts, everything in ((work.stored, load.partitions.stored), (work.probes, load.partitions.probes)):
        totals = np.maximum(everything.sum(axis=1), 1)
        found += (counts / totals[:, None]).sum(axis=0)
    return found


def _hand_over(owners: NDArray[np.int64], weights: NDArray[np.float64], instances: int) -> None:
    stays = owners < instances
    loads = np.bincount(owners[stays], weights=weights[stays], minlength=instances)
    heap = [(load, instance) for instance, load in enumerate(loads.tolist())]
    heapify(heap)
    leaving = np.flatnonzero(~stays)
    for item in leaving[np.argsort(-weights[leaving], kind="stable")].tolist():
        load, instance = heap[0]
        owners[item] = instance
        heapreplace(heap, (load + float(weights[item]), instance))


def _fill_new(owners: NDArray[np.int64], weights: NDArray[np.float64], before: int, instances: int) -> None:
    items = _by_owner(owners, weights)
    mean = float(weights.sum()) / instances
    heap = [(-sum(weight for weight, _ in items.get(i, ())), i) for i in range(before)]
    heapify(heap)
    for new in range(before, instances):
        room = mean
        full: list[tuple[float, int]] = []
        while heap and room > 0:
            load, giver = heap[0]
            # Nothing above the mean that fits: this giver is done with, at least for this new instance.
            best = bisect_right(items.get(giver, []), (min(room, -load - mean) * (1 + 1e-9), len(owners))) - 1
            if best < 0 or items[giver][best][0] <= 0:
                full.append(heappop(heap))
                continue
            weight, item = items[giver].pop(best)
            owners[item] = new
            room -= weight
            heapreplace(heap, (load + weight, giver))
        heap += full
        heapify(heap)


def _by_owner(
    owners: NDArray[np.int64], weights: NDArray[np.float64]
) -> Mapping[int, list[tuple[float, int]]]:
    """What each instance has, lightest first."""
    items: dict[int, list[tuple[float, int]]] = {}
    for item in np.argsort(weights, kind="stable").tolist():
        items.setdefault(int(owners[item]), []).append((float(weights[item]), item))
    return items
