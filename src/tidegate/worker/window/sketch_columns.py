"""Merges sketches of panes into those of windows, in the DataSketches format that Spark writes.

A sketch is a byte string and is merged as a whole, so merging loops over Python objects: one per partial, not
per row. A sketch of nulls only is empty: zero distinct values, and no quantiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import datasketches
import numpy as np
import pyarrow as pa

from tidegate.window.aggregate.aggregates import Merge
from tidegate.window.aggregate.closing import Stretches
from tidegate.window.aggregate.fold import fold


def merged_sketches(merge: Merge, column: pa.Array, stretches: Stretches) -> pa.Array:
    """A sketch per stretch, to store."""
    sketches = [_bytes(merge, sketch) for sketch in _folded(merge, column, stretches)]
    return pa.array(sketches, column.type)


def estimates(column: pa.Array, windows: Stretches) -> pa.Array:
    """The number of distinct values of each window."""
    sketches = _folded(Merge.DISTINCT, column, windows)
    return pa.array([round(sketch.get_estimate()) for sketch in sketches], pa.int64())


def quantiles(
    column: pa.Array, windows: Stretches, percentages: Sequence[float], kind: pa.DataType
) -> pa.Array:
    """Values of each window at these ranks: a list, or a single value if `kind` is not a list."""
    found = [
        None if sketch.is_empty() else sketch.get_quantiles(list(percentages), True)
        for sketch in _folded(Merge.QUANTILES, column, windows)
    ]
    many = pa.types.is_list(kind)
    item = kind.value_type if many else kind
    known = [values for values in found if values is not None]
    numbers = np.concatenate(known) if known else np.zeros(0)
    values = _as(item, numbers)
    ends = np.cumsum([0 if one is None else len(percentages) for one in found])
    missing = pa.array([one is None for one in found])
    if not many:
        places = pa.array(ends - 1, mask=missing.to_numpy(zero_copy_only=False))
        return values.take(places)
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values, type=kind, mask=missing)


def _as(kind: pa.DataType, numbers: Any) -> pa.Array:
    """Doubles converted back to their original type."""
    if pa.types.is_integer(kind):
        return pa.array(np.rint(numbers).astype(np.int64)).cast(kind)
    if pa.types.is_decimal(kind):
        return pa.array(numbers).cast(pa.decimal128(38, kind.scale), safe=False).cast(kind)
    return pa.array(numbers).cast(kind)


def _folded(merge: Merge, column: pa.Array, stretches: Stretches) -> list[Any]:
    opened, merged = _HLL if merge is Merge.DISTINCT else _KLL
    return list(fold(merged, [opened(one) for one in column.to_pylist()], stretches))


def _union(one: Any, other: Any) -> Any:
    both = datasketches.hll_union(one.lg_config_k)
    both.update(one)
    both.update(other)
    return both.get_result(datasketches.tgt_hll_type.HLL_8)


def _together(one: Any, other: Any) -> Any:
    both = datasketches.kll_doubles_sketch(one.k)
    both.merge(one)
    both.merge(other)
    return both


def _bytes(merge: Merge, sketch: Any) -> bytes:
    return bytes(sketch.serialize_compact() if merge is Merge.DISTINCT else sketch.serialize())


_HLL = datasketches.hll_sketch.deserialize, _union
_KLL = datasketches.kll_doubles_sketch.deserialize, _together
