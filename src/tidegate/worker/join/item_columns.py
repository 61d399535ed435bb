"""Converts Arrow columns of sets into dense codes, with a separate dictionary for each run.

A stored run numbers its distinct items in ascending order. Probing rows are translated into these codes when
they probe the run: only their distinct items are searched for, and items that the run lacks are left out. No
dictionary is shared between runs, so none must be kept, merged or moved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidegate.join.sets.item_sets import ItemSets, item_sets
from tidegate.worker.runtime.runs import one_array


@dataclass(frozen=True, eq=False)
class SetColumn:
    """The sets of some rows, and the items that their codes stand for."""

    dictionary: pa.Array
    sets: ItemSets

    def in_terms_of(self, other: SetColumn, rows: NDArray[np.int64]) -> ItemSets:
        """Some of these sets in the codes of another column; items it does not have are left out."""
        # Shortcuts: most runs contain every item, and often only a few rows probe.
        sets = self.sets if len(rows) == len(self.sets) else self.sets.take(rows)
        if self.dictionary.equals(other.dictionary):
            return sets
        # Both dictionaries ascend, so codes still ascend within a row.
        codes: NDArray[np.int64] = self.codes_in(other)[sets.items]
        kept = codes >= 0
        running = np.concatenate((np.zeros(1, np.int64), np.cumsum(kept, dtype=np.int64)))
        weights = None if sets.weights is None else sets.weights[kept]
        bounds, universe = running[sets.bounds], other.sets.universe
        return ItemSets.in_order(bounds, codes[kept], weights, universe, sets.sizes)

    def codes_in(self, other: SetColumn) -> NDArray[np.int64]:
        """Per code of this column the code of the same item in another column; -1 if it is missing."""
        if self.dictionary.equals(other.dictionary):
            return np.arange(len(self.dictionary), dtype=np.int64)
        known = pc.index_in(self.dictionary, value_set=other.dictionary).fill_null(-1)
        codes: NDArray[np.int64] = known.to_numpy().astype(np.int64)
        return codes


def set_column(array: pa.Array, weighted: bool) -> SetColumn:
    """Sets from an array of lists, or weighted sets from maps or lists of (item, weight)."""
    array = one_array(array)
    valid = np.flatnonzero(np.asarray(array.is_valid()))
    # The copy drops null rows and slices, so offsets and values are consistent.
    plain = array.take(pa.array(valid))
    offsets = plain.offsets.to_numpy().astype(np.int64)
    used = slice(int(offsets[0]), int(offsets[-1]))
    items, weights = _values(plain, weighted)
    present = np.asarray(items[used].is_valid())
    if weights is not None:
        present &= np.asarray(weights[used].is_valid())
    running = np.concatenate((np.zeros(1, np.int64), np.cumsum(present)))
    lengths = np.zeros(len(array), np.int64)
    lengths[valid] = np.diff(running[offsets - offsets[0]])
    keep = pa.array(present)
    numbers = None if weights is None else _as_float(weights[used].filter(keep))
    bounds = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
    return _coded(items[used].filter(keep), bounds, numbers)


def _values(plain: pa.Array, weighted: bool) -> tuple[pa.Array, pa.Array | None]:
    """All items in one array, and their weights."""
    if pa.types.is_map(plain.type):
        return plain.keys, plain.items
    if weighted:
        return pc.struct_field(plain.values, 0), pc.struct_field(plain.values, 1)
    return plain.values, None


def _coded(values: pa.Array, bounds: NDArray[np.int64], weights: NDArray[np.float64] | None) -> SetColumn:
    distinct = one_array(values.unique())
    dictionary = distinct.take(pc.sort_indices(distinct))
    codes = pc.index_in(values, value_set=dictionary).to_numpy(zero_copy_only=False).astype(np.int64)
    return SetColumn(dictionary, item_sets(bounds, codes, len(dictionary), weights))


def _as_float(weights: pa.Array) -> NDArray[np.float64]:
    numbers: NDArray[np.float64] = np.ascontiguousarray(
        weights.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64
    )
    return numbers
