"""Metrics of balancing: load per instance, imbalance as both papers define it, and what moved.

Moved rows are the stored rows whose partition has another owner after the plan. Nothing is copied (a merge
rewrites them later), so their bytes are bytes that another instance reads again. The cost of a migration is
the time to cut the rows of moved keys out of stored runs, reported for the slowest instance because the batch
waits for it. The time to read moved rows is not reported separately: a worker may run any instance in any
batch and open pieces that never moved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tidegate.model.json_values import Metrics
from tidegate.model.manifest import Manifest
from tidegate.model.pieces import Piece
from tidegate.model.plan import Plan
from tidegate.model.reports import TaskReport
from tidegate.model.routing import Routing
from tidegate.model.times import LEFT
from tidegate.route.fastjoin.imbalance import imbalance
from tidegate.route.ls_stream.deviation import deviation


def balance_metrics(before: Manifest, plan: Plan, reports: Sequence[TaskReport]) -> Metrics:
    """Per join: the imbalance of the batch, the size of the routing tables, and what the plan moved."""
    return {
        name: _of_join(name, before, plan, [report for report in reports if report.operator == name])
        for name in plan.routing
    }


def _of_join(name: str, before: Manifest, plan: Plan, reports: Sequence[TaskReport]) -> Metrics:
    routing = plan.routing[name]
    seconds, compared = np.zeros(routing.instances), np.zeros(routing.instances)
    for report in reports:
        seconds[report.instance] += report.seconds.cpu
        compared[report.instance] += report.work.comparisons
    placements = {id(one): one for one in routing.sides}.values()
    return {
        "version": routing.version,
        "instances": routing.instances,
        "seconds": seconds.tolist(),
        "comparisons": compared.astype(int).tolist(),
        "spared": sum(report.work.spared for report in reports),
        "imbalance": _finite(imbalance(seconds)),
        "deviation": deviation(seconds),
        "entries": sum(len(one.table) + len(one.keys) for one in placements),
        "placed_keys": sum(len(one.keys) for one in placements),
        "split_keys": sum(len(one.on(place)) > 1 for one in placements for place in one.keys.values()),
        "moved": moved(name, before, plan, reports),
    }


def moved(name: str, before: Manifest, plan: Plan, reports: Sequence[TaskReport]) -> Metrics | None:
    """What changed its owner with this plan; None if nothing could."""
    old, new = before.routing[name], plan.routing[name]
    if old.version == new.version:
        return None
    recut = {piece: ranges for report in reports for piece, ranges in report.state.recut.items()}
    rows, size, partitions = 0, 0.0, set[tuple[int, int]]()
    for piece in before.pieces:
        if piece.operator != name or piece.marks:
            continue
        tables = old.sides[piece.side].table, new.sides[piece.side].table
        gone = _moved_rows(piece, recut, *tables)
        rows += sum(gone.values())
        size += piece.data.length * sum(gone.values()) / max(1, piece.rows)
        # With the topology `together`, both sides of a partition are one.
        table = LEFT if new.apart is None else piece.side
        partitions |= {(table, partition) for partition in gone}
    return {
        "partitions": len(partitions),
        "keys": len({cut.code for cut in plan.rewrites.cuts.get(name, ())} | _keys_moved(old, new)),
        "rows": rows,
        "bytes": int(size),
        "recut_seconds": max((report.seconds.recut for report in reports), default=0.0),
    }


def _moved_rows(
    piece: Piece,
    recut: Mapping[str, Sequence[tuple[int, int, int]]],
    old: Sequence[int],
    new: Sequence[int],
) -> dict[int, int]:
    """Per partition: rows that now belong to another instance."""
    gone: dict[int, int] = {}
    before = iter(piece.ranges)
    was, _, behind = next(before)
    # Cuts keep the order of rows, so one pass over both lists is enough.
    for partition, start, stop in recut.get(piece.name, piece.ranges):
        while start < stop:
            while behind <= start:
                was, _, behind = next(before)
            shared = min(stop, behind) - start
            if old[was] != new[partition]:
                gone[partition] = gone.get(partition, 0) + shared
            start += shared
    return gone


def _keys_moved(old: Routing, new: Routing) -> set[int]:
    """Keys with their own place before and after, on different instances."""
    return {
        code
        for one, other in zip(old.sides, new.sides, strict=True)
        for code, place in one.keys.items()
        if code in other.keys and one.on(place) != other.on(other.keys[code])
    }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
