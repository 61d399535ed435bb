"""What is read off a run: the rate that the heaviest sustains, imbalance, and latency.

Throughput (the papers' "system bottleneck"): the highest input rate at which the heaviest instance keeps up.
Work is comparisons and grows with the square of the rate, so it is rate · √(capacity / heaviest work).

Capacity, comparisons per second of an instance (or node), is the one number taken from the paper: BiStream
sustains what its text says in one setting of a figure. It scales all systems alike; no ratio depends on it.

Latency is comparing and waiting, in queues of one-core instances, row by row. The paper's milliseconds
have network and Storm in them, ours do not: compare ratios. A migrated row takes 10 µs to send (100
bytes at 100 Mbit/s), and its old instance pauses for so long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from statistics import median
from typing import TypeVar

import numpy as np

from tidegate_lab.plots.plots import Curve
from tidegate_lab.reproduce.ls_stream.streams import WINDOWS, arrivals
from tidegate_lab.reproduce.ls_stream.systems import Run, System
from tidegate_lab.simulate.balance.instance_speed import Speed
from tidegate_lab.simulate.balance.queueing import Latency, latency_per_step
from tidegate_lab.simulate.balance.row_latency import row_latencies

MOVED_ROW_SECONDS = 1e-5
_Place = TypeVar("_Place", int, float)


def imbalance(run: Run) -> float:
    """LI of equation 13, on average once settled, in the load of the system's own cost model."""
    return float(run.trace.deviations()[run.source.settled :].mean())


def sustained(run: Run, capacity: float, nodes: int | None = None) -> float:
    """Rows per second; with `nodes`, instances share nodes and the busiest node decides."""
    if nodes is None:
        return run.trace.throughput(capacity, run.source.settled)
    rates = []
    for batch in run.trace.batches[run.source.settled :]:
        busy = np.bincount(np.arange(run.instances) % nodes, weights=batch.work, minlength=nodes)
        rates.append(batch.rows * np.sqrt(capacity / busy.max()))
    return float(np.mean(rates))


def capacity_for(runs: Sequence[Run], rate: float, nodes: int | None = None) -> float:
    """The capacity with which these runs sustain `rate`, in the median."""
    return (rate / median(sustained(run, 1.0, nodes) for run in runs)) ** 2


@lru_cache(maxsize=256)
def latency(run: Run, capacity: float) -> Latency:
    """Per second, from the first row on; rows count where they come."""
    speed = Speed(1 / capacity, MOVED_ROW_SECONDS)
    times, found = row_latencies(
        arrivals(run.source),
        list(run.assignments),
        WINDOWS,
        speed,
        run.source.seed,
        run.system.by_partition,
    )
    return latency_per_step(times, found, 1.0, float(run.source.batches))


def mean_ms(run: Run, capacity: float) -> float:
    """Average latency of a row once settled."""
    found = latency(run, capacity)
    rows = found.rows[run.source.settled :]
    return 1e3 * float(np.average(found.mean[run.source.settled :], weights=rows))


def longest_ms(run: Run, capacity: float) -> float:
    """The longest that any row took once settled."""
    return 1e3 * float(latency(run, capacity).max[run.source.settled :].max())


def ratios(value: Callable[[Run], float], runs: Sequence[Run], over: Sequence[Run]) -> list[float]:
    """What is read off one's runs over what is read off another's, seed by seed."""
    return [value(one) / value(two) for one, two in zip(runs, over, strict=True)]


def median_curves(
    systems: Sequence[System],
    places: Sequence[_Place],
    found: Callable[[System, _Place], Iterable[float]],
    x: Sequence[float] | None = None,
) -> list[Curve]:
    """A curve per system: at each place the median of what seeds gave; `x` where that is not the place."""
    return [
        Curve(
            system.name,
            places if x is None else x,
            [median(found(system, place)) for place in places],
            "points",
            colour=system.colour,
        )
        for system in systems
    ]
