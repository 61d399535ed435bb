"""Query index: which queries contain a row, exactly, for a hundred thousand queries at once.

This is the continuous-query server that the sifters relieve (paper: sifters, section II), behind
`stream.match(queries)`. The paper takes it as given; the structure is ours: boxes go into a few k-d trees
(`narrow_groups`, `box_tree.py`), and rows are searched block by block (`box_rows.py`).

Guarantee: every pair of a row and a query that contains it is returned exactly once, by row and then by
query, NaN and null places included, for any boxes. The work for a row grows with the queries found rather
than with their total, as long as queries are narrow on some axis. `pieces` bounds the memory for results.

An index is a value made of arrays. Unpickling it takes a fraction of the time to build it, so it is built
once and sent to all workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate.sift.index.box_rows import cells_of, find, in_row_order
from tidegate.sift.index.box_tree import BoxTree, box_tree
from tidegate.sift.queries.axes import END, FIRST
from tidegate.sift.queries.boxes import Boxes

#: Most pairs in a piece: 16 MB of numbers.
PIECE = 2**22


@dataclass(frozen=True, eq=False)
class Matches:
    """Row first + i is in the queries query[offsets[i]] … query[offsets[i + 1] - 1], ascending."""

    first: int
    offsets: NDArray[np.int32]
    query: NDArray[np.int32]

    @property
    def hits(self) -> NDArray[np.int32]:
        """The number of queries of every row."""
        return np.diff(self.offsets)

    @property
    def row(self) -> NDArray[np.int32]:
        """The row of every pair."""
        rows = np.arange(self.first, self.first + len(self.offsets) - 1, dtype=np.int32)
        return np.repeat(rows, self.hits)


@dataclass(frozen=True, eq=False)
class QueryIndex:
    """Boxes in trees, ready for rows; places are always (axes, rows)."""

    axes: int
    trees: tuple[BoxTree, ...]

    @classmethod
    def of(cls, boxes: Boxes) -> QueryIndex:
        taken = np.flatnonzero((boxes.low < boxes.high).all(axis=1))
        taken = taken[np.argsort(boxes.owner[taken], kind="stable")]
        low, high, owner = boxes.low[taken], boxes.high[taken], boxes.owner[taken]
        trees = [box_tree(low[group], high[group], owner[group]) for group in narrow_groups(low, high)]
        return cls(boxes.low.shape[1], tuple(trees))

    def match(self, places: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """All pairs of a row and a query that contains it, by row and then by query."""
        pieces = list(self.pieces(places))
        if len(pieces) == 1:
            return pieces[0].row, pieces[0].query
        none = np.empty(0, np.int32)
        rows = np.concatenate([none, *(piece.row for piece in pieces)])
        return rows, np.concatenate([none, *(piece.query for piece in pieces)])

    def hits(self, places: NDArray[np.int64]) -> NDArray[np.int32]:
        """The number of queries that contain each row."""
        return np.concatenate([np.empty(0, np.int32), *(piece.hits for piece in self.pieces(places))])

    def pieces(self, places: NDArray[np.int64], most: int = PIECE) -> Iterator[Matches]:
        """The pairs of consecutive rows, at most `most` at a time; a single row may have more."""
        self._check(places)
        places = np.ascontiguousarray(places)
        rows = places.shape[1]
        cells = [cells_of(tree, places) for tree in self.trees]
        # The matches of a row are at most all boxes of its cells.
        bound = np.zeros(rows + 1, np.int64)
        for tree, cell in zip(self.trees, cells, strict=True):
            bound[1:] += tree.size[cell]
        np.cumsum(bound, out=bound)
        first = 0
        while first < rows:
            end = max(first + 1, int(np.searchsorted(bound, bound[first] + most, "right")) - 1)
            yield self._piece(places, first, end, cells, int(bound[end] - bound[first]))
            first = end

    def _piece(
        self, places: NDArray[np.int64], first: int, end: int, cells: list[NDArray[np.int32]], room: int
    ) -> Matches:
        shape = len(self.trees), end - first
        begin, count = np.empty(shape, np.int64), np.empty(shape, np.int32)
        found, used = np.empty(room, np.int32), 0
        for t, tree in enumerate(self.trees):
            used = find(tree, places, first, cells[t][first:end], found, used, begin[t], count[t])
        return Matches(first, *in_row_order(found, begin, count))

    def _check(self, places: NDArray[np.int64]) -> None:
        if places.ndim != 2 or len(places) != self.axes or places.dtype != np.int64:
            raise FlowError(
                f"Rows must be given by their places on {self.axes} axes",
                code="INTERNAL_ARRAYS_INCONSISTENT",
                got=f"an array of {places.dtype} in the shape {places.shape}",
            )


#: Fewer boxes than this, or than the part below of all, do not get a tree of their own.
SMALL = 128
SMALL_PART = 1 / 64
#: A box is narrow on an axis where it covers at most this part of the bounds of all boxes.
NARROW = 0.125
#: The number of steps in which an axis is measured, and the most boxes used for it.
STEPS = 64
JUDGES = 4096


def narrow_groups(low: NDArray[np.int64], high: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Boxes that bound the same axes, each group for a tree; ascending, at least one group.

    `low` and `high` are (boxes, axes). Queries over many columns often name only a few of them each, and in a
    single tree every cut would duplicate the boxes that are unbounded on its axis. So the axis on which most
    boxes are narrow takes all boxes that bound it; these, and those that do not bound it, are grouped by the
    other axes in the same manner. Boxes that are narrow nowhere stay together, and so do small groups: one
    more tree costs every row as much as comparing a hundred boxes.
    """
    if len(low) < 2 * SMALL:
        return [np.arange(len(low))]
    narrow = np.array([_parts(low[:, k], high[:, k]) <= NARROW for k in range(low.shape[1])])
    bounded = ((low > FIRST) | (high < END)).T
    small = max(SMALL, int(len(low) * SMALL_PART))
    return _split(np.arange(len(low)), narrow, bounded, list(range(len(narrow))), small)


def _split(
    boxes: NDArray[np.int64],
    narrow: NDArray[np.bool_],
    bounded: NDArray[np.bool_],
    axes: list[int],
    small: int,
) -> list[NDArray[np.int64]]:
    groups: list[NDArray[np.int64]] = []
    while axes and boxes.size >= 2 * small:
        best = max(axes, key=lambda k: np.count_nonzero(narrow[k, boxes]))
        if np.count_nonzero(narrow[best, boxes]) < small:
            break
        axes = [k for k in axes if k != best]
        takes = bounded[best, boxes]
        if boxes.size - np.count_nonzero(takes) >= small:
            groups += _split(boxes[takes], narrow, bounded, axes, small)
            boxes = boxes[~takes]
    return [*groups, boxes]


def _parts(low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.float64]:
    """The part of an axis that each box covers, in steps that contain equally many distinct bounds."""
    every = (len(low) - 1) // JUDGES + 1
    bounds = np.unique(np.concatenate([low[::every], high[::every]]))
    steps = bounds[:: (len(bounds) - 1) // STEPS + 1]
    inside = np.searchsorted(steps, high, "left") - np.searchsorted(steps, low, "right")
    return (inside + 1) / (len(steps) + 1)
