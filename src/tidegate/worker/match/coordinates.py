"""Converts Arrow columns to coordinates (`sift/queries/axes.py`).

Must agree with `coordinate_sql` in `driver/compile/match_columns.py`. NaN stays NaN; null has no coordinate.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidegate.sift.queries.axes import Axis


def coordinates_of(column: pa.Array, axis: Axis) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
    """The coordinates of a column, and a mask of its nulls (None: no nulls)."""
    null = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    if axis.kind == "category":
        texts = pc.if_else(column, "true", "false") if pa.types.is_boolean(column.type) else column
        cells = pc.index_in(texts, value_set=pa.array(axis.categories, texts.type))
        numbers = pc.fill_null(cells, axis.other).cast(pa.float64())
    else:
        # Integers beyond 2^53 are rounded; queries contain no such numbers, so comparisons are unaffected.
        numbers = pc.fill_null(pc.cast(column, pa.float64(), safe=False), 0.0)
    return numbers.to_numpy(zero_copy_only=False), null
