from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.sift.queries.axes import END, FIRST, Axis, places
from tidegate.sift.queries.boxes import Boxes
from tidegate_lab.reproduce.sifters.runs.quality import answers, measure

ROWS = np.array([[1.0, 1.0], [2.0, 8.0], [np.nan, 3.0], [2.0, 2.0]])


def boxes(*ranges: tuple[int, tuple[float, float], tuple[float, float]]) -> Boxes:
    ends = np.array([[x, y] for _, x, y in ranges])
    owner = np.array([query for query, _, _ in ranges], np.int32)
    return Boxes(
        (Axis("x"), Axis("y")), places(ends[:, :, 0]), places(ends[:, :, 1]), owner, int(owner.max()) + 1
    )


def test_completeness_is_what_is_kept_of_what_matches() -> None:
    asked = boxes((0, (0, 3), (0, 3)), (0, (0, 3), (7, 9)), (1, (2, 3), (0, 10)), (2, (5, 6), (0, 10)))
    found = measure(ROWS, asked, np.array([True, False, True, True]))
    assert found.rows.tolist() == [3, 2, 0]
    np.testing.assert_allclose(found.completeness, [2 / 3, 1 / 2, 1])
    weights, alphas = np.array([0.5, 0.3, 0.2]), np.array([1.0, 2.0, 1.5])
    assert found.overall_qos(weights, alphas) == pytest.approx(0.5 * 2 / 3 + 0.3 * 0 + 0.2)


def test_a_probability_gives_what_can_be_expected() -> None:
    found = measure(ROWS, boxes((0, (0, 3), (0, 10))), np.array([0.5, 0.25, 1.0, 0.75]))
    np.testing.assert_allclose(found.completeness, [0.5])


def test_answers_name_the_rows_of_each_query_and_serve_any_filter() -> None:
    asked = boxes((1, (0, 3), (0, 3)), (0, (2, 3), (0, 10)), (1, (0, 3), (7, 9)), (2, (5, 6), (0, 10)))
    found = answers(ROWS, asked)
    assert [sorted(found.row[begin:end]) for begin, end in zip((0, 2, 5), (2, 5, 5), strict=True)] == [
        [1, 3],
        [0, 1, 3],
        [],
    ]
    assert found.ends.tolist() == [2, 5, 5]
    for keep in (np.array([True, False, True, True]), np.array([0.5, 0.25, 1.0, 0.75])):
        assert found.quality(keep).kept.tolist() == measure(ROWS, asked, keep).kept.tolist()


def test_of_rows_that_are_thinned_further_each_query_keeps_that_share() -> None:
    found = measure(ROWS, boxes((0, (0, 3), (0, 10)), (1, (5, 6), (0, 10))), np.array([0.5, 0.25, 1.0, 0.75]))
    np.testing.assert_allclose(found.scaled(0.5).completeness, [0.25, 1.0])


def test_more_answers_than_rows_find_room() -> None:
    rows = np.random.default_rng(0).random((50, 2))
    found = answers(rows, boxes(*((query, (0, 1), (0, 1)) for query in range(20))))
    assert found.rows.tolist() == [50] * 20
    assert sorted(found.row) == sorted(list(range(50)) * 20)


def test_a_query_for_everything_gets_nan_too() -> None:
    everything = Boxes(
        (Axis("x"), Axis("y")), np.full((1, 2), FIRST), np.full((1, 2), END), np.zeros(1, np.int32), 1
    )
    assert measure(ROWS, everything, np.ones(4)).rows.tolist() == [4]


@given(st.integers(0, 2**32 - 1))
def test_counts_are_those_of_comparing_everything(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = np.round(random.random((30, 2)), 1)
    ends = np.sort(np.round(random.random((8, 2, 2)), 1), axis=2)
    asked = boxes(*((int(random.integers(4)), tuple(x), tuple(y)) for x, y in ends))
    keep = random.random(30)
    found = measure(rows, asked, keep)
    for query in range(asked.queries):
        inside = np.zeros(30, np.int64)
        for box in np.flatnonzero(asked.owner == query):
            inside += ((ends[box, :, 0] <= rows) & (rows < ends[box, :, 1])).all(axis=1)
        assert found.rows[query] == inside.sum()
        assert found.kept[query] == pytest.approx(inside @ keep)
