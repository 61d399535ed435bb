"""The `random` strategy: rows are stored anywhere, and look for partners everywhere.

Paper: random partitioning, as FastJoin (sections I and II) describes it for its predecessors. Perfect balance
whatever the keys, and the most work: every new row visits every instance.

Guarantee: every instance stores the same share of every key. Nothing ever moves while the number of instances
stays; another number spreads all state anew.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.route.assignment import Assignment
from tidegate.route.hash_routing import check_instances, first_table
from tidegate.route.load import Load
from tidegate.route.strategy import Memory


@dataclass(frozen=True)
class RandomSpread:
    """No knobs: see the module docstring."""

    @property
    def name(self) -> str:
        return "random"

    def first(self, partitions: int, instances: int) -> Assignment:
        check_instances(partitions, instances)
        # One owner for all; that owner and all after it share every partition.
        return Assignment(instances, first_table(partitions, 1), spread=instances)

    def decide(self, load: Load, current: Assignment, memory: Memory) -> tuple[Assignment, Memory]:
        return current, memory

    def resize(self, load: Load, current: Assignment, instances: int) -> Assignment:
        return self.first(len(current.table), instances)
