from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import FlowError
from tidegate.route.fastjoin.sub_windows import SubWindows
from tidegate_lab.reproduce.fastjoin.scaling_gain import scaling_gain_ratio


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=20), st.integers(1, 6))
def test_fed_with_arrivals_the_total_is_what_lies_in_the_window(
    arrivals: list[tuple[int, int]], size: int
) -> None:
    vector = SubWindows(size)
    for batch, arrived in enumerate(arrivals):
        vector = vector.push(np.array(arrived, np.float64))
        in_window = arrivals[max(0, batch + 1 - size) : batch + 1]
        assert vector.total().tolist() == [sum(a) for a in zip(*in_window, strict=True)]
        assert len(vector.counts) == len(in_window)
        assert vector.mean() == pytest.approx(vector.total() / len(in_window))


def test_it_comes_back_from_json_and_a_shorter_one_keeps_the_newest() -> None:
    vector = SubWindows(3).push(np.array([1.0])).push(np.array([2.0])).push(np.array([3.0]))
    raw = json.loads(json.dumps(vector.to_json()))
    assert SubWindows.from_json(3, raw).to_json() == vector.to_json()
    assert SubWindows.from_json(2, raw).total().tolist() == [5.0]


def test_a_window_without_sub_windows_is_refused() -> None:
    with pytest.raises(FlowError, match=r"BALANCE_SETTING_INVALID.*at least one sub-window\. Got: 0"):
        SubWindows(0)


def test_with_ten_rows_a_key_nine_tenths_of_new_memory_hold_rows() -> None:
    """Section IV-C: above 0.9 for c > 10 where a key's statistics take no more than a row."""
    assert scaling_gain_ratio(rows=14, keys=1, row_bytes=100, key_bytes=100) > 0.9
    assert scaling_gain_ratio(rows=10_000, keys=1, row_bytes=100, key_bytes=32) > 0.9999
    assert scaling_gain_ratio(rows=3, keys=1, row_bytes=10, key_bytes=10) == 0.75
    assert scaling_gain_ratio(0, 0, 10, 10) == 1.0
