"""Rows with sets of items, as the pair finders need them: dense codes, distinct and ascending within a row.

Paper: selective join, experiments (set-valued and weighted-set-valued join attributes).

    row        0         1    2 (empty)  3
    items    [ 3 7 9 ]  [ 0 ]  [ ]     [ 3 9 ]        bounds = 0 3 4 4 6, universe = 10

Items of probing rows that no stored row has can be left out, as they are never common. A row then has more
items than are given here, and a measure that divides by the size of a set (Jaccard) needs the true number:
`sizes`.

Guarantee: the constructor checks an `ItemSets`, so compiled loops may trust it. Of items that repeat within
a row one is kept, and their weights are added in the order of arrival.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError, StateError
from tidegate.join.kernel_types import NUMBER, POSITIONS, WEIGHTS, inlined, kernel

#: Rows of up to this many items are sorted by insertion: no memory, and fast on nearly sorted input.
_SHORT = 32


@dataclass(frozen=True, eq=False)
class ItemSets:
    """Row k has items[bounds[k]:bounds[k + 1]], codes from 0 to universe - 1, with weights or without."""

    bounds: NDArray[np.int64]
    items: NDArray[np.int64]
    weights: NDArray[np.float64] | None
    universe: int
    #: The true number of distinct items of each row; by default the number of items given.
    sizes: NDArray[np.int64] = None  # type: ignore[assignment]  # filled in when made

    def __post_init__(self) -> None:
        shape = _shape(self.bounds, self.items, self.weights, self.universe)
        sizes = np.diff(shape[0]) if self.sizes is None else np.ascontiguousarray(self.sizes, np.int64)
        for name, array in zip(("bounds", "items", "weights"), shape, strict=True):
            object.__setattr__(self, name, array)
        object.__setattr__(self, "sizes", sizes)
        if not _in_order(self.bounds, self.items, self.universe):
            raise StateError(
                "The items of a row are not ascending, or lie outside the universe",
                code="INTERNAL_POSITION_OUT_OF_BOUNDS",
                got=f"universe of {self.universe}",
            )
        if sizes.size != len(self) or (sizes < np.diff(self.bounds)).any():
            raise StateError(
                "The sizes of sets do not fit their items",
                code="INTERNAL_ARRAYS_INCONSISTENT",
                got=f"{sizes.size} sizes of {len(self)} rows",
            )

    def __len__(self) -> int:
        return self.bounds.size - 1

    @property
    def nbytes(self) -> int:
        weights = 0 if self.weights is None else self.weights.nbytes
        return int(self.bounds.nbytes + self.items.nbytes + self.sizes.nbytes + weights)

    def take(self, rows: NDArray[np.int64]) -> ItemSets:
        """These rows, in this order."""
        rows = np.asarray(rows, np.int64)
        lengths = np.diff(self.bounds)[rows]
        bounds = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
        places = np.repeat(self.bounds[rows] - bounds[:-1], lengths) + np.arange(bounds[-1])
        weights = None if self.weights is None else self.weights[places]
        return self.in_order(bounds, self.items[places], weights, self.universe, self.sizes[rows])

    @classmethod
    def in_order(
        cls,
        bounds: NDArray[np.int64],
        items: NDArray[np.int64],
        weights: NDArray[np.float64] | None,
        universe: int,
        sizes: NDArray[np.int64],
    ) -> ItemSets:
        """Sets taken from checked ones, without checking again, which can take longer than a probe."""
        made = object.__new__(cls)
        vars(made).update(bounds=bounds, items=items, weights=weights, universe=universe, sizes=sizes)
        return made


def item_sets(
    bounds: NDArray[np.int64],
    items: NDArray[np.int64],
    universe: int,
    weights: NDArray[np.float64] | None = None,
    sizes: NDArray[np.int64] | None = None,
) -> ItemSets:
    """Sets from items in any order, repeats allowed; the given arrays are not changed.

    `sizes` is for rows that have more distinct items than are given here.
    """
    bounds, items, weights = _shape(bounds, items, weights, universe)
    each = np.zeros(0) if weights is None else weights
    own, kept, added = _ordered(bounds, items, each, weights is not None)
    true_sizes = np.diff(own) if sizes is None else sizes
    return ItemSets(own, kept, None if weights is None else added, universe, true_sizes)


def _shape(
    bounds: Any, items: Any, weights: Any, universe: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64] | None]:
    """Compiled loops do not check bounds, so inconsistent arrays are refused here."""
    bounds = np.ascontiguousarray(bounds, np.int64)
    items = np.ascontiguousarray(items, np.int64)
    weights = None if weights is None else np.ascontiguousarray(weights, np.float64)
    covers = bounds.size > 0 and bounds[0] == 0 and bounds[-1] == items.size
    if not covers or (np.diff(bounds) < 0).any() or (weights is not None and weights.size != items.size):
        raise StateError(
            "Bounds, items and weights of sets do not fit together",
            code="INTERNAL_ARRAYS_INCONSISTENT",
            got=f"{bounds.size} bounds, {items.size} items"
            + ("" if weights is None else f", {weights.size} weights"),
        )
    if universe < 0:
        raise StateError(
            "The universe of items must not be negative",
            code="INTERNAL_ARRAYS_INCONSISTENT",
            got=universe,
        )
    return bounds, items, weights


@kernel(POSITIONS, POSITIONS, NUMBER)
def _in_order(bounds: Any, items: Any, universe: Any) -> Any:
    for row in range(bounds.size - 1):
        before = -1
        for at in range(bounds[row], bounds[row + 1]):
            if items[at] <= before:
                return False
            before = items[at]
        if before >= universe:
            return False
    return True


@inlined
def _sort_short(items: Any, weights: Any, weighted: Any, begin: Any, end: Any) -> Any:
    """Insertion sort; equal items keep their order, so that weights are added in the order of arrival."""
    for at in range(begin + 1, end):
        item, to = items[at], at
        weight = weights[at] if weighted else 0.0
        while to > begin and items[to - 1] > item:
            items[to] = items[to - 1]
            if weighted:
                weights[to] = weights[to - 1]
            to -= 1
        items[to] = item
        if weighted:
            weights[to] = weight


@kernel(POSITIONS, POSITIONS, WEIGHTS, NUMBER)
def _ordered(bounds: Any, given: Any, given_weights: Any, weighted: Any) -> Any:
    own, items, weights = np.zeros_like(bounds), given.copy(), given_weights.copy()
    kept = 0
    for row in range(bounds.size - 1):
        begin, end = bounds[row], bounds[row + 1]
        if end - begin <= _SHORT:
            _sort_short(items, weights, weighted, begin, end)
        else:
            order = np.argsort(given[begin:end], kind="mergesort") + begin
            items[begin:end] = given[order]
            if weighted:
                weights[begin:end] = given_weights[order]
        first = kept
        for at in range(begin, end):
            if kept > first and items[kept - 1] == items[at]:
                if weighted:
                    weights[kept - 1] += weights[at]
                continue
            items[kept] = items[at]
            if weighted:
                weights[kept] = weights[at]
            kept += 1
        own[row + 1] = kept
    return own, items[:kept].copy(), weights[: kept if weighted else 0].copy()


def bitsets(bounds: NDArray[np.int64], items: NDArray[np.int64], universe: int) -> NDArray[np.uint64]:
    """One bit per item: row k has the items items[bounds[k]:bounds[k + 1]], each from 0 to universe - 1."""
    if items.size and not 0 <= items.min() <= items.max() < universe:
        raise FlowError(
            "An item code lies outside the universe",
            code="INTERNAL_POSITION_OUT_OF_BOUNDS",
            got=f"{items.min()} … {items.max()}, of 0 … {universe - 1}",
        )
    words = np.zeros((max(1, -(-universe // 64)), bounds.size - 1), np.uint64)
    row = np.repeat(np.arange(bounds.size - 1), np.diff(bounds))
    bits = np.uint64(1) << (items % 64).astype(np.uint64)
    np.bitwise_or.at(words, (items // 64, row), bits)
    return words
