from __future__ import annotations

import numpy as np

from tidegate.window.aggregate.closing import Stretches
from tidegate.window.aggregate.fold import fold


def sliding(rows: int, size: int) -> Stretches:
    begin = np.arange(rows - size + 1)
    return Stretches(begin, begin, begin + size)


def test_values_are_merged_in_order_and_nulls_are_left_out() -> None:
    values: list[str | None] = ["a", None, "b", None, None, None, "c"]
    found = fold(str.__add__, values, sliding(7, 3))
    assert list(found) == ["ab", "b", "b", None, "c"]


def test_a_row_is_merged_twice_at_most_however_long_windows_are() -> None:
    calls = 0

    def merge(one: int, other: int) -> int:
        nonlocal calls
        calls += 1
        return one + other

    values: list[int | None] = list(range(1000))
    expected = [sum(range(k, k + 300)) for k in range(701)]
    found = fold(merge, values, sliding(1000, 300))
    assert list(found) == expected
    assert calls <= 2 * 1000 + 701
