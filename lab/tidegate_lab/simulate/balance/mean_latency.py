"""Mean latency of each batch, at any input rate, in closed form: for sweeps over hundreds of runs.

Paper: FastJoin, sections III-D and VI-A: latency is the time from a row's arrival at an instance to the end
of its comparisons. An instance makes a fixed number of comparisons per second; a row is compared with all
rows stored there.

    latency = waiting for work left over   what did not fit into earlier batches, and pauses (a fluid queue)
            + waiting within the batch     ρ·s / 2(1 − ρ): random arrivals, each row takes s (an M/D/1 queue)
            + s                            its own comparisons

Algorithm 2: both instances of a migration stop while keys are chosen and their rows are sent. So both begin
the next batch with a pause.

`row_latency.py` computes the exact latency of each row, but only at the original rate; a test compares both.

Guarantee: nothing is timed or drawn; equal decisions give equal latencies. The queue of an instance that
is busy for longer than the batch lasts grows without bound.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tidegate_lab.simulate.balance.instance_speed import Speed
from tidegate_lab.simulate.balance.recorded import Decision

#: The formula of the queue within a batch has no end at ρ = 1; beyond this the fluid queue tells the story.
_BUSY_MOST = 0.95


def mean_latencies(groups: Sequence[Sequence[Decision]], speed: Speed, rate: float) -> NDArray[np.float64]:
    """Mean seconds of a row's latency in each batch, at `rate` times the input rate of the decisions."""
    waited = np.zeros(len(groups[0]))
    probes = np.zeros(len(groups[0]))
    for decisions in groups:
        backlog = np.zeros(decisions[0].work.loads.size)
        pause = np.zeros_like(backlog)
        for batch, decision in enumerate(decisions):
            work = speed.comparison * rate**2 * decision.work.loads
            rows = rate * decision.work.probes.sum(axis=0)
            start = backlog + pause
            own = work / np.maximum(rows, 1e-12)
            busy = np.minimum(work, _BUSY_MOST)
            latency = _mean_backlog(start, work) + own * (1 + busy / (2 * (1 - busy)))
            waited[batch] += float(latency @ rows)
            probes[batch] += float(rows.sum())
            backlog = np.maximum(start + work - 1, 0)
            pause = pauses(decision, speed, rate)
    return waited / np.maximum(probes, 1e-12)


def pauses(decision: Decision, speed: Speed, rate: float) -> NDArray[np.float64]:
    """Seconds that each instance stops after this decision (algorithm 2)."""
    stopped = np.zeros(decision.keys.size)
    if decision.givers.size == 0:
        return stopped
    pairs = np.unique(np.stack([decision.givers, decision.takers]), axis=1).T
    for giver, taker in pairs.tolist():
        between = (decision.givers == giver) & (decision.takers == taker)
        choosing = float(decision.keys[giver]) * speed.chosen_key
        sending = rate * float(decision.rows[between].sum()) * speed.moved_row
        stopped[[giver, taker]] += choosing + sending
    return stopped


def _mean_backlog(start: NDArray[np.float64], work: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over a batch of a backlog that begins at `start` and changes by `work` − 1, but not below zero."""
    growth = work - 1
    end = start + growth
    empty_after = np.where(growth < 0, start / np.maximum(-growth, 1e-12), np.inf)
    return np.where(end > 0, (start + end) / 2, start * np.minimum(empty_after, 1.0) / 2)
