"""What one batch asks of the instances of a join, and what each instance counts."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.join.selective.reach import Ages, ages_of
from tidegate.join.selective.selection import GROUPS
from tidegate.model.debts import Debt, DebtRepair
from tidegate.model.reports import ProbeCounts
from tidegate.model.skip_plan import Skipping
from tidegate.model.times import END_US, LEFT, RIGHT
from tidegate.window.drop.intervals import Intervals
from tidegate.worker.runtime.layout import JoinLayout
from tidegate.worker.runtime.stage_file import Kept
from tidegate.worker.runtime.state_order import StateOrder


@dataclass(frozen=True)
class JoinWork:
    """The work order of one batch for every instance of a join; sent to the workers."""

    layout: JoinLayout
    state: StateOrder
    #: Per side: rows below this are late.
    late_before_us: tuple[int, int]
    #: Per side: rows above this are rejected, because one wrong clock must not expire all state.
    newest_us: tuple[int, int] = (END_US, END_US)
    #: Local folder of the state, where results are staged; None: they return through Spark.
    stage_root: str | None = None
    #: How staged files that stay as an output are written; None: they are read once and deleted.
    kept_as: Kept | None = None
    #: What may be skipped; None: nothing is, and candidates are not counted.
    skipping: Skipping | None = None
    seed: int = 0
    #: Load balancing is on, so the report lists the heaviest keys.
    watch_keys: bool = False
    #: Per side: times of rows that a kept window after the join may need; None: all.
    needed: tuple[Intervals | None, Intervals | None] = (None, None)
    #: Debts of earlier batches that this batch repairs.
    repairs: tuple[tuple[Debt, DebtRepair], ...] = ()
    #: Per side: rows from this time on are needed by a debt.
    debts_since_us: tuple[int, int] = (END_US, END_US)

    def alive_from_us(self, side: int) -> int:
        """Rows below this time are no longer needed."""
        return min(self.layout.within.dead_before(side, self.state.settle_us), self.debts_since_us[side])


#: Activities of an instance: handling rows; probing, which can be skipped in part; repairing.
KEEPING, PROBING, REPAIRING = "keeping", "looking", "paying"


class JoinCounts:
    """Counts of an instance for its report: per side, in total, per partition, and per basic window."""

    def __init__(self, layout: JoinLayout) -> None:
        self.offered, self.late, self.rejected, self.keyless = [0, 0], [0, 0], [0, 0], [0, 0]
        self.dropped, self.stale = [0, 0], [0, 0]
        self.seen_us: list[int | None] = [None, None]
        self.emitted = 0
        #: Probes that a key filter avoided.
        self.spared = 0
        #: Processor time by activity.
        self.seconds = dict.fromkeys((KEEPING, PROBING, REPAIRING), 0.0)
        self._doing = KEEPING
        self.repaired_comparisons, self.repaired_matches = 0.0, 0
        #: The cost of content-aware probes, in comparisons.
        self.charged: float = 0.0
        self._since = 0.0
        self.probed, self.comparisons, self.matches = np.zeros((3, layout.partitions), np.int64)
        #: New rows that were stored, left and right.
        self.stored: NDArray[np.int64] = np.zeros((2, layout.partitions), np.int64)
        self.probes: tuple[ProbeCounter, ...] = tuple(
            ProbeCounter(ages_of(layout.within, side)) for side in (LEFT, RIGHT)
        )

    def begin(self) -> None:
        """Start measuring processor time."""
        self._since = time.thread_time()

    def lap(self) -> None:
        """Add the time since the last measurement to the present activity."""
        now = time.thread_time()
        self.seconds[self._doing] += now - self._since
        self._since = now

    def turn_to(self, doing: str) -> None:
        """Switch to another activity."""
        self.lap()
        self._doing = doing


class ProbeCounter:
    """Probes of new rows into the stored rows of one side, and their matches."""

    def __init__(self, ages: Ages) -> None:
        self.ages = ages
        self.candidates: NDArray[np.float64] = np.zeros(ages.count)
        #: By rows that follow the plan, and by exploring rows.
        self.seen: NDArray[np.float64] = np.zeros((2, ages.count))
        self.matches: NDArray[np.float64] = np.zeros((2, ages.count))
        #: Rows that probed while some were a sample; the sampled rows and their matches, by group.
        self.rows = 0
        self.sample: NDArray[np.int64] = np.zeros(GROUPS, np.int64)
        self.sampled: NDArray[np.int64] = np.zeros((ages.count, GROUPS), np.int64)

    def count_rows(self, rows: int, groups: NDArray[np.int64]) -> None:
        self.rows += rows
        self.sample += np.bincount(groups, minlength=GROUPS)

    def count_sampled(self, age: int, groups: NDArray[np.int64]) -> None:
        self.sampled[age] += np.bincount(groups, minlength=GROUPS)

    def counted(self) -> ProbeCounts:
        chosen, explored = (tuple(np.rint(seen).astype(int).tolist()) for seen in self.seen)
        return ProbeCounts(
            candidates=tuple(np.rint(self.candidates).astype(int).tolist()),
            chosen=chosen,
            chosen_matches=tuple(self.matches[0].tolist()),
            explored=explored,
            explored_matches=tuple(self.matches[1].tolist()),
            rows=self.rows,
            sample=tuple(self.sample.tolist()) if self.rows else (),
            sampled=tuple(map(tuple, self.sampled.tolist())) if self.rows else (),
        )
