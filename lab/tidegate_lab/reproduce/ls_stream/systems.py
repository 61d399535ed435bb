"""The systems that Ls-Stream is compared with, each in the cost model of its paper, and a run of one.

    BiStream              hash routing             a row is compared with all stored rows of its instance
    BiStream-ContRand     subgroups of two         … of two instances, each with half of the rows
    FastJoin              keys move                … of its instance
    Ls-Stream             partitions move          … of its partition only (equations 9 and 10)

So Ls-Stream gains twice: by routing, and by looking at less. `BY_PARTITION`, hash routing that looks at
partitions as Ls-Stream does, tells the two apart; it is no system of the paper.

The paper prints neither partitions per instance (16 here; `beyond.py` has others) nor subgroups' sizes;
larger subgroups do worse in this cost model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from tidegate.route.assignment import Assignment
from tidegate.route.baselines import ContRandStrategy, HashOnly
from tidegate.route.fastjoin.strategy import FastJoinStrategy
from tidegate.route.ls_stream.strategy import LsStreamStrategy
from tidegate.route.strategy import Strategy
from tidegate_lab.reproduce.ls_stream.streams import WINDOWS, Source, arrivals
from tidegate_lab.simulate.balance.join_costs import (
    ComparedWithInstance,
    ComparedWithPartition,
    Indexed,
    JoinCosts,
)
from tidegate_lab.simulate.balance.join_trace import JoinTrace
from tidegate_lab.simulate.balance.recorded import Recorded
from tidegate_lab.simulate.balance.skewed_join import SkewedJoin, simulate

PARTITIONS_EACH = 16


@dataclass(frozen=True)
class System:
    """A strategy, and what its comparisons are counted as."""

    name: str
    strategy: Strategy
    costs: JoinCosts
    colour: int
    #: Only FastJoin needs to know every key.
    watch_share: float = 0.01

    @property
    def by_partition(self) -> bool:
        return isinstance(self.costs, ComparedWithPartition)


_INSTANCE, _PARTITION = ComparedWithInstance(), ComparedWithPartition()
BISTREAM = System("BiStream", HashOnly(), _INSTANCE, 7)
CONTRAND = System("BiStream-ContRand", ContRandStrategy(2), _INSTANCE, 4)
FASTJOIN = System("FastJoin", FastJoinStrategy(), _INSTANCE, 1, watch_share=0.0)
LS_STREAM = System("Ls-Stream", LsStreamStrategy(), _PARTITION, 0)
BY_PARTITION = System("BiStream, by partition", HashOnly(), _PARTITION, 2)
SYSTEMS = (BISTREAM, CONTRAND, FASTJOIN, LS_STREAM)


def ls_stream(alpha: float) -> System:
    """Ls-Stream with another threshold."""
    return System(f"Ls-Stream, α = {alpha:g}", LsStreamStrategy(alpha=alpha), _PARTITION, LS_STREAM.colour)


def indexed(system: System) -> System:
    """The same strategy where rows find their partners by key, as our kernels do."""
    return replace(system, costs=Indexed())


@dataclass(frozen=True, eq=False)
class Run:
    """What a system did: counted work, and the assignment of every batch. Equal only to itself."""

    system: System
    source: Source
    instances: int
    trace: JoinTrace
    assignments: tuple[Assignment, ...]


@lru_cache(maxsize=1024)
def run(system: System, source: Source, instances: int = 20, partitions_each: int = PARTITIONS_EACH) -> Run:
    """One run; the same system on the same streams is measured once for all figures."""
    recorded = Recorded(system.strategy)
    join = SkewedJoin(
        instances=instances,
        partitions=instances * partitions_each,
        windows=WINDOWS,
        costs=system.costs,
        watch_share=system.watch_share,
    )
    trace = simulate(arrivals(source), recorded, join)
    return Run(system, source, instances, trace, tuple(recorded.assignments))
