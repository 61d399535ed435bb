"""The decision of a strategy: partition → instance, and the few keys that have a place of their own.

    key ──▶ a place of its own? ──yes──▶ the instances listed for it
                  │no
                  ▼
            partition (hash_routing.py) ──▶ its instance, or `spread` consecutive instances

Where a partition lies on several instances, one of them stores each of its rows, and each row probes all of
them. The instances of a key form a grid, and its rows go to a row or a column of it (`model/routing.py`).
Strategies decide an assignment; `moves.py` determines which stored rows move to carry it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import REPORT_STATE_BUG, FlowError


@dataclass(frozen=True)
class Assignment:
    """The decision of a strategy; see the module docstring.

    >>> Assignment(instances=2, table=(0, 1, 0, 1)).spread
    1
    """

    instances: int
    #: Partition → instance; with `spread` > 1, the first of the instances that share the partition.
    table: tuple[int, ...]
    #: Instances that share each partition: table[p], table[p] + 1, … (modulo `instances`).
    spread: int = 1
    #: Key code → the instances its rows lie on. One: the key was moved; several: it is split.
    keys: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    #: Code of a split key → columns of the grid of its instances, in any order; not listed: one.
    columns: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.instances < 1:
            raise FlowError(
                "An operator needs at least one instance",
                code="BALANCE_INSTANCES_INVALID",
                got=self.instances,
                do="Give instances=1 or more",
            )
        if not 1 <= self.spread <= self.instances:
            raise FlowError(
                "The spread of partitions must be between 1 and the number of instances",
                code="INTERNAL_ROUTING_INVALID",
                got=f"spread {self.spread}, {self.instances} instances",
                do=REPORT_STATE_BUG,
            )
        owners = (*self.table, *(one for places in self.keys.values() for one in places))
        if owners and not (0 <= min(owners) and max(owners) < self.instances):
            raise FlowError(
                "A partition or key is routed to an instance that does not exist",
                code="INTERNAL_ROUTING_INVALID",
                got=f"instances {min(owners)} to {max(owners)}, {self.instances} exist",
                do=REPORT_STATE_BUG,
            )
        if any(not places or len(set(places)) < len(places) for places in self.keys.values()):
            raise FlowError(
                "A split key needs at least one instance, and each instance once",
                code="INTERNAL_ROUTING_INVALID",
                do=REPORT_STATE_BUG,
            )
        for code, columns in self.columns.items():
            if columns < 1 or code not in self.keys or len(self.keys[code]) % columns:
                raise FlowError(
                    "The instances of a split key do not fill the columns of its grid",
                    code="INTERNAL_ROUTING_INVALID",
                    got=f"{columns} columns, instances {self.keys.get(code, ())}",
                    do=REPORT_STATE_BUG,
                )

    @property
    def entries(self) -> int:
        """Size of the routing table: partitions and keys listed in it."""
        return len(self.table) + len(self.keys)

    def listed(self, codes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """For each code its number among `keys`, in their order; -1 where the key has no place of its own."""
        if not self.keys or codes.size == 0:
            return np.full(codes.size, -1, np.int64)
        own = np.fromiter(self.keys, np.uint64, len(self.keys))
        order = np.argsort(own)
        near = order[np.minimum(np.searchsorted(own, codes, sorter=order), own.size - 1)]
        return np.where(own[near] == codes, near, -1)

    def instances_of(self, partition: int) -> tuple[int, ...]:
        """The instances that a partition lies on."""
        first = self.table[partition]
        return tuple((first + j) % self.instances for j in range(self.spread))
