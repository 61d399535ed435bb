"""Which instances get a copy of a new row, row by row: what `spark/routed.py` must say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.route.targets import MEET, PROBE, STORE, Tables
from tidegate.routing import Routing
from tidegate.values import LEFT, RIGHT


@dataclass(frozen=True)
class Copies:
    """Row rows[i] goes to instance instances[i], which does roles[i] with it."""

    rows: NDArray[np.int64]
    instances: NDArray[np.int64]
    roles: NDArray[np.int8]


def copies(
    codes: NDArray[np.uint64],
    lots: NDArray[np.int64],
    side: int,
    routing: Routing,
    partitions: int,
    *,
    keyless: bool = False,
    semi: bool = False,
) -> Copies:
    """The copies of new rows of one side; `lots` are any numbers that tell rows apart."""
    tables = [Tables.of(routing, part, partitions) for part in (LEFT, RIGHT)]
    mine, other = tables[side], tables[1 - side]
    own = mine.place_of(codes, partitions, keyless)
    theirs = other.place_of(codes, partitions, keyless)
    store = np.array([mine.stores[p][lot % len(mine.stores[p])] for p, lot in zip(own, lots, strict=True)])
    roles: dict[tuple[int, int], int] = {}
    for row in range(len(codes)):
        roles[row, int(store[row])] = STORE
        looks = other.holds[theirs[row]]
        if semi and side == LEFT:
            looks = (int(store[row]),) if routing.apart is None else (looks[lots[row] % len(looks)],)
        for instance in looks:
            roles[row, instance] = roles.get((row, instance), 0) | PROBE
        for instance in mine.holds[own[row]] if semi and side == RIGHT else ():
            roles[row, instance] = roles.get((row, instance), 0) | MEET
    where = np.array(list(roles), np.int64).reshape(-1, 2)
    return Copies(where[:, 0], where[:, 1], np.array(list(roles.values()), np.int8))
