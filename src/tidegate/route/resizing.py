"""Another number of instances, with the least partitions moved: who gives and who takes.

Counts are what is evened out, as `hash.first_table` does it: each instance ends with the same number of
partitions, give or take one. Partitions of instances that are gone must move; others move only from an
instance that has more than its share. No table with such counts can be reached with fewer moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tidegate.errors import FlowError, explain

if TYPE_CHECKING:
    from numpy.typing import NDArray


def evened_table(table: Sequence[int], instances: int) -> tuple[int, ...]:
    """The table for `instances` instances; a number outside of them (-1, or one that is gone) is homeless."""
    partitions = len(table)
    if not 1 <= instances <= partitions:
        raise FlowError(
            explain(
                "The number of instances must be between one and the number of partitions",
                got=f"{instances} instances, {partitions} partitions",
                why="An instance without a partition would never have work",
                do="Use fewer instances, or start the query with more partitions",
            )
        )
    owners = np.array(table, np.int64)
    housed = (owners >= 0) & (owners < instances)
    have = np.bincount(owners[housed], minlength=instances)
    share = _shares(have, partitions)
    leaves = ~housed
    leaves[housed] = _rank_within(owners[housed]) >= share[owners[housed]]
    owners[leaves] = np.repeat(np.arange(instances), np.maximum(share - have, 0))
    return tuple(owners.tolist())


def _shares(have: NDArray[np.int64], partitions: int) -> NDArray[np.int64]:
    """How many each instance shall have; one extra goes to those who have the most, so that fewer move."""
    share = np.full(have.size, partitions // have.size, np.int64)
    share[np.argsort(-have, kind="stable")[: partitions % have.size]] += 1
    return share


def _rank_within(owners: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each partition's place among those of the same instance: 0, 1, …"""
    order = np.argsort(owners, kind="stable")
    ordered = owners[order]
    ranks = np.empty(owners.size, np.int64)
    ranks[order] = np.arange(owners.size) - np.searchsorted(ordered, ordered)
    return ranks
