"""A strategy that writes down what it was told and what it answered, for what a trace does not keep.

Wrapped around any strategy it decides the same. For each decision it keeps what every instance had stored
and seen, and which keys then went from where to where: enough to say how long rows waited (`waiting.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tidegate.route.assignment import Assignment
from tidegate.route.fastjoin.candidates import candidates
from tidegate.route.fastjoin.imbalance import InstanceWork, instance_work, key_places
from tidegate.route.load import Load
from tidegate.route.strategy import Memory, Strategy

if TYPE_CHECKING:
    from numpy.typing import NDArray


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


@dataclass
class Recorded:
    """Delegates; `decisions` come in the order of the calls: batch by batch, and in it group by group."""

    strategy: Strategy
    decisions: list[Decision] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.strategy.name

    def first(self, partitions: int, instances: int) -> Assignment:
        return self.strategy.first(partitions, instances)

    def decide(self, load: Load, current: Assignment, memory: Memory) -> tuple[Assignment, Memory]:
        after, memory = self.strategy.decide(load, current, memory)
        before_at, _ = key_places(load.codes, load.homes, current)
        after_at, _ = key_places(load.codes, load.homes, after)
        moved = np.flatnonzero(before_at != after_at)
        work = instance_work(load, current)
        self.decisions.append(
            Decision(
                batch=load.batch,
                work=work,
                givers=before_at[moved],
                takers=after_at[moved],
                rows=load.keys.stored[:, moved].sum(axis=0),
                keys=np.bincount(before_at[before_at >= 0], minlength=current.instances),
                unmovable=_unmovable(load, work, before_at),
            )
        )
        return after, memory

    def resize(self, load: Load, current: Assignment, instances: int) -> Assignment:
        return self.strategy.resize(load, current, instances)


def _unmovable(load: Load, work: InstanceWork, places: NDArray[np.int64]) -> float:
    giver, taker = int(work.loads.argmax()), int(work.loads.argmin())
    there = load.keys.at(places == giver)
    keys = candidates(work, giver, taker, there)
    large = there.at(keys.benefits >= keys.gap)
    return float(large.stored.sum(axis=1) @ large.probes.sum(axis=1))
