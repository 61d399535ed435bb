"""Evaluates a residual condition of whole numbers and times on pairs, before their rows are built."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidegate.worker.join.joined_rows import PairReferences, gather
from tidegate.worker.runtime.layout import Comparison, JoinLayout

_COMPARED: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
}


def shown_pairs(parts: Sequence[PairReferences], layout: JoinLayout) -> list[PairReferences]:
    """The pairs that fulfil the condition of the join."""
    if not layout.shown:
        return list(parts)
    kept = (part.only(_holds(part, layout)) for part in parts)
    return [part for part in kept if len(part)]


def _holds(part: PairReferences, layout: JoinLayout) -> NDArray[np.bool_]:
    keep = np.ones(len(part), np.bool_)
    known: dict[str, tuple[NDArray[np.int64], NDArray[np.bool_] | None]] = {}
    for one in layout.shown:
        for name in (one.left, one.right):
            if isinstance(name, str) and name not in known:
                known[name] = _numbers(part, name, layout)
        keep &= _holds_one(one, known)
    return keep


def _holds_one(
    one: Comparison, known: Mapping[str, tuple[NDArray[np.int64], NDArray[np.bool_] | None]]
) -> NDArray[np.bool_]:
    left, valid = known[one.left]
    right, right_valid = known[one.right] if isinstance(one.right, str) else (np.int64(one.right), None)
    found: NDArray[np.bool_] = _COMPARED[one.operator](left, right)
    for present in (valid, right_valid):
        found = found if present is None else found & present
    return found


def _numbers(
    part: PairReferences, name: str, layout: JoinLayout
) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
    """A column of the joined row for these pairs, and which values are not null."""
    column = next(one for one in layout.output if one.name == name)
    if column.left is not None:
        values = gather(part.left_run, part.left, column.left)
    else:
        values = gather(part.right_run, part.right, column.right or "")
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    numbers = values.cast(pa.int64())
    if not numbers.null_count:
        return numbers.to_numpy(), None
    return pc.fill_null(numbers, 0).to_numpy(), numbers.is_valid().to_numpy(zero_copy_only=False)
