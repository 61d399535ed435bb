from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.cli.demo.answers import Side, Stay, Verdict, count_partners, judge
from tidegate.cli.demo.city import CityGrid

#: A moment of our time: sums must stay exact up there.
NOW_US = 1_741_021_200_000_000

rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12), st.booleans()), max_size=25)


def side(given_rows: list[tuple[int, int, bool]]) -> Side:
    return Side(
        np.array([row[0] for row in given_rows], dtype=np.int64),
        np.array([NOW_US + row[1] for row in given_rows], dtype=np.int64),
        np.array([row[2] for row in given_rows], dtype=bool),
    )


def true_pairs(left: Side, right: Side, stay: Stay) -> list[tuple[int, int]]:
    return [
        (i, j)
        for i in range(len(left.key))
        for j in range(len(right.key))
        if left.counts[i]
        and right.counts[j]
        and left.key[i] == right.key[j]
        and -stay.left_us <= left.time_us[i] - right.time_us[j] <= stay.right_us
    ]


@given(rows, rows, st.integers(0, 5), st.integers(0, 5))
def test_the_count_is_that_of_comparing_every_row_with_every_row(
    left_rows: list[tuple[int, int, bool]], right_rows: list[tuple[int, int, bool]], a: int, b: int
) -> None:
    left, right, stay = side(left_rows), side(right_rows), Stay(a, b)
    expected = [0] * len(left_rows)
    for i, _ in true_pairs(left, right, stay):
        expected[i] += 1
    assert count_partners(left, right, stay).tolist() == expected


LEFT = side([(1, 10, True), (1, 50, True), (2, 10, True)])
RIGHT = side([(1, 12, True), (1, 5, True), (2, 30, True)])
STAY = Stay(left_us=2, right_us=5)
RIGHT_ANSWER = [(0, 0), (0, 1)]


def judged(answer: list[tuple[int, int]]) -> Verdict:
    one, other = np.array(answer, dtype=np.int64).reshape(-1, 2).T
    return judge(LEFT, RIGHT, STAY, one, other)


def test_the_right_answer_is_exact() -> None:
    assert judged(RIGHT_ANSWER).exact


def test_a_part_of_the_answer_is_right_and_not_exact() -> None:
    verdict = judged(RIGHT_ANSWER[1:])
    assert verdict.right
    assert not verdict.exact
    assert (verdict.pairs, verdict.pairs_exact) == (1, 2)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param([(0, 0), (0, 0)], id="a pair came twice instead of another"),
        pytest.param([*RIGHT_ANSWER, (0, 1)], id="a pair came twice"),
        pytest.param([(0, 0), (2, 2)], id="a pair is too far apart"),
        pytest.param([(0, 0), (2, 1)], id="a pair has two keys"),
    ],
)
def test_any_fault_is_found(answer: list[tuple[int, int]]) -> None:
    assert not judged(answer).right


@given(rows, rows)
def test_keys_that_are_close_are_those_of_comparing_all(
    left_rows: list[tuple[int, int, bool]], right_rows: list[tuple[int, int, bool]]
) -> None:
    left, right, grid = side(left_rows), side(right_rows), CityGrid(4)
    pairs = [
        (i, j)
        for i in range(len(left.key))
        for j in range(len(right.key))
        if left.counts[i]
        and right.counts[j]
        and grid.close(left.key[[i]], right.key[[j]])[0]
        and -2 <= left.time_us[i] - right.time_us[j] <= 5
    ]
    one, other = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    assert judge(left, right, STAY, one, other, grid).exact
