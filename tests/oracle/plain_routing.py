"""Which instances get a copy of a new row, row by row: what `driver/frames/routing_frames.py` must say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.model.routing import Place, Placement, Routing
from tidegate.model.times import LEFT, RIGHT
from tidegate.route.hash_routing import partition_of
from tidegate.route.targets import MEET, PROBE, STORE


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
    mine, other = routing.sides[side], routing.sides[1 - side]
    roles: dict[tuple[int, int], int] = {}
    for row, (code, lot) in enumerate(zip(codes.tolist(), lots.tolist(), strict=True)):
        own, theirs = (place_of(code, placement, partitions, keyless) for placement in (mine, other))
        grid, look = _grid(mine, own, semi), _grid(other, theirs, semi)
        cells = [mine.table[partition] for partition in own.stores]
        if grid is not None and side == LEFT:
            # Column by column: the next lot is another row of the grid.
            cells = [row[column] for column in range(len(grid[0])) for row in grid]
        roles[row, cells[lot % len(cells)]] = STORE
        # Without a grid all that may hold partners are looked at.
        for instance in other.on(theirs) if look is None else _line(look, side, lot):
            roles[row, instance] = roles.get((row, instance), 0) | PROBE
        if side == RIGHT and grid is not None:
            for instance in _line(grid, RIGHT, lot):
                roles[row, instance] = roles.get((row, instance), 0) | MEET
    where = np.array(list(roles), np.int64).reshape(-1, 2)
    return Copies(where[:, 0], where[:, 1], np.array(list(roles.values()), np.int8))


def place_of(code: int, placement: Placement, partitions: int, keyless: bool = False) -> Place:
    """The place of a key."""
    home = int(partition_of(np.array([code], np.uint64), partitions)[0])
    own = None if keyless else placement.keys.get(code)
    return own or placement.base(home)


def _grid(placement: Placement, place: Place, semi: bool) -> list[list[int]] | None:
    """The instances of a place, row by row."""
    named = place in placement.places
    columns = 1 if semi and named else place.columns
    cells = [placement.table[partition] for partition in place.stores]
    return [cells[at : at + columns] for at in range(0, len(cells), columns)] if columns else None


def _line(grid: list[list[int]], side: int, lot: int) -> list[int]:
    """The row of the grid that a left row takes, or the column that a right one does."""
    return grid[lot % len(grid)] if side == LEFT else [row[lot % len(row)] for row in grid]
