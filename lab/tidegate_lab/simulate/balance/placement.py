"""Where an assignment stores rows, as flat arrays, and how many of them another assignment moves.

A *unit* is what an assignment places: each partition, then each key with a place of its own. A unit on k
instances has k entries, each with 1/k of its stored rows. That is the mean when rows are stored by a hash;
using the mean makes runs exact, without random variation. In the grid of a key with r rows and c columns, an
entry is visited by 1/r of the new left rows and reads 1/r of the stored ones; of right rows 1/c.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.route.assignment import Assignment
from tidegate.route.hash_routing import partition_of


@dataclass(frozen=True)
class Placement:
    """One entry per unit and instance that it lies on; see the module docstring."""

    instances: int
    partitions: int
    #: Entry → its unit, its instance, and the part of the unit's stored rows that lie there.
    unit: NDArray[np.int64]
    instance: NDArray[np.int64]
    share: NDArray[np.float64]
    #: Shape (2, entries), by side: the part of the unit's new rows that look for partners there, and the part
    #: of its stored rows that are seen there.
    comes: NDArray[np.float64]
    seen: NDArray[np.float64]
    #: Key → its unit.
    unit_of_key: NDArray[np.int64]
    #: Keys with a place of their own that are known to the stream, ascending.
    own: NDArray[np.int64]
    units: int

    def per_unit(self, of_keys: NDArray[np.int64]) -> NDArray[np.float64]:
        """Sums over the keys of each unit."""
        return np.bincount(self.unit_of_key, of_keys, self.units).astype(np.float64)

    def per_instance(self, of_entries: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums over the entries of each instance."""
        return np.bincount(self.instance, of_entries, self.instances).astype(np.float64)


def place(assignment: Assignment, codes: NDArray[np.uint64]) -> Placement:
    """The placement of the keys with these ascending codes."""
    partitions = len(assignment.table)
    owned = sorted(assignment.keys)
    keys, known = _numbers(owned, codes)
    unit_of_key = partition_of(codes, partitions)
    unit_of_key[keys[known]] = partitions + np.flatnonzero(known)
    table = np.array(assignment.table, np.int64)
    spread = (table[:, None] + np.arange(assignment.spread)) % assignment.instances
    sizes = np.array([len(assignment.keys[code]) for code in owned], np.int64)
    places = np.array([one for code in owned for one in assignment.keys[code]], np.int64)
    columns = np.array([assignment.columns.get(code, 1) for code in owned], np.int64)
    lines = 1 / np.repeat(np.stack([sizes // columns, columns]), sizes, axis=1)
    alone = np.ones((2, spread.size))
    return Placement(
        instances=assignment.instances,
        partitions=partitions,
        unit=np.concatenate(
            [
                np.repeat(np.arange(partitions), assignment.spread),
                np.repeat(partitions + np.arange(len(owned)), sizes),
            ]
        ),
        instance=np.concatenate([spread.ravel(), places]),
        share=np.concatenate(
            [np.full(spread.size, 1 / assignment.spread), np.repeat(1 / np.maximum(sizes, 1), sizes)]
        ),
        comes=np.concatenate([alone, lines], axis=1),
        seen=np.concatenate([alone / assignment.spread, lines], axis=1),
        unit_of_key=unit_of_key,
        own=keys[known],
        units=partitions + len(owned),
    )


@dataclass(frozen=True)
class Migration:
    """What a change of the assignment moves."""

    #: Stored rows that change their instance. Of a unit on several instances, the least that leaves its rows
    #: evenly spread; hence not a whole number.
    rows: float
    #: Partitions that lie elsewhere, and keys that got, changed or lost a place of their own.
    partitions: int
    keys: int


def migration(
    before: Assignment, after: Assignment, codes: NDArray[np.uint64], stored: NDArray[np.int64]
) -> Migration:
    """What moves, given the stored rows of each key."""
    gone = _moved_shares(before, after)
    homes = partition_of(codes, len(before.table))
    shares = gone[homes]
    touched = sorted(before.keys.keys() | after.keys.keys())
    changed = [code for code in touched if before.keys.get(code) != after.keys.get(code)]
    keys, known = _numbers(touched, codes)
    shares[keys[known]] = 0.0
    keys, known = _numbers(changed, codes)
    for code, key in zip(np.array(changed, np.uint64)[known].tolist(), keys[known].tolist(), strict=True):
        home = int(homes[key])
        was = before.keys.get(code) or before.instances_of(home)
        now = after.keys.get(code) or after.instances_of(home)
        shares[key] = 1 - len(set(was) & set(now)) * min(1 / len(was), 1 / len(now))
    return Migration(float(shares @ stored), int(np.count_nonzero(gone)), len(changed))


def _moved_shares(before: Assignment, after: Assignment) -> NDArray[np.float64]:
    """Per partition, the part of its rows that changes its instance."""
    same = (before.instances, before.spread) == (after.instances, after.spread)
    first, second = np.array(before.table, np.int64), np.array(after.table, np.int64)
    offsets = (first[:, None] + np.arange(before.spread)) % before.instances
    behind = (offsets - second[:, None]) % after.instances
    stays = (behind < after.spread) & (offsets < after.instances)
    kept = stays.sum(axis=1) * min(1 / before.spread, 1 / after.spread)
    return np.where(same & (first == second), 0.0, 1 - kept)


def _numbers(codes: list[int], known: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The number of each code's key, and whether the stream has it at all."""
    wanted = np.array(codes, np.uint64)
    places = np.searchsorted(known, wanted)
    inside = places < known.size
    found = inside.copy()
    found[inside] = known[places[inside]] == wanted[inside]
    return places, found
