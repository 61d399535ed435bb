"""Turns a row's value into a coordinate of an axis: by column with Arrow, or one by one.

Both give the same result. A null or missing value is NaN. A category that no query names is
in the last cell of its axis. A value on a number axis that is not a number makes a bad row.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidegate.sift.queries.axes import Axis


def is_boolean(axis: Axis) -> bool:
    return axis.kind == "category" and bool(axis.categories) and set(axis.categories) <= {"true", "false"}


def of_column(axis: Axis, column: Any) -> NDArray[np.float64]:
    """Coordinates of an Arrow column; pa.ArrowInvalid or pa.ArrowNotImplementedError for a wrong type."""
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if axis.kind != "category":
        if not _has_numbers(column.type):
            raise pa.ArrowInvalid(f"a column of type {column.type} has no numbers")
        numbers = column.cast(pa.float64(), safe=False)
        return np.asarray(numbers.to_numpy(zero_copy_only=False), np.float64)
    texts = column.cast(pa.string())
    if is_boolean(axis):
        texts = pc.utf8_lower(texts)
    cells = pc.index_in(texts, value_set=pa.array(axis.categories, pa.string()))
    found = np.array(pc.fill_null(cells, axis.other).to_numpy(zero_copy_only=False), np.float64)
    if texts.null_count:
        found[pc.is_null(texts).to_numpy(zero_copy_only=False)] = np.nan
    return found


def of_value(axis: Axis, value: Any) -> float:
    """The coordinate of one value of parsed JSON; ValueError with the reason if it has none."""
    if value is None:
        return np.nan
    if axis.kind == "category":
        return float(_cell(axis, value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{axis.column} is not a number: {json.dumps(value)[:40]}")
    return float(value)


def of_text(axis: Axis, text: str) -> float:
    """The coordinate of one field of CSV; ValueError with the reason if it has none."""
    if axis.kind == "category":
        return float(_cell(axis, text))
    try:
        if "_" in text:  # only Python accepts it in a number
            raise ValueError(text)
        return float(text)
    except ValueError:
        raise ValueError(f"{axis.column} is not a number: {text[:40]!r}") from None


def _cell(axis: Axis, value: Any) -> int:
    if isinstance(value, list | dict):
        raise ValueError(f"{axis.column} is not a category: {json.dumps(value)[:40]}")
    text = value if isinstance(value, str) else json.dumps(value)
    if is_boolean(axis):
        text = text.lower()
    return axis.categories.index(text) if text in axis.categories else axis.other


def _has_numbers(kind: Any) -> bool:
    return any(is_one(kind) for is_one in (pa.types.is_floating, pa.types.is_integer, pa.types.is_decimal))
