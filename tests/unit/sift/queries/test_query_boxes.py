from __future__ import annotations

import re

import numpy as np
import pytest

from tidegate.api.range_queries import RangeQuery
from tidegate.errors import FlowError
from tidegate.sift.queries.axes import END, FIRST, NULL, Axis, places
from tidegate.sift.queries.query_boxes import boxes_of

SCHEMA = {"lat": "number", "Lon": "number", "seats": "integer", "kind": "category", "at": "timestamp"}


def boxes(*wheres: str) -> list[tuple[int, list[tuple[float, float]]]]:
    """(owner, [(low, high) per axis]) of each box, in coordinates."""
    found = boxes_of([RangeQuery(f"q{i}", where) for i, where in enumerate(wheres)], SCHEMA)
    low, high = found.extents
    return [
        (owner, list(zip(lower, upper, strict=True)))
        for owner, lower, upper in zip(found.owner.tolist(), low.tolist(), high.tolist(), strict=True)
    ]


def test_a_conjunction_is_one_box() -> None:
    assert boxes("seats >= 2 and kind = 'bus' and seats < 5.5 and seats < 9") == [(0, [(2, 6), (-np.inf, 1)])]


def test_the_example_of_the_paper_falls_into_disjoint_boxes() -> None:
    # Section II-B: not (x1 < 4 and (x1 > 3 or x2 < 5)).
    four, three, five = places(np.array([4.0, 3.0, 5.0])).tolist()
    found = boxes_of([RangeQuery("q", "not (lat < 4 and (lat > 3 or lon < 5))")], SCHEMA)
    assert sorted(zip(found.low.tolist(), found.high.tolist(), strict=True)) == [
        ([FIRST, five], [three + 1, NULL]),
        ([four, FIRST], [NULL, END]),
    ]


def test_axes_are_the_columns_that_queries_name_in_the_order_of_first_use() -> None:
    found = boxes_of(
        [
            RangeQuery("a", "LON > 1"),
            RangeQuery("b", "kind in ('bus', 'car') or lon < 0"),
            RangeQuery("c", "kind = 'a'"),
        ],
        SCHEMA,
    )
    assert found.axes == (Axis("Lon"), Axis("kind", "category", ("a", "bus", "car")))
    assert found.queries == 3
    assert found.owner.tolist() == [0, 1, 1, 2]


def test_booleans_are_categories() -> None:
    found = boxes_of([RangeQuery("a", "open"), RangeQuery("b", "open = false")], {"open": "category"})
    assert found.axes == (Axis("open", "category", ("false", "true")),)


def test_an_axis_that_a_query_does_not_name_is_open_even_to_null() -> None:
    found = boxes_of(
        [RangeQuery("a", "lat > 1"), RangeQuery("b", "lon > 1"), RangeQuery("c", "true")], SCHEMA
    )
    assert (found.low[0, 1], found.high[0, 1]) == (FIRST, END)
    assert (found.low[2].tolist(), found.high[2].tolist()) == ([FIRST, FIRST], [END, END])


def test_a_long_list_of_neighbouring_whole_numbers_is_one_box() -> None:
    assert boxes(" or ".join(f"seats = {i}" for i in range(3000))) == [(0, [(0, 3000)])]


def test_a_thousand_boxes_are_allowed() -> None:
    found = boxes(f"lat in ({', '.join(str(i) for i in range(1000))})")
    assert len(found) == 1000


