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

from collections.abc import Sequence
from functools import lru_cache
from statistics import median

import numpy as np

from tidegate.papers.experiments.experiment import Line
from tidegate.papers.experiments.ls_stream.streams import WINDOWS, arrivals
from tidegate.papers.experiments.ls_stream.systems import Run
from tidegate.sim.instance_speed import Speed
from tidegate.sim.queueing import Latency, latency_per_step
from tidegate.sim.row_latency import row_latencies

MOVED_ROW_SECONDS = 1e-5


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


def gain_line(
    figure: str, claim: str, paper: str, ratios: Sequence[float], *, least: float | None = None
) -> Line:
    """Ratios of two throughputs, told as "times"; `least` is what agrees with the paper."""
    middle = median(ratios)
    spread = f" ({min(ratios):.2f} to {max(ratios):.2f})" if len(ratios) > 1 else ""
    agrees = None if least is None else middle >= least
    return Line(figure, claim, paper, f"{middle:.2f} ×{spread}", middle, "×", tuple(ratios), agrees)


def less_line(
    figure: str, claim: str, paper: str, ratios: Sequence[float], *, most: float | None = None
) -> Line:
    """Ratios of two latencies, told as a change in per cent; `most` is the ratio that agrees."""
    middle = median(ratios)
    change, low, high = (round(100 * (ratio - 1)) for ratio in (middle, min(ratios), max(ratios)))
    spread = f" ({low:+d} to {high:+d})" if len(ratios) > 1 else ""
    agrees = None if most is None else middle <= most
    return Line(figure, claim, paper, f"{change:+d} %{spread}", middle, "× as long", tuple(ratios), agrees)
