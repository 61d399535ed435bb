"""Boxes of a query hold exactly the rows for which its predicate is true, in DuckDB and by SQL's rules."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.plain_predicates import SCHEMA, Written, conjunctions, predicates, rows

from tidegate.api.range_queries import RangeQuery
from tidegate.errors import FlowError
from tidegate.sift.queries.axes import Axis, places
from tidegate.sift.queries.boxes import Boxes
from tidegate.sift.queries.query_boxes import boxes_of
from tidegate.sift.queries.sql import parse
from tidegate.sift.queries.templates import grouped

ROWS = rows()
#: A query that names a column, whatever the others do.
ANCHOR = RangeQuery("anchor", "x < 1")


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("create table rows (n int, x double, y double, i bigint, s varchar, b boolean)")
        values = [[n, *row.values()] for n, row in enumerate(ROWS)]
        connection.executemany("insert into rows values (?, ?, ?, ?, ?, ?)", values)
        yield connection


def places_of(axis: Axis) -> np.ndarray:
    values = [row[axis.column] for row in ROWS]
    null = np.array([value is None for value in values])
    if axis.kind == "category":
        texts = [str(value).lower() if isinstance(value, bool) else value for value in values]
        cells = {value: cell for cell, value in enumerate(axis.categories)}
        coordinates = [float(cells.get(text, axis.other)) for text in texts]
    else:
        coordinates = [0.0 if value is None else float(value) for value in values]
    return places(np.array(coordinates), null)


def hits(boxes: Boxes, query: int) -> np.ndarray:
    """In how many boxes of the query each row is."""
    at = np.stack([places_of(axis) for axis in boxes.axes], axis=1)[:, None, :]
    own = boxes.owner == query
    return np.asarray(((boxes.low[own] <= at) & (at < boxes.high[own])).all(axis=2).sum(axis=1))


def can_be_true(written: Written) -> bool:
    try:
        boxes_of([ANCHOR, RangeQuery("q", written.spark)], SCHEMA)
    except FlowError as error:
        if error.code != "QUERY_NEVER_TRUE":
            raise
        return False
    return True


@settings(max_examples=100)
@given(st.lists(predicates() | conjunctions(), min_size=1, max_size=3))
def test_a_row_is_in_a_box_exactly_where_the_predicate_is_true(
    duck: duckdb.DuckDBPyConnection, drawn: list[Written]
) -> None:
    expected = [np.array([written.truth(row) is True for row in ROWS]) for written in drawn]
    for written, truth in zip(drawn, expected, strict=True):
        found = duck.execute(f"select n from rows where {written.duck}").fetchnumpy()["n"]
        assert sorted(found.tolist()) == np.flatnonzero(truth).tolist(), "the two oracles differ"
    kept = [(written, truth) for written, truth in zip(drawn, expected, strict=True) if can_be_true(written)]
    assert sum(truth.any() for truth in expected) <= len(kept)
    queries = [ANCHOR, *(RangeQuery(str(q), written.spark) for q, (written, _) in enumerate(kept))]
    boxes = boxes_of(queries, SCHEMA)
    assert (np.diff(boxes.owner) >= 0).all()
    for q, (_, truth) in enumerate(kept, 1):
        assert hits(boxes, q).tolist() == truth.astype(int).tolist()


@given(predicates())
def test_boxes_of_a_query_are_not_empty_do_not_overlap_and_have_no_neighbour_to_merge_with(
    drawn: Written,
) -> None:
    if not can_be_true(drawn):
        return
    boxes = boxes_of([ANCHOR, RangeQuery("q", drawn.spark)], SCHEMA)
    low, high = boxes.low[1:], boxes.high[1:]
    assert (low < high).all()
    for i in range(len(low)):
        for j in range(i):
            apart = (high[i] <= low[j]) | (high[j] <= low[i])
            assert apart.any()
            same = (low[i] == low[j]) & (high[i] == high[j])
            touching = (high[i] == low[j]) | (high[j] == low[i])
            assert not (same.sum() == len(same) - 1 and touching[~same].all())


@given(predicates())
def test_a_filled_template_is_the_tree_that_parsing_gives(drawn: Written) -> None:
    (group,) = grouped([RangeQuery("q", drawn.spark)])
    assert group.predicate(0) == parse(drawn.spark)


@given(conjunctions())
def test_a_conjunction_is_the_same_box_whether_made_with_its_template_or_by_itself(drawn: Written) -> None:
    if not can_be_true(drawn):
        return
    # With an `or` it is no conjunction any more, though it means the same.
    boxes = boxes_of(
        [RangeQuery("shared", drawn.spark), RangeQuery("alone", f"({drawn.spark}) or false")], SCHEMA
    )
    half = len(boxes) // 2
    assert boxes.owner.tolist() == [0] * half + [1] * half
    assert boxes.low[:half].tolist() == boxes.low[half:].tolist()
    assert boxes.high[:half].tolist() == boxes.high[half:].tolist()


@settings(max_examples=50)
@given(predicates())
def test_negating_twice_changes_nothing(drawn: Written) -> None:
    if not can_be_true(drawn):
        return
    once, twice = (
        boxes_of([ANCHOR, RangeQuery("q", where)], SCHEMA)
        for where in (drawn.spark, f"not (not ({drawn.spark}))")
    )
    assert once.low.tolist() == twice.low.tolist()
    assert once.high.tolist() == twice.high.tolist()
