"""The `fastjoin` strategy: keys move from the heaviest instance to the lightest when loads differ too much.

Paper: FastJoin, sections III-A to III-C and III-E. After every batch the monitor compares loads
(`imbalance.py`).
Where LI > Θ, the heaviest instance gives keys to the lightest: those that GreedyFit (or SAFit) chooses. One
pair of instances per batch, as in the paper. A key that moved has an entry of its own in the routing table.
A key that returns to the instance of its partition loses it, and when keys move, entries of keys without
rows are removed.

The paper keeps one monitor per group of instances, each for one direction of the join. Here a load may have
both directions (both sides of a key in one instance): they are added up, in L_i and in the benefits alike.

Guarantees: the giver stays at least as heavy as the taker, so a migration never moves too much. Sorted from
the heaviest on, the loads of an unchanged input decrease with every migration, so migrations end: with LI ≤
Θ, or with every watched key of the heaviest instance worth more than the whole gap to the lightest. Only
keys that the load lists can move.

Known limits, which are the paper's: a key is never split. While one key is most of the heaviest load, that
instance is the giver in every batch and gives only rare keys that newly hash to it. The others are never
relieved and stay as unequal as Θ allows. (Skipping the heaviest instance would delay its relief, and it
determines the throughput.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate.route.assignment import Assignment
from tidegate.route.fastjoin.greedy_fit import Candidates, candidates, greedy_fit
from tidegate.route.fastjoin.imbalance import InstanceWork, imbalance, instance_work, key_places
from tidegate.route.fastjoin.resizing import resized
from tidegate.route.fastjoin.sa_fit import BENEFIT, FACTOR, KeyAnnealing, sa_fit
from tidegate.route.fastjoin.sub_windows import SubWindows
from tidegate.route.hash_routing import first_table
from tidegate.route.load import Load
from tidegate.route.strategy import Memory

#: GreedyFit; SAFit as printed; and SAFit annealing on the sum of benefits.
GREEDY, ANNEALING, ANNEALING_SUM = "greedy", "annealing", "annealing-sum"
_VALUES = {ANNEALING: FACTOR, ANNEALING_SUM: BENEFIT}


@dataclass(frozen=True)
class FastJoinStrategy:
    """A lower `theta` balances more and moves more; `gap` excludes keys that would fill little of the gap."""

    #: Θ: the largest accepted ratio of the heaviest to the lightest load.
    theta: float = 2.2
    #: θ_gap, as a share of the gap between the two instances, independent of the scale of the load.
    gap: float = 0.0
    chooser: str = GREEDY
    #: Batches since the last migration over which loads are averaged before they are compared with Θ.
    sub_windows: int = 1
    #: Seed of the annealing.
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.theta >= 1:
            raise FlowError(
                "The imbalance threshold of fastjoin must be at least 1",
                code="BALANCE_SETTING_INVALID",
                got=f"theta {self.theta}",
                why="It is the heaviest load divided by the lightest",
                do="Give 1 or more; the paper uses 2.2",
            )
        if not 0 <= self.gap <= 1:
            raise FlowError(
                "The least benefit of a moved key must be between 0 and 1",
                code="BALANCE_SETTING_INVALID",
                got=f"gap {self.gap}",
                why="It is a share of the load difference between two instances",
                do="Give a number from 0 (any key may move) to 1 (none)",
            )
        if self.chooser not in (GREEDY, *_VALUES):
            raise FlowError(
                "Unknown key search of fastjoin",
                code="BALANCE_SETTING_INVALID",
                got=self.chooser,
                do=f"Use one of {', '.join((GREEDY, *_VALUES))}",
            )
        if self.seed < 0:
            raise FlowError(
                "The seed of fastjoin must not be negative",
                code="BALANCE_SETTING_INVALID",
                got=self.seed,
                do="Give 0 or more",
            )
        SubWindows(self.sub_windows)  # checks the number

    @property
    def name(self) -> str:
        return "fastjoin"

    def first(self, partitions: int, instances: int) -> Assignment:
        return Assignment(instances, first_table(partitions, instances))

    def decide(self, load: Load, current: Assignment, memory: Memory) -> tuple[Assignment, Memory]:
        work = instance_work(load, current)
        recent = self._recent(memory, current.instances).push(np.stack((work.stored, work.probes)))
        remembered = {"recent": recent.to_json()} if self.sub_windows > 1 else {}
        if imbalance(InstanceWork(*recent.mean()).loads) <= self.theta:
            return current, remembered
        loads = work.loads
        giver, taker = int(loads.argmax()), int(loads.argmin())
        places, _ = key_places(load.codes, load.homes, current)
        there = np.flatnonzero(places == giver)
        keys = candidates(work, giver, taker, load.keys.at(there))
        moving = there[self._choose(keys, load.batch)]
        if moving.size == 0:
            return current, remembered
        # Loads from before a migration do not predict those after it.
        return _moved(load, current, moving, taker), {}

    def resize(self, load: Load, current: Assignment, instances: int) -> Assignment:
        return resized(load, current, instances)

    def _choose(self, keys: Candidates, batch: int) -> NDArray[np.int64]:
        if self.chooser == GREEDY:
            return greedy_fit(keys, self.gap * keys.gap)
        able = np.flatnonzero(keys.benefits >= self.gap * keys.gap)
        allowed = Candidates(keys.benefits[able], keys.rows[able], keys.gap)
        settings = KeyAnnealing(value=_VALUES[self.chooser])
        return able[sa_fit(allowed, settings, np.random.default_rng([self.seed, batch]))]

    def _recent(self, memory: Memory, instances: int) -> SubWindows:
        recent = SubWindows.from_json(self.sub_windows, memory.get("recent", ()))
        same = all(counts.shape[-1] == instances for counts in recent.counts)
        return recent if same else SubWindows(self.sub_windows)


def _moved(load: Load, current: Assignment, moving: NDArray[np.int64], taker: int) -> Assignment:
    """The assignment with these keys on the taker."""
    gone = (load.keys.stored.sum(axis=0) == 0) & (load.keys.probes.sum(axis=0) == 0)
    table = np.asarray(current.table, np.int64)
    home_again = table[load.homes[moving]] == taker
    keys = dict(current.keys)
    for code in (*load.codes[gone].tolist(), *load.codes[moving[home_again]].tolist()):
        keys.pop(code, None)
    keys.update(dict.fromkeys(load.codes[moving[~home_again]].tolist(), (taker,)))
    return replace(current, keys=keys)
