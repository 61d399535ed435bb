from __future__ import annotations

import pytest

from tidegate.api.range_queries import RangeQuery
from tidegate.sift.queries.axes import Axis
from tidegate.sift.queries.conjunctions import Single, single_boxes
from tidegate.sift.queries.slices import EVERYTHING
from tidegate.sift.queries.space import AxisCells, Space
from tidegate.sift.queries.templates import TemplateGroup, grouped
from tidegate.sift.queries.truth import true_boxes

SPACE = Space(
    (
        AxisCells(Axis("x"), {}),
        AxisCells(Axis("i", "integer"), {}),
        AxisCells(Axis("s", "category", ("a", "b")), {"a": 0, "b": 1}),
    ),
    {"x": 0, "i": 1, "s": 2},
)


def made(*wheres: str) -> tuple[TemplateGroup, Single]:
    (group,) = grouped([RangeQuery(str(n), where) for n, where in enumerate(wheres)])
    return group, single_boxes(group, SPACE)


@pytest.mark.parametrize(
    "where",
    [
        *(f"{column} {operator} {{}}" for column in "xi" for operator in ("<", "<=", ">", ">=", "=")),
        "{} < x and i > -{} and x >= -{}",
        "i between {} and 9 and i <= 7",
    ],
)
def test_boxes_of_a_whole_template_are_those_of_each_query(where: str) -> None:
    literals = ("3", "0", "125e-2", "2e0")
    group, single = made(*(where.replace("{}", literal) for literal in literals))
    for member in range(len(literals)):
        if not single.made[member]:  # no whole number equals 1.25
            assert "i = " in where
            continue
        (box,) = true_boxes(group.predicate(member), SPACE)
        expected = [box.get(axis, EVERYTHING) for axis in range(3)]
        assert list(zip(single.low[member].tolist(), single.high[member].tolist(), strict=True)) == expected


def test_cells_are_looked_up_for_all_queries_at_once() -> None:
    group, single = made("s = 'a'", "s = 'b'")
    for member in (0, 1):
        (box,) = true_boxes(group.predicate(member), SPACE)
        assert (single.low[member, 2], single.high[member, 2]) == box[2]


@pytest.mark.parametrize(
    "where",
    [
        "x < 1 or x < 2",
        "not x < 1",
        "x in (1, 2)",
        "x <=> 1",
        "x < null",
        "true",
        "s < 'a'",
        "s = 1",
        "x = 'a'",
        "i < 1.5",
        "x < 1e16",
        "x < 1 and x > 2",
    ],
)
def test_what_is_out_of_the_ordinary_is_left_to_the_exact_way(where: str) -> None:
    _, single = made(where)
    assert single.made.tolist() == [False]