@pytest.mark.parametrize(
    ("where", "code", "said"),
    [
        (
            "lat < 1 and lats > 2",
            "QUERY_COLUMN_MISSING",
            "'lats'. Use one of the columns lat, Lon, seats, kind, at",
        ),
        ("at > 3", "QUERY_COLUMN_TYPE_UNSUPPORTED", "Column 'at'.*Got: timestamp.*as a number"),
        ("lat like 'a'", "QUERY_PREDICATE_UNSUPPORTED", "Got: lat LIKE 'a'"),
        ("lat <", "QUERY_SQL_INVALID", "Got: lat <"),
        ("kind < 'bus'", "QUERY_CATEGORY_ORDERED", "categories"),
        ("lat > 1 and kind >= 'bus'", "QUERY_CATEGORY_ORDERED", "categories"),
        ("kind = 3", "QUERY_LITERAL_TYPE_MISMATCH", "compared with a number. Got: 3"),
        ("lat = 'a'", "QUERY_LITERAL_TYPE_MISMATCH", "holds numbers.*Got: 'a'"),
        ("lat", "QUERY_LITERAL_TYPE_MISMATCH", "holds numbers.*Got: true"),
        ("lat < 1e999", "QUERY_LITERAL_TOO_LARGE", "too large"),
        ("seats < 9007199254740993", "QUERY_LITERAL_TOO_LARGE", "too large"),
        ("lat > 2 and lat < 1", "QUERY_NEVER_TRUE", "can never be true"),
        ("lat > 1 and lat < 1.5 and lat = 1.75", "QUERY_NEVER_TRUE", "can never be true"),
        ("seats = 1.5", "QUERY_NEVER_TRUE", "can never be true"),
        ("lat = null", "QUERY_NEVER_TRUE", "can never be true"),
        ("lat > 1 and false", "QUERY_NEVER_TRUE", "can never be true"),
        ("not (lat < 1 or lat is null or lat >= 1)", "QUERY_NEVER_TRUE", "can never be true"),
        (f"lat in ({', '.join(str(i) for i in range(1001))})", "QUERY_TOO_COMPLEX", "Got: more than 1000"),
        (
            " and ".join(f"{c} in ({', '.join(str(2 * i) for i in range(40))})" for c in ("lat", "lon")),
            "QUERY_TOO_COMPLEX",
            "too many",
        ),
    ],
)
def test_a_bad_query_is_named_with_the_reason(where: str, code: str, said: str) -> None:
    queries = [RangeQuery("good", "lat > 1"), RangeQuery("bad one", where)]
    with pytest.raises(FlowError, match=f"Range query 'bad one' \\(.*{said}") as caught:
        boxes_of(queries, SCHEMA)
    assert caught.value.code == code


def test_the_query_that_is_named_is_the_one_that_is_bad_even_among_its_like() -> None:
    queries = [RangeQuery(str(i), f"lat > {i} and lat < 6.5") for i in range(9)]
    with pytest.raises(FlowError, match=r"QUERY_NEVER_TRUE\] Range query '7' \("):
        boxes_of(queries, SCHEMA)


@pytest.mark.parametrize(
    ("queries", "said"),
    [
        ([], "[QUERY_MISSING] There are no queries"),
        (
            [RangeQuery("a", "lat > 1"), RangeQuery("a", "lat > 2")],
            "[QUERY_NAMES_EQUAL] Two queries have the name 'a'",
        ),
        (
            [RangeQuery("a", "true"), RangeQuery("b", "false")],
            "[QUERY_WITHOUT_COLUMN] Range query 'a' (true): ",
        ),
    ],
)
def test_a_set_of_queries_that_means_nothing_is_refused(queries: list[RangeQuery], said: str) -> None:
    with pytest.raises(FlowError, match=re.escape(said)):
        boxes_of(queries, SCHEMA)


def test_a_column_that_a_query_spells_as_it_is_is_meant_and_any_other_case_is_ambiguous() -> None:
    columns = {"x": "number", "Xx": "number", "XX": "number"}
    made = boxes_of([RangeQuery("a", "XX < 1")], columns)
    assert [axis.column for axis in made.axes] == ["XX"]
    with pytest.raises(FlowError, match=r"QUERY_COLUMN_AMBIGUOUS\] Range query 'a' .*Got: Xx, XX"):
        boxes_of([RangeQuery("a", "xx < 1")], columns)
