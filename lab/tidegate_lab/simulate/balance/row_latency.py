"""The latency of each row of a routed join: every row with its own visits, in the queues of `queueing.py`.

    simulate(…, Recorded(strategy)) ─▶ an assignment per batch ─▶ row_latencies ─▶ queues

A row arrives at a random moment of its batch and visits the instances that store its key's partition. Each
compares it with stored rows of the other side, of the whole instance or of the partition only, which takes
service time. The row is done when its last visit is. Storing is free, as in the papers' cost model.

A migration pauses the instances that give rows away, at the beginning of the first batch under the new
assignment, for as long as their rows take to send. A partition or key on several instances counts as its
first one there.

Exact, but only at the original rate; `mean_latency.py` gives means at any rate.

Guarantee: the same arrivals, assignments and seed give the same times; service times are not random.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.route.assignment import Assignment
from tidegate_lab.simulate.balance.instance_speed import Speed
from tidegate_lab.simulate.balance.key_counts import Arrivals, Window
from tidegate_lab.simulate.balance.placement import Placement, place
from tidegate_lab.simulate.balance.queueing import Pause, sojourn_times


def row_latencies(
    arrivals: Arrivals,
    assignments: list[Assignment],
    windows: tuple[int | None, int | None],
    speed: Speed,
    seed: int = 0,
    by_partition: bool = False,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Arrival time and latency of every row, in the order of arrival.

    With `by_partition` a row is compared with stored rows of its partition only, not of the whole instance.
    """
    generator = np.random.default_rng(seed)
    batches = list(_batches(arrivals, assignments, windows, speed, by_partition, generator))
    times = np.concatenate([batch.times for batch in batches])
    visits = np.concatenate([batch.visits for batch in batches])
    services = np.concatenate([batch.services for batch in batches])
    instances = np.concatenate([batch.instances for batch in batches])
    pauses = [pause for batch in batches for pause in batch.pauses]
    sojourns = sojourn_times(np.repeat(times, visits), services, instances, pauses)
    firsts = np.cumsum(visits) - visits
    return times, np.maximum.reduceat(sojourns, firsts) if times.size else times


@dataclass(frozen=True)
class _Batch:
    """Rows by arrival: when, and to how many instances; then all visits, row by row."""

    times: NDArray[np.float64]
    visits: NDArray[np.int64]
    services: NDArray[np.float64]
    instances: NDArray[np.int64]
    pauses: list[Pause]


def _batches(
    arrivals: Arrivals,
    assignments: list[Assignment],
    windows: tuple[int | None, int | None],
    speed: Speed,
    by_partition: bool,
    generator: np.random.Generator,
) -> Iterator[_Batch]:
    keys = arrivals.codes.size
    stored = [Window(keys, batches) for batches in windows]
    placement = place(assignments[0], arrivals.codes)
    for number, sides in enumerate(arrivals.batches):
        begin = float(number)
        before = placement
        if number > 0 and assignments[number] is not assignments[number - 1]:
            placement = place(assignments[number], arrivals.codes)
        held = stored[0].rows + stored[1].rows
        pauses = [] if placement is before else _pauses(before, placement, held, begin, speed)
        for window in stored:
            window.expire()
        # As `simulate` has it: right rows meet the left ones before the batch, left rows all right ones.
        left = stored[0].rows.copy()
        for window, side in zip(stored, sides, strict=True):
            window.add(side)
        seen = np.stack([stored[1].rows, left])
        who = [np.repeat(side.keys, side.rows) for side in sides]
        times = begin + generator.random(who[0].size + who[1].size)
        compared = np.stack([_compared(placement, rows, by_partition) for rows in seen])
        yield _visits(placement, who, times, speed.comparison * compared, pauses)


def _visits(
    placement: Placement,
    who: list[NDArray[np.int64]],
    times: NDArray[np.float64],
    takes: NDArray[np.float64],
    pauses: list[Pause],
) -> _Batch:
    """Rows of both sides in the order of their times, each at every entry of its unit.

    `takes`: (side, entry) → seconds of a visit there.
    """
    order = np.argsort(times, kind="stable")
    side = np.repeat([0, 1], [who[0].size, who[1].size])[order]
    unit = placement.unit_of_key[np.concatenate(who)[order]]
    first = np.searchsorted(placement.unit, np.arange(placement.units + 1))
    visits = np.diff(first)[unit]
    entry = np.repeat(first[unit] - (np.cumsum(visits) - visits), visits) + np.arange(visits.sum())
    services = takes[np.repeat(side, visits), entry]
    return _Batch(times[order], visits, services, placement.instance[entry], pauses)


def _compared(placement: Placement, rows: NDArray[np.int64], by_partition: bool) -> NDArray[np.float64]:
    """Stored rows that a visit at each entry is compared with."""
    here = placement.per_unit(rows)[placement.unit] * placement.share
    return here if by_partition else placement.per_instance(here)[placement.instance]


def _pauses(
    before: Placement, after: Placement, held: NDArray[np.int64], begin: float, speed: Speed
) -> list[Pause]:
    old, new = (
        placement.instance[np.searchsorted(placement.unit, placement.unit_of_key)]
        for placement in (before, after)
    )
    moved = old != new
    sent = np.bincount(old[moved], held[moved], before.instances)
    return [
        Pause(int(instance), begin, begin + float(sent[instance]) * speed.moved_row)
        for instance in np.flatnonzero(sent)
    ]
