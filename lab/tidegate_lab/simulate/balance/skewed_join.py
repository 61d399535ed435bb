"""A partitioned windowed join of two streams under any routing strategy, with counted cost.

    batch b     expire ─▶ probe, store ─▶ count ─▶ Load ─▶ strategy.decide ─▶ migrate ─▶ batch b + 1

Both streams arrive batch by batch as counts of keys (`key_counts.py`). New left rows probe the stored right
rows and the new ones; new right rows probe the left rows stored before the batch: each pair is found once, as
in the engine. The assignment determines where rows are stored (`placement.py`); the cost model is a value
(`join_costs.py`). Between batches the strategy gets the same report as from the engine.

Co-located: one group of instances serves both directions. Biclique: half of the instances store left rows
and are probed by right ones, the other half the other way round; each group has an assignment of its own.

Guarantee: which pairs are found does not depend on the strategy. The same arrivals, settings and seed give
the same trace; the seed is only used for the noise of measured seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tidegate.control.balance.skew_scan import loads_ahead
from tidegate.errors import FlowError
from tidegate.join.within import Unbounded, Within
from tidegate.route.assignment import Assignment
from tidegate.route.auto.strategy import Auto
from tidegate.route.hash_routing import partition_of
from tidegate.route.key_counts import SideCount, SideSeen
from tidegate.route.load import Load, LoadWork
from tidegate.route.strategy import Memory, Strategy
from tidegate_lab.simulate.balance.join_costs import Done, Indexed, JoinCosts
from tidegate_lab.simulate.balance.join_trace import JoinBatch, JoinTrace, Share
from tidegate_lab.simulate.balance.key_counts import Arrivals, Counted, Window
from tidegate_lab.simulate.balance.placement import Migration, migration, place

_SECOND_US = 1_000_000


@dataclass(frozen=True)
class SkewedJoin:
    """What is simulated."""

    instances: int = 16
    partitions: int = 256
    #: Batches that a left and a right row stay; None: for ever.
    windows: tuple[int | None, int | None] = (10, 10)
    costs: JoinCosts = field(default_factory=Indexed)
    biclique: bool = False
    #: A key is watched if it has at least this share of a side's new rows, or a place of its own. With 0 all
    #: keys with new or stored rows are watched, as FastJoin wants it.
    watch_share: float = 0.001
    #: Seconds that a unit of work takes, those of an instance's batch whatever it does, and their relative
    #: noise; without seconds per work nothing is measured.
    seconds_per_work: float = 0.0
    seconds_fixed: float = 0.0
    noise: float = 0.0
    seed: int = 7
    #: The keys of the first batch are counted before any of its rows is stored, where a strategy asks for it.
    first_look: bool = False
    #: Before this batch → the number of instances changes to that.
    rescale: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        fewest = 2 if self.biclique else 1
        if min((self.instances, *self.rescale.values())) < fewest:
            raise FlowError(
                "Each group of a join needs at least one instance",
                code="LAB_INSTANCES_INVALID",
                got=f"{self.instances} instances, later {list(self.rescale.values())}",
                do=f"Give {fewest} or more",
            )


def simulate(arrivals: Arrivals, strategy: Strategy, join: SkewedJoin) -> JoinTrace:
    """Run the whole stream under a strategy."""
    keys = arrivals.codes.size
    windows = tuple(Window(keys, batches) for batches in join.windows)
    groups = [_Group(strategy, arrivals.codes, join, number) for number in range(1 + join.biclique)]
    if join.first_look and isinstance(strategy, Auto):
        for group, load in zip(groups, _ahead(arrivals, join), strict=True):
            group.begin(strategy.begin(load, group.assignment))
    batches: list[JoinBatch] = []
    for batch, sides in enumerate(arrivals.batches):
        new = np.stack([side.dense(keys) for side in sides])
        for window in windows:
            window.expire()
        before = windows[0].rows.copy()
        for window, side in zip(windows, sides, strict=True):
            window.add(side)
        stored = np.stack([window.rows for window in windows])
        did = _KeysDid(batch, new, np.stack([before, stored[1]]), stored)
        shares = tuple(group.run(did) for group in groups)
        pairs = int((did.seen * new[::-1]).sum())
        batches.append(JoinBatch(batch, int(new.sum()), int(stored.sum()), pairs, shares))
    return JoinTrace(tuple(batches))


def _ahead(arrivals: Arrivals, join: SkewedJoin) -> tuple[Load, ...]:
    """What a first look at the first batch tells the groups; a batch is a second."""
    left, right = (_first_seen(arrivals.codes, side, join.partitions) for side in arrivals.batches[0])
    # Of a side that is stored for n batches, new rows of the other meet n.
    windows = [_SECOND_US * batches if batches else None for batches in join.windows]
    ends = windows[0] is not None and windows[1] is not None
    within = Within(-(windows[1] or 0), windows[0] or 0) if ends else Unbounded()
    return loads_ahead((left, right), within, 1 + join.biclique)


def _first_seen(codes: NDArray[np.uint64], new: Counted, partitions: int) -> SideSeen:
    count = SideCount(partitions)
    count.add_counted(codes[new.keys], new.rows, (0, _SECOND_US))
    return count.seen()


@dataclass(frozen=True)
class _KeysDid:
    """One batch: (side, key) → new rows, stored rows that were looked at, stored rows afterwards."""

    batch: int
    new: NDArray[np.int64]
    seen: NDArray[np.int64]
    stored: NDArray[np.int64]

    def of(self, served: NDArray[np.int64]) -> tuple[_KeysDid, NDArray[np.int64], NDArray[np.int64]]:
        """What a group that stores only some sides sees of it; the rows that probe; the pairs found."""
        mine, probes = self, self.new[::-1]
        if not served.all():
            mine = _KeysDid(self.batch, self.new * served, self.seen * served, self.stored * served)
            probes = probes * served
        return mine, probes, (mine.seen * probes).sum(axis=0)


class _Group:
    """Instances that share one assignment."""

    def __init__(self, strategy: Strategy, codes: NDArray[np.uint64], join: SkewedJoin, number: int) -> None:
        self._strategy, self._codes, self._join, self._number = strategy, codes, join, number
        self._served = np.array([[1], [1]] if not join.biclique else [[1 - number], [number]])
        self._homes = partition_of(codes, join.partitions)
        self._random = np.random.default_rng([join.seed, number])
        self._assignment = strategy.first(join.partitions, self._size(join.instances))
        self._memory: Memory = {}
        self._placement = place(self._assignment, codes)
        self._moved: Migration | None = None

    @property
    def assignment(self) -> Assignment:
        """In force."""
        return self._assignment

    def begin(self, assignment: Assignment) -> None:
        """Another assignment before the first batch: nothing has to move for it."""
        self._assignment, self._placement = assignment, place(assignment, self._codes)

    def _size(self, instances: int) -> int:
        """The first group gets the odd instance."""
        return instances if not self._join.biclique else (instances + 1 - self._number) // 2

    def run(self, did: _KeysDid) -> Share:
        """Count what the batch costs here, then let the strategy decide on the next one."""
        mine, probes, matches = did.of(self._served)
        sums = self._placement.per_unit
        new = np.stack([sums(side) for side in did.new])
        done = Done(
            new=new * self._served,
            seen=np.stack([sums(side) for side in mine.seen]),
            probes=new[::-1] * self._served,
            matches=sums(matches),
        )
        cost = self._join.costs.work(done, self._placement)
        current = self._assignment
        split = sum(len(places) > 1 for places in current.keys.values())
        even = self._join.costs.even(done, current.instances)
        share = Share(cost, even, current.entries, split, self._moved)
        load = self._load(mine, done, LoadWork(mine.stored, probes, matches), share.work)
        self._decide(load, mine.stored)
        return share

    def _load(self, mine: _KeysDid, done: Done, keys: LoadWork, work: NDArray[np.float64]) -> Load:
        # The first units are the partitions, without the keys that have a place of their own.
        partitions = self._placement.partitions
        stored = np.stack([self._placement.per_unit(side)[:partitions] for side in mine.stored])
        base = (stored, done.probes[:, :partitions], done.matches[:partitions])
        watched = self._watched(mine, keys)
        return Load(
            batch=mine.batch,
            partitions=LoadWork(*(counts.astype(np.int64) for counts in base)),
            seconds=self._seconds(work),
            codes=self._codes[watched],
            homes=self._homes[watched],
            keys=keys.at(watched),
        )

    def _watched(self, mine: _KeysDid, keys: LoadWork) -> NDArray[np.int64]:
        chosen = np.zeros(self._codes.size, np.bool_)
        chosen[self._placement.own] = True
        if self._join.watch_share == 0:
            chosen |= np.any(keys.stored + keys.probes, axis=0)
        for rows in (*mine.new, *keys.probes) if self._join.watch_share > 0 else ():
            chosen |= rows >= max(1.0, self._join.watch_share * float(rows.sum()))
        return np.flatnonzero(chosen)

    def _seconds(self, work: NDArray[np.float64]) -> NDArray[np.float64]:
        if self._join.seconds_per_work == 0:
            return np.zeros(0)
        noise = np.exp(self._join.noise * self._random.standard_normal(work.size))
        return (self._join.seconds_fixed + self._join.seconds_per_work * work) * noise

    def _decide(self, load: Load, stored: NDArray[np.int64]) -> None:
        before = self._assignment
        after, self._memory = self._strategy.decide(load, before, self._memory)
        instances = self._join.rescale.get(load.batch + 1)
        if instances is not None and self._size(instances) != after.instances:
            after = self._strategy.resize(load, after, self._size(instances))
        self._moved = None
        if after is not before and after != before:
            self._moved = migration(before, after, self._codes, stored.sum(axis=0))
            self._assignment, self._placement = after, place(after, self._codes)
