"""The load of a batch as balancers see it: reports and the manifest become `Load` values.

Rows in the state are counted from the manifest, where every row is in one partition. New rows are counted by
the instance that stores them, comparisons by the one that makes them, so both add up over instances even
where rows have copies. In the biclique each group of instances has its own load: the stored rows of its side,
the new rows of the other side, and the comparisons of its instances.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tidegate.model.manifest import Manifest
from tidegate.model.reports import TaskReport
from tidegate.model.routing import Placement, Routing
from tidegate.model.times import LEFT, RIGHT
from tidegate.route.hash_routing import partition_of
from tidegate.route.load import Load, LoadWork


def loads_of(name: str, reports: Sequence[TaskReport], after: Manifest, partitions: int) -> tuple[Load, ...]:
    """One load for a join whose sides are co-located, otherwise two (left rows stored, right rows stored)."""
    routing = after.routing[name]
    mine = [report for report in reports if report.operator == name]
    stored = np.stack([_stored(name, after, side, routing.sides[side], partitions) for side in (LEFT, RIGHT)])
    arrived = np.zeros((2, partitions), np.int64)
    for report in mine:
        for load in report.partitions:
            arrived[:, load.partition] += load.arrived
    if routing.apart is None:
        groups: list[tuple[range, tuple[int, ...]]] = [(range(routing.instances), (LEFT, RIGHT))]
    else:
        first = min(owner for owner in routing.apart.table if owner >= 0)
        groups = [(range(first), (LEFT,)), (range(first, routing.instances), (RIGHT,))]
    return tuple(
        _load(after.batch, routing, mine, group, stored, arrived, partitions, sides)
        for group, sides in groups
    )


def _load(
    batch: int,
    routing: Routing,
    reports: Sequence[TaskReport],
    group: range,
    stored: NDArray[np.int64],
    arrived: NDArray[np.int64],
    partitions: int,
    sides: Sequence[int],
) -> Load:
    """The load of one group of instances, which stores these sides."""
    here = [report for report in reports if report.instance in group]
    seconds, done = np.zeros(len(group)), np.zeros(len(group))
    compared = np.zeros(partitions, np.int64)
    for report in here:
        seconds[report.instance - group.start] += report.seconds.cpu
        done[report.instance - group.start] += (
            report.work.stored + report.work.probed + report.work.comparisons
        )
        for one in report.partitions:
            compared[one.partition] += one.comparisons
    codes, keys = _keys(reports, here)
    homes = partition_of(codes, partitions)
    placed = np.array([int(code) in routing.sides[sides[0]].keys for code in codes], np.bool_)
    own = keys.at(placed)
    # The load of keys with their own place is not part of their base partition's.
    rest = arrived[::-1].copy()
    for side in (LEFT, RIGHT):
        np.subtract.at(rest[side], homes[placed], own.probes[side])
    np.subtract.at(compared, homes[placed], own.matches)
    whole = LoadWork(stored, np.maximum(rest, 0), np.maximum(compared, 0))
    uneven = float(done.max() / done.mean()) if done.any() else 1.0
    return Load(batch, of_sides(whole, sides), seconds, codes, homes, of_sides(keys, sides), uneven)


def _keys(reports: Sequence[TaskReport], here: Sequence[TaskReport]) -> tuple[NDArray[np.uint64], LoadWork]:
    """All keys that any instance reported: rows from everywhere, comparisons of one group."""
    held: dict[int, NDArray[np.int64]] = defaultdict(lambda: np.zeros((2, 2), np.int64))
    for report in reports:
        for key in report.keys:
            held[key.code] += np.array([key.stored, key.arrived])
    compared: dict[int, int] = defaultdict(int)
    for report in here:
        for key in report.keys:
            compared[key.code] += key.comparisons
    codes = sorted(held)
    counts = np.array([held[code] for code in codes], np.int64).reshape(-1, 2, 2)
    matches = np.array([compared[code] for code in codes], np.int64)
    # Rows that probe stored rows of one side are new rows of the other.
    return np.array(codes, np.uint64), LoadWork(counts[:, 0].T.copy(), counts[:, 1, ::-1].T.copy(), matches)


def of_sides(work: LoadWork, sides: Sequence[int]) -> LoadWork:
    """Only what these sides store, and the rows that probed it."""
    mask = np.array([[side in sides] for side in (LEFT, RIGHT)])
    return LoadWork(work.stored * mask, work.probes * mask, work.matches)


def _stored(
    name: str, after: Manifest, side: int, placement: Placement, partitions: int
) -> NDArray[np.int64]:
    """Rows in the state per base partition, without keys that have their own place."""
    base = np.full(max(len(placement.table), partitions), -1, np.int64)
    base[:partitions] = np.arange(partitions)
    for partition, place in placement.shared.items():
        base[list(place.holds)] = partition
    rows = np.zeros(partitions, np.int64)
    for piece in after.pieces:
        if piece.operator == name and piece.side == side and not piece.keyless and not piece.marks:
            bounds = np.array(piece.bounds, np.int64)
            home = base[np.array(piece.partitions, np.int64)]
            np.add.at(rows, home[home >= 0], (bounds[1::2] - bounds[::2])[home >= 0])
    return rows
