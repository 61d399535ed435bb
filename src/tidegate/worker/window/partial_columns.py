"""Converts partial columns between Arrow and the kernels: numbers directly, others by rank or position."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidegate.window.aggregate.aggregates import AggregatePart, Merge
from tidegate.window.aggregate.closing import Stretches
from tidegate.window.aggregate.columns import Column
from tidegate.window.aggregate.combine import combine

#: For values that are only compared: the first is the smallest, the last the largest.
_AS_CHOICE = {Merge.MIN: Merge.FIRST, Merge.MAX: Merge.LAST}
_LOWEST = np.int64(-(2**63))


def merged_partials(part: AggregatePart, columns: list[pa.Array], stretches: Stretches) -> list[pa.Array]:
    """The partial columns of a part, in merged order, as one row per stretch; types are kept."""
    kinds = [column.type for column in columns]
    if part.merge in (Merge.FIRST, Merge.LAST):
        keys, values = columns[0].field(0), columns[0].field(1)
        present = columns[0].is_valid().to_numpy(zero_copy_only=False)
        return [_chosen(part.merge, columns[0], _rank(keys), _rank(values), present, stretches)]
    if part.merge in _AS_CHOICE and not _is_number(kinds[0]):
        present = columns[0].is_valid().to_numpy(zero_copy_only=False)
        nothing = np.zeros(len(columns[0]), np.int64)
        choice = _AS_CHOICE[part.merge]
        return [_chosen(choice, columns[0], _rank(columns[0]), nothing, present, stretches)]
    made = combine(part.merge, [as_column(column) for column in columns], stretches)
    return [as_arrow(column, kind) for column, kind in zip(made, kinds, strict=True)]


def as_column(array: pa.Array) -> Column:
    """Numbers, booleans and decimals in the form that kernels take."""
    valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
    if pa.types.is_decimal(array.type):
        words = np.frombuffer(array.buffers()[1], np.uint64).reshape(-1, 2)
        return Column(words[array.offset : array.offset + len(array)], valid)
    if pa.types.is_boolean(array.type):
        return Column(pc.fill_null(array, False).to_numpy(zero_copy_only=False), valid)
    wide = pa.float64() if pa.types.is_floating(array.type) else pa.int64()
    values = pc.fill_null(array.cast(wide), 0) if valid is not None else array.cast(wide)
    return Column(values.to_numpy(), valid)


def as_arrow(column: Column, kind: pa.DataType) -> pa.Array:
    """The reverse: an array of this type."""
    null = None if column.valid is None else ~column.valid
    if column.decimal:
        values = np.ascontiguousarray(column.values)
        bits = None if null is None else pa.array(column.valid).buffers()[1]
        return pa.Array.from_buffers(kind, len(values), [bits, pa.py_buffer(values)])
    made = pa.array(column.values, mask=null)
    return made if made.type == kind else made.cast(kind)


def _is_number(kind: pa.DataType) -> bool:
    asked = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(is_one(kind) for is_one in asked)


def _rank(values: pa.Array) -> NDArray[np.int64]:
    """Integers in Spark's order of the values: nulls lowest, NaN highest; equal values get equal integers."""
    kind = values.type
    if pa.types.is_floating(kind):
        return _rank_of_reals(values)
    if (pa.types.is_integer(kind) or pa.types.is_timestamp(kind)) and not values.null_count:
        return np.asarray(values.cast(pa.int64()).to_numpy())
    if pa.types.is_null(kind):
        return np.zeros(len(values), np.int64)
    encoded = values.dictionary_encode()
    place = np.empty(len(encoded.dictionary) + 1, np.int64)
    place[pc.array_sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(encoded.dictionary))
    place[-1] = -1
    ranks: NDArray[np.int64] = place[pc.fill_null(encoded.indices, -1).to_numpy()]
    return ranks


def _rank_of_reals(values: pa.Array) -> NDArray[np.int64]:
    """Integers in the order of doubles, by sign and magnitude bits; the least integer is not used."""
    null = values.is_null().to_numpy(zero_copy_only=False)
    reals = pc.fill_null(values.cast(pa.float64()), 0.0).to_numpy() + 0.0  # makes -0.0 positive
    bits = np.where(np.isnan(reals), np.nan, reals).view(np.int64)
    ordered = np.where(bits < 0, ~bits ^ _LOWEST, bits)
    return np.where(null, _LOWEST, ordered)


def _chosen(
    choice: Merge,
    values: pa.Array,
    key: NDArray[np.int64],
    tie: NDArray[np.int64],
    present: NDArray[np.bool_],
    stretches: Stretches,
) -> Any:
    (rows,) = combine(choice, [Column(key, present), Column(tie)], stretches)
    positions = pa.array(rows.values, mask=None if rows.valid is None else ~rows.valid)
    return values.take(positions)
