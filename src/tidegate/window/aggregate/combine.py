"""Merges pane partials into finished windows, in arrays.

    runs ──merge_runs──▶ rows by (group, pane) ──closing_windows──▶ stretches ──combine──▶ a row per window
                                               └──cells───────────▶ stretches ──combine──▶ one run of all

Closing windows and merging stored runs are the same step over different stretches: merged partials are
partials.

Nulls are ignored; a result is null where a stretch has nothing but nulls. Floating-point order is Spark's:
NaN above all numbers, −0.0 equal to 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tidegate.errors import FlowError, StateError
from tidegate.window.aggregate.aggregates import Merge
from tidegate.window.aggregate.chosen import first_rows
from tidegate.window.aggregate.columns import Column
from tidegate.window.aggregate.moments import comoments, moments
from tidegate.window.aggregate.sliding import any_valid, slide_integers, slide_reals
from tidegate.window.aggregate.sums import decimal_sums, integer_sums

if TYPE_CHECKING:
    from tidegate.window.aggregate.closing import Stretches


def combine(merge: Merge, columns: Sequence[Column], stretches: Stretches) -> tuple[Column, ...]:
    """The partial columns of a part, merged over each stretch; rows are in merged order.

    FIRST and LAST take a key and a tie, both order-preserving int64, and give the chosen row, null where
    there is none.
    """
    _check(columns, stretches)
    match merge:
        case Merge.MOMENTS | Merge.COMOMENTS:
            slide = moments if merge is Merge.MOMENTS else comoments
            table = np.stack([column.filled(0.0) for column in columns])
            return tuple(Column(line) for line in slide(table, stretches))
        case Merge.FIRST | Merge.LAST:
            return (_chosen(columns[0], columns[1], stretches, last=merge is Merge.LAST),)
        case Merge.CONCAT | Merge.UNION | Merge.DISTINCT | Merge.QUANTILES | Merge.ROWS | Merge.STATES:
            raise FlowError(
                "Lists, sketches and states are not columns of numbers",
                code="WINDOW_PARTIAL_NOT_NUMERIC",
                got=merge.value,
                do="Merge lists by `lists.py`, all else by `fold.py`",
            )
        case _:
            return tuple(_alone(merge, column, stretches) for column in columns)


def _check(columns: Sequence[Column], stretches: Stretches) -> None:
    """Compiled loops do not check bounds, so inconsistent arrays are refused here."""
    rows = int(stretches.end[-1]) if stretches.count else 0
    if any(len(column.values) < rows for column in columns):
        raise StateError(
            "Windows refer to rows beyond the end of a column",
            code="WINDOW_PARTIAL_TOO_SHORT",
            got=f"{rows} rows in windows, {[len(column.values) for column in columns]} in columns",
            do="Bring columns into merged order first",
        )


def _alone(merge: Merge, column: Column, stretches: Stretches) -> Column:
    """One column, merged on its own."""
    if column.decimal and merge is not Merge.SUM:
        return _extreme_decimals(merge, column, stretches)
    kind = column.values.dtype
    if kind == np.bool_:
        numbers = _alone(merge, Column(column.values.astype(np.int64), column.valid), stretches)
        # For a stretch of nulls only, the number is neither 0 nor 1.
        return Column(numbers.values > 0, numbers.valid)
    valid = None if column.valid is None else any_valid(column.valid, stretches)
    if column.decimal:
        return Column(decimal_sums(column.filled(0), stretches), valid)
    if kind == np.float64:
        return Column(slide_reals(merge, column.values, stretches, column.valid), valid)
    if merge is Merge.SUM:
        return Column(integer_sums(column.filled(0), stretches), valid)
    return Column(slide_integers(merge, column.values, stretches, column.valid), valid)


def _chosen(key: Column, tie: Column, stretches: Stretches, *, last: bool) -> Column:
    """The row with the smallest key and tie, or the largest: ~x reverses the order of integers."""
    keys, ties = (~key.values, ~tie.values) if last else (key.values, tie.values)
    rows = first_rows(keys, ties, key.valid, stretches)
    return Column(rows, None if key.valid is None else rows >= 0)


def _extreme_decimals(merge: Merge, column: Column, stretches: Stretches) -> Column:
    """Decimals are ordered by their upper words as signed, then by their lower words as unsigned."""
    upper = Column(column.values[:, 1].view(np.int64), column.valid)
    lower = Column((column.values[:, 0] ^ np.uint64(2**63)).view(np.int64))
    rows = _chosen(upper, lower, stretches, last=merge is Merge.MAX)
    return Column(column.values[rows.values], rows.valid)
