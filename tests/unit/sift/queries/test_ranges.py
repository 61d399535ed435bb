from __future__ import annotations

import numpy as np
import pytest

from tidegate.errors import FlowError
from tidegate.sift.queries.axes import END, FIRST, NAN, NULL, Axis, places
from tidegate.sift.queries.ranges import edges, place_of
from tidegate.sift.queries.space import AxisCells
from tidegate.sift.queries.sql import parse

NUMBER = AxisCells(Axis("x"), {})
INTEGER = AxisCells(Axis("x", "integer"), {})
CATEGORY = AxisCells(Axis("x", "category", ("bus", "car")), {"bus": 0, "car": 1})


def edges_of(line: AxisCells, where: str, wanted: bool = True) -> list[int]:
    comparison = parse(where)
    return edges(line, comparison, wanted)  # type: ignore[arg-type]


def at(coordinate: float) -> int:
    return int(places(np.array([coordinate]))[0])


def test_the_place_of_one_number_is_that_of_arrays() -> None:
    numbers = np.array([-np.inf, -2.5, -5e-324, -0.0, 0.0, 1.0, 9e15, np.inf])
    assert [place_of(number) for number in numbers.tolist()] == places(numbers).tolist()


def test_nan_is_above_every_number_and_null_is_neither_true_nor_false() -> None:
    assert edges_of(NUMBER, "x > 1") == [at(1) + 1, NULL]
    assert edges_of(NUMBER, "x > 1", wanted=False) == [FIRST, at(1) + 1]
    assert NAN < NULL


def test_a_whole_number_is_compared_with_a_decimal_exactly() -> None:
    assert edges_of(INTEGER, "x < 4.5") == edges_of(INTEGER, "x <= 4.5") == [FIRST, at(5)]
    assert edges_of(INTEGER, "x <= 4.99999999999999999999") == [FIRST, at(5)]
    assert edges_of(INTEGER, "x = 4.5") == []
    assert edges_of(INTEGER, "x = 4.0") == [at(4), at(5)]


def test_neighbouring_whole_numbers_and_repeated_ones_are_one_range() -> None:
    assert edges_of(INTEGER, "x in (3, 1, 2, 2, 7)") == [at(1), at(4), at(7), at(8)]


def test_a_category_leaves_no_range_that_no_row_can_be_in() -> None:
    assert edges_of(CATEGORY, "x = 'bus'") == [FIRST, at(1)]
    assert edges_of(CATEGORY, "x = 'bus'", wanted=False) == [at(1), NULL]
    assert edges_of(CATEGORY, "x in ('bus', 'car')", wanted=False) == [at(2), NULL]


def test_null_equals_nothing_but_itself_and_only_when_asked_so() -> None:
    assert edges_of(NUMBER, "x = null") == edges_of(NUMBER, "x = null", wanted=False) == []
    assert edges_of(NUMBER, "x < null") == edges_of(NUMBER, "x < null", wanted=False) == []
    assert edges_of(NUMBER, "x in (1, null)") == [at(1), at(1) + 1]
    assert edges_of(NUMBER, "x in (1, null)", wanted=False) == []
    assert edges_of(NUMBER, "x <=> null") == [NULL, END]
    assert edges_of(NUMBER, "x <=> null", wanted=False) == [FIRST, NULL]
    assert edges_of(NUMBER, "x <=> 1", wanted=False) == [FIRST, at(1), at(1) + 1, END]


@pytest.mark.parametrize(
    ("line", "where", "said"),
    [
        (CATEGORY, "x < 'car'", "QUERY_CATEGORY_ORDERED.*'x'.*Got: x < 'car'.*x in \\('a', 'b'\\)"),
        (
            CATEGORY,
            "x = 5",
            "QUERY_LITERAL_TYPE_MISMATCH.*'x' holds strings.*Got: 5.*Write '5'",
        ),
        (
            NUMBER,
            "x = '5'",
            "QUERY_LITERAL_TYPE_MISMATCH.*'x' holds numbers.*Got: '5'.*without quotes",
        ),
        (INTEGER, "x < true", "QUERY_LITERAL_TYPE_MISMATCH.*Column 'x' holds numbers.*Got: true"),
        (INTEGER, "x < 9007199254740992", "QUERY_LITERAL_TOO_LARGE.* Got: 9007199254740992"),
        (NUMBER, "x < -1e16", "QUERY_LITERAL_TOO_LARGE"),
        (NUMBER, "x < 1e999", "QUERY_LITERAL_TOO_LARGE.* Got: inf"),
    ],
)
def test_a_literal_that_does_not_fit_its_column_is_refused(line: AxisCells, where: str, said: str) -> None:
    with pytest.raises(FlowError, match=said):
        edges_of(line, where)


def test_the_largest_literals_are_those_below_two_to_the_53() -> None:
    assert edges_of(INTEGER, "x < 9007199254740991") == [FIRST, at(9007199254740991)]
