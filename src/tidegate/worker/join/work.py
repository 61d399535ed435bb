"""What one batch asks of the instances of a join, and what each of them counts."""

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
from tidegate.worker.runtime.state_order import StateOrder


@dataclass(frozen=True)
class JoinWork:
    """What one batch asks of every instance of a join; travels to the workers."""

    layout: JoinLayout
    state: StateOrder
    #: Per side: rows below this are late.
    late_before_us: tuple[int, int]
    #: Per side: rows above this are rejected, because one bad clock must not expire everything.
    newest_us: tuple[int, int] = (END_US, END_US)
    #: Folder of the state on this machine, where results are staged; None: they go back through Spark.
    stage_root: str | None = None
    #: Compression of staged files that stay as an output; None: they are read once and deleted.
    kept_as: str | None = None
    #: What may be left out; None: nothing is, and nobody counts what could be.
    skipping: Skipping | None = None
    seed: int = 0
    #: Somebody balances the load and wants to know which keys make it.
    watch_keys: bool = False
    #: Per side: times of rows that a kept window behind the join may need; None: all.
    needed: tuple[Intervals | None, Intervals | None] = (None, None)
    #: Owed work of earlier batches that is done in this one.
    repairs: tuple[tuple[Debt, DebtRepair], ...] = ()
    #: Per side: rows from here on are needed by somebody who owes.
    debts_since_us: tuple[int, int] = (END_US, END_US)

    def alive_from_us(self, side: int) -> int:
        """Rows below this time are needed by nobody any more."""
        return min(self.layout.within.dead_before(side, self.state.settle_us), self.debts_since_us[side])


#: What an instance does: with rows, which come, go and find out where to look; with pairs, of which fewer may
#: be looked at; and with pairs that earlier batches owe.
KEEPING, PROBING, REPAIRING = "keeping", "looking", "paying"


class JoinCounts:
    """What the instance did, for its report: per side, in all, per partition, and per basic window."""

    def __init__(self, layout: JoinLayout) -> None:
        self.offered, self.late, self.rejected, self.keyless = [0, 0], [0, 0], [0, 0], [0, 0]
        self.dropped, self.stale = [0, 0], [0, 0]
        self.seen_us: list[int | None] = [None, None]
        self.emitted = 0
        #: Looks that a key filter made unnecessary.
        self.spared = 0
        #: Processor time by what was done: of the batch's own work, and of owed work.
        self.seconds = dict.fromkeys((KEEPING, PROBING, REPAIRING), 0.0)
        self._doing = KEEPING
        self.repaired_comparisons, self.repaired_matches = 0.0, 0
        #: What rows that chose by content are charged for, in comparisons.
        self.charged = 0.0
        self._since = 0.0
        self.probed, self.comparisons, self.matches = np.zeros((3, layout.partitions), np.int64)
        #: New rows that were stored, left and right.
        self.stored: NDArray[np.int64] = np.zeros((2, layout.partitions), np.int64)
        self.probes = tuple(ProbeCounter(ages_of(layout.within, side)) for side in (LEFT, RIGHT))

    def begin(self) -> None:
        """From now on processor time is ours."""
        self._since = time.thread_time()

    def lap(self) -> None:
        """Count the time since the last look at the clock."""
        now = time.thread_time()
        self.seconds[self._doing] += now - self._since
        self._since = now

    def turn_to(self, doing: str) -> None:
        """What is done from now on."""
        self.lap()
        self._doing = doing


class ProbeCounter:
    """What new rows looked at in the stored rows of one side, and what they found."""

    def __init__(self, ages: Ages) -> None:
        self.ages = ages
        self.candidates: NDArray[np.float64] = np.zeros(ages.count)
        #: As the plan says, and exploring.
        self.seen: NDArray[np.float64] = np.zeros((2, ages.count))
        self.matches: NDArray[np.float64] = np.zeros((2, ages.count))
        #: Rows that looked while some of them were a sample; those of the sample and their matches, by group.
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
