"""The strategies that never move anything: `hash`, `random` and `contrand`, the baselines of the papers.

`hash`: every key stays where its hash puts it. Paper: BiStream's hash partitioning, the baseline of
FastJoin (sections I and II). The first table is final, so an instance with heavy keys stays heavy.
Guarantee: `decide` returns the assignment it was given. Only another number of instances moves partitions,
and then the fewest that leave every instance with the same number, give or take one.

`random`: a row is stored on any instance and probes all of them. Paper: random partitioning, as FastJoin
(sections I and II) describes it for its predecessors. The balance is perfect for any keys, at the cost of the
most work: every new row visits every instance. Guarantee: every instance stores the same share of every key.
Nothing moves while the number of instances stays; another number redistributes all state.

`contrand`: hash to a subgroup of instances, store anywhere inside it, probe all of it. Paper:
BiStream-ContRand, the second baseline of FastJoin (sections II and VI). A hot key is shared by `group`
instances; the price is that every row, hot or not, visits `group` instances. The paper does not print its
subgroup size; our default is 4.
Where `group` divides the number of instances, the subgroups are disjoint, as in BiStream. Otherwise they
overlap, each a step of gcd(instances, group) behind the one before it and wrapping around, so that every
instance still serves equally many subgroups:

    10 instances, group 4    0 1 2 3        step 2: five subgroups,
                                 2 3 4 5    every instance in two of them
                                     …
                             0 1 ─────── 8 9

A group of more instances than exist is all of them: the `random` strategy. Guarantee: every row is stored
once and visits exactly `group` instances; nothing moves while the number of instances stays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from tidegate.errors import FlowError
from tidegate.route.assignment import Assignment
from tidegate.route.hash_routing import check_instances, first_table
from tidegate.route.load import Load
from tidegate.route.resizing import evened_table
from tidegate.route.strategy import Memory


@dataclass(frozen=True)
class RandomSpread:
    """No knobs: see the module docstring."""

    @property
    def name(self) -> str:
        return "random"

    def first(self, partitions: int, instances: int) -> Assignment:
        check_instances(partitions, instances)
        # All partitions start at one instance, and all instances after it share every partition.
        return Assignment(instances, first_table(partitions, 1), spread=instances)

    def decide(self, load: Load, current: Assignment, memory: Memory) -> tuple[Assignment, Memory]:
        return current, memory

    def resize(self, load: Load, current: Assignment, instances: int) -> Assignment:
        return self.first(len(current.table), instances)


@dataclass(frozen=True)
class HashOnly:
    """No knobs: see the module docstring."""

    @property
    def name(self) -> str:
        return "hash"

    def first(self, partitions: int, instances: int) -> Assignment:
        return Assignment(instances, first_table(partitions, instances))

    def decide(self, load: Load, current: Assignment, memory: Memory) -> tuple[Assignment, Memory]:
        return current, memory

    def resize(self, load: Load, current: Assignment, instances: int) -> Assignment:
        return replace(current, instances=instances, table=evened_table(current.table, instances))


@dataclass(frozen=True)
class ContRandStrategy:
    """A larger group shares hot keys among more instances, and makes every row visit more of them."""

    group: int = 4
    #: The number of subgroups, which gives their size once the number of instances is known; None: `group`.
    groups: int | None = None

    def __post_init__(self) -> None:
        if self.group < 1:
            raise FlowError(
                "A subgroup of contrand needs at least one instance",
                code="BALANCE_SETTING_INVALID",
                got=f"group {self.group}",
                do="Give 1 (the same as hash) or more",
            )

    @property
    def name(self) -> str:
        return "contrand"

    def first(self, partitions: int, instances: int) -> Assignment:
        check_instances(partitions, instances)
        spread, step = self._shape(instances)
        subgroups = first_table(partitions, instances // step)
        return Assignment(instances, tuple(step * subgroup for subgroup in subgroups), spread)

    def decide(self, load: Load, current: Assignment, memory: Memory) -> tuple[Assignment, Memory]:
        return current, memory

    def resize(self, load: Load, current: Assignment, instances: int) -> Assignment:
        """Keep partitions whose first instance still starts a subgroup, as far as the counts stay even."""
        check_instances(len(current.table), instances)
        spread, step = self._shape(instances)
        subgroups = [first // step if first % step == 0 else -1 for first in current.table]
        table = tuple(step * subgroup for subgroup in evened_table(subgroups, instances // step))
        return Assignment(instances, table, spread)

    def _shape(self, instances: int) -> tuple[int, int]:
        """Instances in a subgroup, and from the start of one subgroup to the next."""
        group = self.group if self.groups is None else -(-instances // self.groups)
        spread = min(group, instances)
        return spread, math.gcd(spread, instances)
