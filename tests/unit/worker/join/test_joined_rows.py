from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tidegate.worker.join.joined_rows import PairReferences, same_keys
from tidegate.worker.runtime.layout import ComparedKey


class Run:
    """As much of a run as comparing keys needs."""

    def __init__(self, **columns: pa.Array) -> None:
        self._columns = columns

    def column(self, name: str) -> pa.Array:
        return self._columns[name]


def compared(left: pa.Array, right: pa.Array, null_safe: bool) -> list[bool]:
    one: Any = Run(k=left)
    other: Any = Run(p=right)
    rows = np.arange(len(left))
    keep = same_keys(PairReferences(one, rows, other, rows), [ComparedKey("k", "p", null_safe)])
    return list(map(bool, keep))


@pytest.mark.parametrize("null_safe", [False, True])
def test_null_equals_null_only_if_the_key_is_null_safe(null_safe: bool) -> None:
    left, right = pa.array(["a", "a", None, None, ""]), pa.array(["a", None, "a", None, ""])
    assert compared(left, right, null_safe) == [True, False, False, null_safe, True]


@pytest.mark.parametrize("null_safe", [False, True])
def test_nan_equals_nan_and_is_no_null(null_safe: bool) -> None:
    nan = float("nan")
    left, right = pa.array([nan, nan, None, 0.0, None]), pa.array([nan, None, nan, -0.0, None])
    assert compared(left, right, null_safe) == [True, False, False, True, null_safe]
