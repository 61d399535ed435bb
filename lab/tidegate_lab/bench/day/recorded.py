"""The record of a day under one contender, batch by batch, as plain data.

Seconds count from the beginning of the day. Latency is from the arrival of a row's file to the commit of the
batch that processed it. Rows still unprocessed when the run ends count as processed then, which is a lower
bound. The first tick does not count, because it includes the warm-up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.cli.demo.arrivals import ticks_taken
from tidegate_lab.workloads.day import Day


@dataclass(frozen=True)
class BatchOutcome:
    """What an engine says of one of its batches."""

    number: int
    began: float
    #: When its results were committed.
    ended: float
    left_rows: int
    rows: int
    #: Pairs that were compared, where the engine counts them.
    compared: int = 0
    #: r in force; None for an engine that never leaves out work.
    fraction: float | None = None
    #: Pairs that were skipped, rows that were dropped, rows that came too late for their watermark.
    skipped: int = 0
    dropped: int = 0
    late: int = 0
    #: Heaviest instance over an even share.
    imbalance: float | None = None
    #: Pairs still owed after it, and pairs made up for in it.
    owed: int = 0
    repaid: int = 0
    #: Seconds that the goal took to keep, and processor time of all tasks.
    goal_seconds: float = 0.0
    task_seconds: float = 0.0
    #: What the controller foresaw and decided after it, where there is one.
    decided: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Batch:
    """One batch of a day."""

    told: BatchOutcome
    #: Which ticks it took, and how many left rows of each.
    taken: tuple[tuple[int, int], ...]
    #: Which ticks its results belong to: tick, results, checksum.
    found: tuple[tuple[int, int, int], ...]

    @property
    def results(self) -> int:
        return sum(results for _, results, _ in self.found)

    @property
    def repairs(self) -> bool:
        """Does it make up for what was left out?

        Results of earlier ticks do not say so: where one stream was let in faster than the other, the second
        row of a pair may come a batch later than the tick it counts for.
        """
        return bool(self.told.repaid)


@dataclass(frozen=True)
class Recorded:
    """A whole day under one contender."""

    contender: str
    day: Day
    #: When each tick came in, and how many left rows it had.
    arrived: tuple[float, ...]
    tick_rows: tuple[int, ...]
    batches: tuple[Batch, ...]
    #: When the run was ended.
    ended: float

    def waits(self, batches: Iterable[Batch] | None = None) -> NDArray[np.float64]:
        """Pairs (seconds, left rows), as rows of an array: how long how many waited."""
        chosen = self.batches if batches is None else batches
        waits = [(b.told.ended - self.arrived[tick], rows) for b in chosen for tick, rows in b.taken if tick]
        if batches is None:
            waits += [(self.ended - self.arrived[tick], rows) for tick, rows in self.left_over()]
        return np.array(waits, np.float64).reshape(-1, 2)

    def left_over(self) -> list[tuple[int, int]]:
        """Ticks that came in and were not taken, with their rows."""
        rows = np.array(self.tick_rows[: len(self.arrived)])
        for batch in self.batches:
            for tick, taken in batch.taken:
                rows[tick] -= taken
        return [(int(tick), int(rows[tick])) for tick in np.flatnonzero(rows > 0)]

    def latency(self, batch: Batch) -> float | None:
        """The wait that 95 % of the rows of a batch do not exceed; None without rows."""
        return percentile(self.waits([batch]), 95)

    def between(self, begin: float, end: float = inf) -> list[Batch]:
        """Batches that began in this time."""
        return [batch for batch in self.batches if begin <= batch.told.began < end]


def percentile(waits: NDArray[np.float64], share: float) -> float | None:
    """The wait that `share` percent of the rows do not exceed."""
    order = np.argsort(waits[:, 0])
    upto = np.cumsum(waits[order, 1])
    if not upto.size or not upto[-1]:
        return None
    return float(waits[order[np.searchsorted(upto, upto[-1] * share / 100)], 0])


def recorded(
    contender: str,
    day: Day,
    moments: Sequence[float],
    tick_rows: NDArray[np.int64],
    told: Iterable[BatchOutcome],
    found: dict[int, tuple[tuple[int, int, int], ...]],
    stopped: float,
    tick_seconds: float,
) -> Recorded:
    """From clock times to times of the day, which begins a tick before the second one."""
    start = moments[1] - tick_seconds if len(moments) > 1 else moments[0]
    batches, so_far = [], 0
    for one in sorted(told, key=lambda one: one.number):
        taken = ticks_taken(tick_rows, so_far, one.left_rows)
        so_far += one.left_rows
        said = replace(one, began=one.began - start, ended=one.ended - start)
        batches.append(Batch(said, taken, found.get(one.number, ())))
    arrived = tuple(moment - start for moment in moments)
    return Recorded(contender, day, arrived, tuple(tick_rows.tolist()), tuple(batches), stopped - start)
