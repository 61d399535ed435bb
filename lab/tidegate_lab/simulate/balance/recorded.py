"""A strategy wrapper that records decisions and, optionally, their reasons, which a trace does not keep.

It decides as the wrapped strategy does. The assignments are the input of `row_latency.py`. With `detailed` it
also keeps, for each decision, what every instance stored and received, and which keys moved from where to
where: the input of `mean_latency.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tidegate.route.assignment import Assignment
from tidegate.route.fastjoin.greedy_fit import candidates
from tidegate.route.fastjoin.imbalance import SPLIT, InstanceWork, instance_work, key_places
from tidegate.route.load import Load, LoadWork
from tidegate.route.strategy import Memory, Strategy


@dataclass(frozen=True)
class Decision:
    """One batch of one group of instances, and what moved after it."""

    batch: int
    work: InstanceWork
    #: Whose keys moved to whom, and their stored rows: arrays of one length, a moved key each.
    givers: NDArray[np.int64]
    takers: NDArray[np.int64]
    rows: NDArray[np.int64]
    #: Keys that each instance has: those that a choice must look at.
    keys: NDArray[np.int64]
    #: The load that the heaviest instance would have with nothing but the keys that are too large for its gap
    #: to the lightest: what no migration of whole keys could take from it.
    unmovable: float = 0.0
    #: What each instance would have stored and seen, had the keys lain where they went (but for keys that are
    #: or were split); None: nothing moved.
    moved_work: InstanceWork | None = None

    @property
    def loads_after(self) -> NDArray[np.float64]:
        """L_i of each instance, had the batch run under the assignment that follows from it."""
        return (self.work if self.moved_work is None else self.moved_work).loads


@dataclass
class Recorded:
    """Delegates; all lists are in the order of the calls: batch by batch, and in it group by group.

    With one group, `assignments[b]` is the one that batch b runs under.
    """

    strategy: Strategy
    detailed: bool = False
    assignments: list[Assignment] = field(default_factory=list)
    #: Empty unless `detailed`.
    decisions: list[Decision] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.strategy.name

    def first(self, partitions: int, instances: int) -> Assignment:
        self.assignments.append(self.strategy.first(partitions, instances))
        return self.assignments[-1]

    def decide(self, load: Load, current: Assignment, memory: Memory) -> tuple[Assignment, Memory]:
        after, memory = self.strategy.decide(load, current, memory)
        self.assignments.append(after)
        if self.detailed:
            self.decisions.append(_decision(load, current, after))
        return after, memory

    def resize(self, load: Load, current: Assignment, instances: int) -> Assignment:
        self.assignments[-1] = self.strategy.resize(load, current, instances)
        return self.assignments[-1]


def _decision(load: Load, current: Assignment, after: Assignment) -> Decision:
    before_at, _ = key_places(load.codes, load.homes, current)
    after_at = before_at if after is current else key_places(load.codes, load.homes, after)[0]
    moved = np.flatnonzero(before_at != after_at)
    work = instance_work(load, current)
    return Decision(
        batch=load.batch,
        work=work,
        givers=before_at[moved],
        takers=after_at[moved],
        rows=load.keys.stored[:, moved].sum(axis=0),
        keys=np.bincount(before_at[before_at >= 0], minlength=current.instances),
        unmovable=_unmovable(load, work, before_at),
        moved_work=_shifted(work, load.keys.at(moved), before_at[moved], after_at[moved]),
    )


def _shifted(
    work: InstanceWork, keys: LoadWork, givers: NDArray[np.int64], takers: NDArray[np.int64]
) -> InstanceWork | None:
    """The work of instances after keys went from some to others, each whole."""
    whole = (givers != SPLIT) & (takers != SPLIT)
    if not whole.any():
        return None
    keys, givers, takers = keys.at(whole), givers[whole], takers[whole]
    after = InstanceWork(work.stored.copy(), work.probes.copy())
    for sums, counts in ((after.stored, keys.stored), (after.probes, keys.probes)):
        for side in (0, 1):
            np.subtract.at(sums[side], givers, counts[side])
            np.add.at(sums[side], takers, counts[side])
    return after


def _unmovable(load: Load, work: InstanceWork, places: NDArray[np.int64]) -> float:
    giver, taker = int(work.loads.argmax()), int(work.loads.argmin())
    there = load.keys.at(places == giver)
    keys = candidates(work, giver, taker, there)
    large = there.at(keys.benefits >= keys.gap)
    return float(large.stored.sum(axis=1) @ large.probes.sum(axis=1))
