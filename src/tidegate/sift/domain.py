"""The domain: the bounds of the data space, which give regions and queries their volumes.

Paper: sifters, section II-A, takes D as given. The bounds of a stream are unknown, so they are taken from
sample rows and queries: on each axis from the lowest to the highest of all finite coordinates and finite
bounds of boxes. Integer axes keep whole cells ([3, 8) for 3 to 7), categories all of their cells. Rows
outside of the domain are not lost: they belong to the nearest region (`regions.py`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate.sift.queries.axes import Axis
from tidegate.sift.queries.boxes import Boxes
from tidegate.sift.regions import Domain


def domain_of(boxes: Boxes, rows: NDArray[np.float64]) -> Domain:
    """The domain of queries and of sample rows: coordinates (rows, axes), with NaN for null."""
    if rows.ndim != 2 or rows.shape[1] != len(boxes.axes):
        raise FlowError(
            "Sample rows need one coordinate per axis",
            code="INTERNAL_ARRAYS_INCONSISTENT",
            got=f"shape {rows.shape}, {len(boxes.axes)} axes",
        )
    low, high = boxes.extents
    bounds = [
        _bounds(axis, rows[:, k], np.concatenate([low[:, k], high[:, k]]))
        for k, axis in enumerate(boxes.axes)
    ]
    return Domain(np.array([lower for lower, _ in bounds]), np.array([upper for _, upper in bounds]))


def _bounds(axis: Axis, values: NDArray[np.float64], sides: NDArray[np.float64]) -> tuple[float, float]:
    if axis.kind == "category":
        return 0.0, float(axis.other + 1)
    values, sides = values[np.isfinite(values)], sides[np.isfinite(sides)]
    if axis.kind == "integer":
        values = np.concatenate([np.floor(values), np.floor(values) + 1])
    reached = np.concatenate([values, sides])
    low, high = (float(reached.min()), float(reached.max())) if reached.size else (0.0, 0.0)
    if axis.kind == "integer" and reached.size and low == high:
        return low, low + 1  # only `x < 5`, and no row: one cell is as good a guess as any
    # A single value has no width either, although the box `x = 5` extends to the next float.
    if np.nextafter(low, np.inf) >= high:
        raise FlowError(
            f"Column {axis.column!r} has only one value or none",
            code="SIFT_COLUMN_CONSTANT",
            got=f"only the value {low:g}" if reached.size else "neither a finite sample nor a finite bound",
            why="Regions cannot be cut along a column without a range",
            do="Collect more sample rows, or leave the column out of the queries",
        )
    return low, high
