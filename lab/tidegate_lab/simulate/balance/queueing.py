"""Waiting times of rows: instances with one core each, a queue in front of each, first come, first served.

    arrivals     │  │││    │ │           A row starts when it has arrived, earlier rows are done and its
    in service      ████ ███ ██ ··· ███  instance is not paused, and leaves after its own service time.
    pause                       ▒▒▒

A pause is a migration: the instance finishes the present row and starts no other until the end of the pause
(FastJoin's algorithm 2; Ls-Stream's block, move, release). Rows that arrive meanwhile wait; none is lost.

Sojourn time is from arrival to the end of service. Per time step, rows count in the step of their arrival, so
that a queue shows where it is caused, and every row counts once.

Guarantee: exact for the rows given (no steps, no averages), and the same rows give the same times. Only the
arrivals are random, by the caller's generator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate.kernels import compiled


@dataclass(frozen=True)
class Pause:
    """An instance takes no new row from `begin` to `end` (seconds)."""

    instance: int
    begin: float
    end: float


@dataclass(frozen=True)
class Latency:
    """Sojourn times per time step; not a number where no row came."""

    #: Where each step begins, in seconds.
    begins: NDArray[np.float64]
    rows: NDArray[np.int64]
    mean: NDArray[np.float64]
    p95: NDArray[np.float64]
    max: NDArray[np.float64]


def sojourn_times(
    arrivals: NDArray[np.float64],
    services: NDArray[np.float64],
    instances: NDArray[np.int64],
    pauses: Sequence[Pause] = (),
) -> NDArray[np.float64]:
    """Seconds that each row stays; arrivals ascend, row k takes `services[k]` seconds of `instances[k]`."""
    if not arrivals.size == services.size == instances.size:
        raise FlowError(
            "Each row needs a time, a service time and an instance",
            code="LAB_QUEUE_LENGTHS_DIFFER",
            got=f"{arrivals.size}, {services.size} and {instances.size} of them",
        )
    if (np.diff(arrivals) < 0).any() or (services < 0).any() or (instances < 0).any():
        raise FlowError(
            "Rows must come in the order of time, with service times and instances of 0 or more",
            code="LAB_QUEUE_ORDER_INVALID",
            why="Who comes first is served first",
        )
    number = 1 + max(int(instances.max(initial=-1)), *(pause.instance for pause in pauses), -1)
    bounds, begins, ends = _pauses_by_instance(pauses, number)
    return _serve(
        np.ascontiguousarray(arrivals, np.float64),
        np.ascontiguousarray(services, np.float64),
        np.ascontiguousarray(instances, np.int64),
        bounds,
        begins,
        ends,
    )


def latency_per_step(
    arrivals: NDArray[np.float64], sojourns: NDArray[np.float64], step: float, seconds: float
) -> Latency:
    """Mean, 95th percentile (nearest rank) and largest sojourn time of the rows that come in each step."""
    steps = max(1, int(np.ceil(seconds / step - 1e-9)))
    label = np.minimum((arrivals / step).astype(np.int64), steps - 1)
    rows = np.bincount(label, minlength=steps)
    ordered = sojourns[np.lexsort((sojourns, label))]
    ends = np.cumsum(rows)
    some = rows > 0
    mean, p95, largest = (np.full(steps, np.nan) for _ in range(3))
    mean[some] = np.bincount(label, weights=sojourns, minlength=steps)[some] / rows[some]
    p95[some] = ordered[(ends - rows + np.ceil(0.95 * rows).astype(np.int64) - 1)[some]]
    largest[some] = ordered[ends[some] - 1]
    return Latency(step * np.arange(steps, dtype=np.float64), rows, mean, p95, largest)


def random_arrivals(
    rates: NDArray[np.float64], seconds: float, generator: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rows that come at random (Poisson), so many a second for each source: times, ascending, and sources."""
    counts = generator.poisson(rates * seconds)
    times = generator.uniform(0.0, seconds, int(counts.sum()))
    sources = np.repeat(np.arange(rates.size), counts)
    order = np.argsort(times, kind="stable")
    return times[order], sources[order]


def _pauses_by_instance(
    pauses: Sequence[Pause], instances: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Pauses of instance i, by their begin: bounds[i] … bounds[i + 1] - 1."""
    ordered = sorted(pauses, key=lambda pause: (pause.instance, pause.begin))
    numbers = np.array([pause.instance for pause in ordered], np.int64)
    bounds = np.searchsorted(numbers, np.arange(instances + 1)).astype(np.int64)
    begins = np.array([pause.begin for pause in ordered], np.float64)
    ends = np.array([pause.end for pause in ordered], np.float64)
    return bounds, begins, ends


@compiled
def _serve(
    arrivals: NDArray[np.float64],
    services: NDArray[np.float64],
    instances: NDArray[np.int64],
    bounds: NDArray[np.int64],
    begins: NDArray[np.float64],
    ends: NDArray[np.float64],
) -> NDArray[np.float64]:
    sojourns = np.empty(arrivals.size)
    free = np.zeros(bounds.size - 1)
    # Pauses that are over for all rows to come are never looked at again: starts only ever grow.
    following = bounds[:-1].copy()
    for row in range(arrivals.size):
        instance = instances[row]
        start = max(arrivals[row], free[instance])
        while following[instance] < bounds[instance + 1] and begins[following[instance]] <= start:
            start = max(start, ends[following[instance]])
            following[instance] += 1
        free[instance] = start + services[row]
        sojourns[row] = free[instance] - arrivals[row]
    return sojourns
