"""The protocol of balancing strategies: a first assignment, and after each batch a new one or the same.

Strategies are frozen values. Their memory between batches goes in and out as plain JSON, so the manifest
can keep it and a replay decides the same. They never see a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from tidegate.route.assignment import Assignment
from tidegate.route.load import Load

#: The memory of a strategy as JSON; empty at the start of a query.
Memory = Mapping[str, Any]


@runtime_checkable
class Strategy(Protocol):
    """Telemetry in, routing decisions out; see the module docstring.

    `tg.Balance(strategy=…)` takes any object that keeps this protocol. `name`: what a strategy of another
    name remembered is not given to it.

    >>> class Still:
    ...     name = "still"
    ...
    ...     def first(self, partitions, instances):
    ...         return Assignment(instances, tuple(number % instances for number in range(partitions)))
    ...
    ...     def decide(self, load, current, memory):
    ...         return current, memory
    ...
    ...     def resize(self, load, current, instances):
    ...         return self.first(len(current.table), instances)
    >>> isinstance(Still(), Strategy)
    True
    """

    @property
    def name(self) -> str: ...

    def first(self, partitions: int, instances: int) -> Assignment:
        """The assignment of a query's first batch."""

    def decide(self, load: Load, current: Assignment, memory: Memory) -> tuple[Assignment, Memory]:
        """The assignment of the next batch, after one that ran under `current`.

        Returns `current` itself where nothing should move. The number of instances stays.
        """

    def resize(self, load: Load, current: Assignment, instances: int) -> Assignment:
        """The assignment on another number of instances, with as little movement as possible."""
