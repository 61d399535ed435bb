"""The counted work of probes: comparisons without an index, else list entries read and lists looked up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegate.join.sets.inverted_lists import PreparedLists
from tidegate.join.sets.item_sets import ItemSets
from tidegate.join.sets.pair_finders import PreparedSets, checked_ranges, range_lengths


def probe_cost(
    prepared: PreparedSets, probing: ItemSets, starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The work of each probing row, in its range of stored rows."""
    if not isinstance(prepared, PreparedLists):
        return range_lengths(starts, ends)
    starts, ends = checked_ranges(probing, prepared.stored, starts, ends)
    begins, stops = prepared.parts(probing, starts, ends)
    looked_up = np.repeat(starts < ends, np.diff(probing.bounds))
    running = np.concatenate((np.zeros(1, np.int64), np.cumsum(stops - begins + looked_up)))
    return np.diff(running[probing.bounds])
