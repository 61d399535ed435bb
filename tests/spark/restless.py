"""A strategy that never lets anything rest: after every batch partitions, keys and splits lie elsewhere.

What it decides depends on the batch alone, so a run that is killed and begun again moves the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidegate.route.assignment import Assignment
from tidegate.route.hash_routing import first_table
from tidegate.route.load import Load
from tidegate.route.strategy import Memory


@dataclass(frozen=True)
class Restless:
    """Every batch: all partitions one instance further, watched keys on one instance, on two, on none.

    Two stand in a row and in a column by turns.
    """

    @property
    def name(self) -> str:
        return "restless"

    def first(self, partitions: int, instances: int) -> Assignment:
        return Assignment(instances, first_table(partitions, instances))

    def decide(self, load: Load, current: Assignment, memory: Memory) -> tuple[Assignment, Memory]:
        turn, n = load.batch, current.instances
        table = tuple((owner + 1) % n for owner in current.table)
        keys = {}
        for number, code in enumerate(load.codes.tolist()):
            width = (turn + number) % 3
            if width:
                keys[code] = tuple((turn + number + i) % n for i in range(min(width, n)))
        columns = {code: 2 for code, places in keys.items() if len(places) == 2 and turn % 2}
        return replace(current, table=table, keys=keys, columns=columns), {"turn": turn}

    def resize(self, load: Load, current: Assignment, instances: int) -> Assignment:
        return self.first(len(current.table), instances)
