"""The `hash` strategy: every key stays where its hash puts it.

Paper: BiStream's hash partitioning, the baseline of FastJoin (sections I and II). The first table stands for
ever, so nothing ever moves, and an instance that got heavy keys stays heavy.

Guarantee: `decide` returns the assignment it was given. Only another number of instances moves partitions,
and then the fewest that leave every instance with the same number, give or take one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidegate.route.assignment import Assignment
from tidegate.route.hash_routing import first_table
from tidegate.route.load import Load
from tidegate.route.resizing import evened_table
from tidegate.route.strategy import Memory


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
