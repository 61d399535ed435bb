"""Converts results of approximate windows between Arrow and the formulas: estimates and interval bounds.

Estimates have the types of exact results. If nothing was dropped, values are exact, whatever their type.
Estimates of integers and decimals are rounded; they are computed as doubles, so about 15 digits are
significant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidegate.errors import BatchFailed
from tidegate.window.aggregate.columns import Column
from tidegate.window.aggregate.finals import finish
from tidegate.window.aggregate.sums import decimal_words
from tidegate.window.estimate.estimates import AVERAGE, COUNT, SUM
from tidegate.window.estimate.horvitz_thompson import bounds, estimate
from tidegate.window.spec import HIGH, LOW
from tidegate.worker.runtime.layout import WindowLayout
from tidegate.worker.window.partial_columns import as_arrow, as_column

Reals: TypeAlias = NDArray[np.float64]
#: Formulas of aggregates that have intervals.
ESTIMATES = (COUNT, SUM, AVERAGE)


def estimated_values(final: str, partials: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    """Results of windows, of this type, from merged partials."""
    exact = _exact(final, partials, kind)
    columns = [_reals(one) for one in partials]
    # Σ (w − 1) is zero exactly if every row has weight 1.
    sampled = columns[2 if final == AVERAGE else 1] > 0
    if not sampled.any():
        return exact
    values = estimate(final, columns)
    if pa.types.is_floating(kind):
        made = pa.array(values)
    elif pa.types.is_decimal(kind):
        made = _decimals(np.where(sampled, values, 0.0), kind)
    else:
        made = pa.array(_whole(np.where(sampled, values, 0.0)))
    return pc.if_else(pc.and_(pa.array(sampled), exact.is_valid()), made, exact)


def with_bounds(
    layout: WindowLayout,
    results: Mapping[str, pa.Array],
    partials: Mapping[str, pa.Array],
    sampled: NDArray[np.bool_],
) -> dict[str, pa.Array]:
    """The bounds of all intervals, by name; `sampled`: windows from which rows may have been dropped."""
    made: dict[str, pa.Array] = {}
    for result in layout.results:
        name, value = result.name, _bound(results[result.name])
        low = high = pa.nulls(len(value), value.type)
        if result.final in ESTIMATES and sampled.any():
            ends = bounds(result.final, [_reals(partials[column]) for column in result.columns])
            low, high = (pc.if_else(value.is_valid(), _known(end), None) for end in ends)
        made[name + LOW], made[name + HIGH] = (
            pc.if_else(pa.array(sampled), end, value) for end in (low, high)
        )
    return made


def _exact(final: str, partials: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    """The result if every row has weight 1."""
    if final != AVERAGE:
        return partials[0]
    columns = [as_column(one) for one in partials[:2]]
    if pa.types.is_decimal(kind):
        return as_arrow(finish("avg of decimals", columns, digits=kind.scale - partials[0].type.scale), kind)
    return as_arrow(finish("avg", columns), kind)


def _bound(value: pa.Array) -> pa.Array:
    """A value as the bound of an interval: numbers become doubles."""
    kind = value.type
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return value.cast(pa.float64(), safe=False) if numeric else value


def _known(values: Reals) -> pa.Array:
    return pa.array(values, mask=np.isnan(values))


def _reals(array: pa.Array) -> Reals:
    column = as_column(array.cast(pa.float64()) if pa.types.is_decimal(array.type) else array)
    return np.asarray(column.filled(0), np.float64)


def _whole(values: Reals) -> NDArray[np.int64]:
    if (np.abs(values) >= 2.0**63).any():
        raise _too_large("64 bits")
    return np.rint(values).astype(np.int64)


def _decimals(values: Reals, kind: pa.DataType) -> pa.Array:
    """Rounded to the scale of the type."""
    scaled = values * 10.0**kind.scale
    if not (np.abs(scaled) < 10.0**kind.precision).all():
        raise _too_large(f"{kind.precision} digits")
    return as_arrow(Column(decimal_words([round(one) for one in scaled.tolist()])), kind)


def _too_large(size: str) -> BatchFailed:
    return BatchFailed(
        f"An estimated sum does not fit into {size}",
        code="AGGREGATE_OVERFLOW",
        do='Cast the argument to double, for example F.sum(F.col("fare").cast("double"))',
    )
