"""A condition whose matches are known beforehand: for simulating joins on values that are costly to compare.

Which rows match does not change from run to run, only which of them are compared. So all pairs are found
once, with an index, and a simulated comparison only looks them up. It counts as much as any other comparison.

A row's join value is one word that identifies it: twice its position in its stream, plus 1 on the right side.

Guarantee: exactly the known pairs of the ranges given.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegate_lab.simulate.join.basic_windows import Ranges


def identities(rows: int, side: int) -> NDArray[np.uint64]:
    """Join values of all rows of a stream."""
    return (2 * np.arange(rows, dtype=np.uint64) + np.uint64(side))[None, :]


class KnownPairs:
    """Pairs (left place, right place) of two streams; any order."""

    def __init__(self, left: NDArray[np.int64], right: NDArray[np.int64], rows: tuple[int, int]) -> None:
        self._partners = _partners(left, right, rows[0]), _partners(right, left, rows[1])

    def count(
        self, probing: NDArray[np.uint64], stored: NDArray[np.uint64], ranges: Ranges
    ) -> NDArray[np.int64]:
        """Matches per probing row and range; stored rows lie in the order of their places."""
        counts = np.zeros(ranges.starts.shape, np.int64)
        end = int(ranges.ends.max(initial=0))
        if probing.shape[1] == 0 or end == 0:
            return counts
        side = int(probing[0, 0]) % 2
        bounds, partners = self._partners[side]
        rows = (probing[0] // np.uint64(2)).astype(np.int64)
        lengths = bounds[rows + 1] - bounds[rows]
        owner = np.repeat(np.arange(rows.size), lengths)
        before = np.cumsum(lengths) - lengths
        at = np.repeat(bounds[rows] - before, lengths) + np.arange(owner.size)
        wanted = (2 * partners[at] + (1 - side)).astype(np.uint64)
        places = np.searchsorted(stored[0, :end], wanted)
        there = stored[0, np.minimum(places, end - 1)] == wanted
        owner, places = owner[there], places[there]
        inside = (ranges.starts[owner] <= places[:, None]) & (places[:, None] < ranges.ends[owner])
        pair, age = np.nonzero(inside)
        np.add.at(counts, (owner[pair], age), 1)
        return counts


def _partners(
    mine: NDArray[np.int64], theirs: NDArray[np.int64], rows: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row k's partners are partners[bounds[k]:bounds[k + 1]]."""
    order = np.argsort(mine, kind="stable")
    bounds = np.concatenate(([0], np.cumsum(np.bincount(mine, minlength=rows)))).astype(np.int64)
    return bounds, theirs[order]
