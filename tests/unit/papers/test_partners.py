from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.papers.partners import Side, Stay, count_partners, judge

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
RIGHT_ANSWER = [(0, 0), (0, 1), (1, -1), (2, -1)]


def test_the_right_answer_is_exact() -> None:
    one, other = np.array(RIGHT_ANSWER, dtype=np.int64).T
    verdict = judge(LEFT, RIGHT, STAY, one, other)
    assert verdict.exact
    assert (verdict.pairs, verdict.unmatched, verdict.waiting) == (2, 2, 0)


def test_an_unmatched_row_that_is_still_waiting_is_no_fault() -> None:
    one, other = np.array(RIGHT_ANSWER[:-1], dtype=np.int64).T
    verdict = judge(LEFT, RIGHT, STAY, one, other)
    assert verdict.exact
    assert verdict.waiting == 1


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(RIGHT_ANSWER[1:], id="a pair is missing"),
        pytest.param([(0, 0), (0, 0), *RIGHT_ANSWER[2:]], id="a pair came twice instead of another"),
        pytest.param([*RIGHT_ANSWER, (0, 1)], id="a pair came twice"),
        pytest.param([(0, 0), (2, 2), *RIGHT_ANSWER[2:]], id="a pair is too far apart"),
        pytest.param([(0, 0), (2, 1), *RIGHT_ANSWER[2:]], id="a pair has two keys"),
        pytest.param([*RIGHT_ANSWER, (2, -1)], id="an unmatched row came twice"),
        pytest.param([*RIGHT_ANSWER, (0, -1)], id="a matched row came as unmatched"),
        pytest.param([], id="nothing came"),
    ],
)
def test_any_fault_is_found(answer: list[tuple[int, int]]) -> None:
    one, other = np.array(answer, dtype=np.int64).reshape(-1, 2).T
    assert not judge(LEFT, RIGHT, STAY, one, other).exact
