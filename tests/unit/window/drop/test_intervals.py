from __future__ import annotations

import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.model.times import BEGINNING_US
from tidegate.window.drop.intervals import Intervals, always, merged, union

RANGES = st.lists(st.tuples(st.integers(-30, 30), st.integers(-30, 30)), max_size=12)
TIMES = np.arange(-40, 40)
HALF = settings(max_examples=settings().max_examples // 2)


def of(ranges: list[tuple[int, int]]) -> Intervals:
    ends = np.array(ranges, np.int64).reshape(-1, 2)
    return merged(ends[:, 0], ends[:, 1])


def inside(ranges: list[tuple[int, int]]) -> list[bool]:
    return [any(low <= time < high for low, high in ranges) for time in TIMES.tolist()]


@given(RANGES)
@HALF
def test_merging_changes_no_answer_and_leaves_no_two_that_touch(ranges: list[tuple[int, int]]) -> None:
    found = of(ranges)
    assert found.contain(TIMES).tolist() == inside(ranges)
    assert (found.low < found.high).all()
    assert (found.high[:-1] < found.low[1:]).all()


@given(RANGES, RANGES)
@HALF
def test_a_union_holds_what_either_holds(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    assert union([of(one), of(other)]).contain(TIMES).tolist() == inside(one + other)


def test_what_lies_between_is_the_rest_of_time() -> None:
    found = of([(0, 3), (5, 6), (9, 12)])
    assert found.between().to_json() == {"low": [3, 6], "high": [5, 9]}
    assert always().between().low.size == 0


def test_a_part_of_time_can_be_looked_at_alone() -> None:
    assert of([(0, 3), (5, 6), (9, 12)]).overlap(2, 10).to_json() == {"low": [2, 5, 9], "high": [3, 6, 10]}


def test_intervals_come_back_from_json() -> None:
    found = Intervals.from_json(json.loads(json.dumps(of([(1, 2), (4, 9)]).to_json())))
    assert found.contain(np.array([1, 2, 4, 8, 9])).tolist() == [True, False, True, True, False]
    assert always().contain(np.array([BEGINNING_US, 0])).all()
