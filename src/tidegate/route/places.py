"""Determines the partition of each row of a sorted run: of rows to be stored now, and of rows to be cut out.

In a run sorted by code a base partition is one range of rows, and so is a key. A key with a place of its own
interrupts the range of its base partition. The cost is a few binary searches per run.

Guarantee: the ranges cover every row exactly once, in order, and depend on nothing but the arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.model.routing import Cut, Place, Placement
from tidegate.route.hash_routing import partition_bounds, partition_of


@dataclass(frozen=True)
class Labelled:
    """Ranges of rows: range i has the rows starts[i] … stops[i] - 1, all of partition labels[i]."""

    labels: tuple[int, ...]
    starts: tuple[int, ...]
    stops: tuple[int, ...]

    @property
    def bounds(self) -> tuple[int, ...]:
        """Starts and stops in turn, as a piece lists them."""
        return tuple(bound for pair in zip(self.starts, self.stops, strict=True) for bound in pair)


def by_base(codes: NDArray[np.uint64], partitions: int) -> Labelled:
    """The base partitions of the rows, ignoring keys with a place of their own."""
    owned, bounds = partition_bounds(codes, partitions)
    edges = bounds.tolist()
    return Labelled(tuple(owned.tolist()), tuple(edges[:-1]), tuple(edges[1:]))


def stored_in(
    codes: NDArray[np.uint64], placement: Placement, partitions: int, instance: int, keyless: bool = False
) -> Labelled:
    """The partitions in which an instance stores the rows of a run."""
    if not placement.shared and (keyless or not placement.keys):
        return by_base(codes, partitions)
    owned, bounds = partition_bounds(codes, partitions)
    starts, labels = bounds[:-1], [_share(placement, placement.base(p), instance) for p in owned.tolist()]
    if placement.keys and not keyless:
        starts, labels = _with_keys(codes, placement, instance, partitions, starts, labels)
    stops = np.append(starts[1:], len(codes)) if len(starts) else starts
    filled = np.flatnonzero(stops > starts)
    return Labelled(
        tuple(labels[i] for i in filled.tolist()),
        tuple(starts[filled].tolist()),
        tuple(stops[filled].tolist()),
    )


def _with_keys(
    codes: NDArray[np.uint64],
    placement: Placement,
    instance: int,
    partitions: int,
    starts: NDArray[np.int64],
    labels: Sequence[int],
) -> tuple[NDArray[np.int64], list[int]]:
    """The ranges, with a range for each key that has a place of its own, and one for the rest behind it."""
    keys = np.array(sorted(placement.keys), np.uint64)
    first, behind = np.searchsorted(codes, keys), np.searchsorted(codes, keys, side="right")
    present = behind > first
    keys, first, behind = keys[present], first[present], behind[present]
    own = [_share(placement, placement.keys[int(code)], instance) for code in keys]
    homes = partition_of(keys, partitions).tolist()
    rest = [_share(placement, placement.base(home), instance) for home in homes]
    edges = np.concatenate([starts, first, behind])
    # At the same row the later kind wins: the end of a key, then the start of a partition, then the next key.
    rank = np.repeat([1, 2, 0], [len(starts), len(first), len(behind)])
    order = np.lexsort((rank, edges))
    named = [*labels, *own, *rest]
    return edges[order], [named[i] for i in order.tolist()]


def _share(placement: Placement, place: Place, instance: int) -> int:
    """The partition of a place that the instance stores to."""
    mine = (p for p in place.stores if placement.table[p] == instance)
    return next(mine, place.stores[0])


def recut(
    labelled: Sequence[tuple[int, int, int]], codes: NDArray[np.uint64], cuts: Sequence[Cut]
) -> list[tuple[int, int, int]]:
    """Ranges (partition, start, stop) of a stored run after the cuts."""
    ranges = list(labelled)
    for cut in cuts:
        result: list[tuple[int, int, int]] = []
        for label, start, stop in ranges:
            if label not in cut.sources:
                result.append((label, start, stop))
                continue
            key = np.uint64(cut.code)
            first = start + int(np.searchsorted(codes[start:stop], key))
            behind = start + int(np.searchsorted(codes[start:stop], key, side="right"))
            stays = first + (behind - first) * cut.kept // cut.of
            parts = len(cut.targets)
            edges = [stays + (behind - stays) * j // parts for j in range(parts + 1)]
            result.append((label, start, stays))
            result += [(cut.targets[j], edges[j], edges[j + 1]) for j in range(parts)]
            result.append((label, behind, stop))
        ranges = [part for part in result if part[1] < part[2]]
    return ranges
