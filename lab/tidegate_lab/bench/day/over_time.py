"""Classifies the results of a day: on time, overdue or never written; and how many are missing at any moment.

A result belongs to the tick of its later row. It is on time if it is committed within the goal after that
tick arrived. Overdue and missing results both count as loss; an engine that never sheds has only the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate_lab.bench.day.recorded import Recorded
from tidegate_lab.workloads.day_answer import Answer

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Fate:
    """By tick: results that there are, that came in time, and that came later."""

    exact: Ints
    in_time: Ints
    too_late: Ints

    @property
    def short(self) -> Ints:
        """What was not there in time."""
        return np.asarray(self.exact - self.in_time)

    @property
    def never(self) -> Ints:
        return np.asarray(self.short - self.too_late)


def fate_of(run: Recorded, answer: Answer, goal_seconds: float, until: float = inf) -> Fate:
    """Results of ticks that came in, as far as they were committed until then."""
    ticks = len(run.arrived)
    found = np.zeros((2, ticks), np.int64)
    for batch in run.batches:
        if batch.told.ended <= until:
            for tick, results, _ in batch.found:
                found[int(batch.told.ended - run.arrived[tick] > goal_seconds), tick] += results
    return Fate(answer.results[:ticks], found[0], found[1])


def right_share(run: Recorded, answer: Answer, until: float = inf) -> float | None:
    """The part of the exact answer that was there by then: 1 if all of it was, once, and nothing else."""
    found = np.zeros((2, answer.results.size), np.int64)
    for batch in run.batches:
        if batch.told.ended <= until:
            for tick, results, checksum in batch.found:
                found[:, tick] += results, checksum
    same = (found[0] == answer.results) & (found[1] == answer.checksums)
    missing = np.abs(answer.results - found[0])
    # As many as there should be, and not the same: all of them are doubtful.
    wrong = np.where(same, 0, np.where(missing == 0, answer.results, missing))
    total = int(answer.results.sum())
    return 1.0 - float(wrong.sum()) / total if total else None


def overdue(run: Recorded, answer: Answer, goal_seconds: float) -> tuple[NDArray[np.float64], Ints]:
    """Moments at which it changes, and how many results are not there although the goal has passed."""
    fate = fate_of(run, answer, goal_seconds)
    due = [(arrived + goal_seconds, int(n)) for arrived, n in zip(run.arrived, fate.short, strict=True)]
    late = [
        (batch.told.ended, -results)
        for batch in run.batches
        for tick, results, _ in batch.found
        if batch.told.ended - run.arrived[tick] > goal_seconds
    ]
    changes = np.array(sorted(due + late), np.float64)
    return changes[:, 0], np.cumsum(changes[:, 1]).astype(np.int64)


def exact_from(run: Recorded, answer: Answer, goal_seconds: float) -> float | None:
    """From which moment on nothing was overdue; None if something was to the end."""
    at, missing = overdue(run, answer, goal_seconds)
    short = np.flatnonzero(missing)
    if not short.size:
        return 0.0
    return None if short[-1] == missing.size - 1 else float(at[short[-1] + 1])


def binned(at: Any, values: Any, seconds: float, width: float) -> tuple[list[float], NDArray[np.float64]]:
    """Sums of values by time, and the middles of the bins."""
    edges = np.arange(0.0, seconds + width, width)
    sums, _ = np.histogram(np.asarray(at, np.float64), edges, weights=np.asarray(values, np.float64))
    return ((edges[:-1] + edges[1:]) / 2).tolist(), sums
