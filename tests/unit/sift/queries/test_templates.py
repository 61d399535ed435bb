from __future__ import annotations

import pytest

from tidegate.api.range_queries import RangeQuery
from tidegate.errors import FlowError
from tidegate.sift.queries import templates
from tidegate.sift.queries.predicates import Predicate
from tidegate.sift.queries.sql import parse
from tidegate.sift.queries.templates import TemplateGroup, grouped


def groups_of(*wheres: str) -> list[TemplateGroup]:
    return grouped([RangeQuery(str(i), where) for i, where in enumerate(wheres)])


def test_queries_that_differ_in_literals_alone_are_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def noting(where: str) -> Predicate:
        parsed.append(where)
        return parse(where)

    monkeypatch.setattr(templates, "parse", noting)
    groups_of("x1 > -1.5e3 and s = 'a'", "x1 > -2 and s = 'it is 3'", "x1 > -.5 and s = ''")
    assert parsed == ["x1 > -1 and s = '2'"]


def test_groups_come_in_the_order_of_their_first_query() -> None:
    groups = groups_of("x < 1", "`x` < 1", "y < 1", "x < 2", "`x` < 1")
    assert [group.members for group in groups] == [[0, 3], [1, 4], [2]]


def test_a_number_and_a_string_are_different_templates() -> None:
    assert len(groups_of("x = 1", "x = '1'")) == 2


@pytest.mark.parametrize(
    "where",
    [
        "x < 1 -- it's 5\n and y = 'b' -- it's",
        "x < 1 /* 2 */ and y < 3",
        "`a 5` < 5 and `it's` < 3",
        "x = \"it's 5\" and y = 'b'",
        r"x = 'it\'s 5' and y < 3",
        "x1 < 1 and x_2 < 2 and été < 3",
        "x<-1 and y>=-.5 or z=+3",
        "x in(1,'2',3)",
        "x = ''",
        "x between 1. and 2.",
    ],
)
def test_literals_are_found_where_the_parser_finds_them(where: str) -> None:
    (group,) = groups_of(where)
    assert group.predicate(0) == parse(where)


def test_an_error_shows_what_was_written_and_not_the_template() -> None:
    with pytest.raises(FlowError, match=r"QUERY_PREDICATE_UNSUPPORTED.*Range query '1' .*Got: x LIKE 'a%'"):
        groups_of("x < 3", "x like 'a%'")
