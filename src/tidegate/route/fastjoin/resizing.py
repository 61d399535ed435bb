"""Places partitions and keys on another number of instances, by their weights and `route/resizing.py`.

The weight follows FastJoin's migration benefit (equation 8) with the totals of all instances: a partition
or key weighs its share of all stored rows plus its share of all probes, per side of the join. Unlike loads,
such weights add up. Without any counts, partitions weigh the same.

Guarantee: partitions and keys of instances that stay move only to new instances; every instance in the result
exists. A key that arrives on the instance of its partition loses its entry. Split keys keep those of their
instances that stay.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegate.route.assignment import Assignment
from tidegate.route.hash_routing import check_instances, partition_of
from tidegate.route.load import Load, LoadWork
from tidegate.route.resizing import resettled


def resized(load: Load, current: Assignment, instances: int) -> Assignment:
    """The same partitions and keys on `instances` instances."""
    partitions = len(current.table)
    check_instances(partitions, instances)
    staying = {
        code: tuple(place for place in places if place < instances)
        for code, places in current.keys.items()
        if len(places) > 1
    }
    # A split key that loses all its instances is placed as one item, like a key with one place.
    single = [code for code in current.keys if not staying.get(code)]
    places = np.array([*current.table, *(current.keys[code][0] for code in single)], np.int64)
    owners = resettled(places, _weights(load, partitions, single), current.instances, instances)
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
    """Weights of each partition, then of each key: shares of all rows and probes."""
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


def _shares(work: LoadWork, load: Load) -> NDArray[np.float64]:
    found = np.zeros(len(work))
    for counts, everything in ((work.stored, load.partitions.stored), (work.probes, load.partitions.probes)):
        totals = np.maximum(everything.sum(axis=1), 1)
        found += (counts / totals[:, None]).sum(axis=0)
    return found
