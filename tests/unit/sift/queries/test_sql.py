from __future__ import annotations

from decimal import Decimal

import pytest

from tidegate.errors import FlowError
from tidegate.sift.queries.predicates import (
    And,
    Compare,
    ConstantTruth,
    Not,
    Number,
    Or,
    Predicate,
    comparisons,
)
from tidegate.sift.queries.sql import parse


def less(column: str, number: Number) -> Compare:
    return Compare(column, "<", (number,))


@pytest.mark.parametrize(
    ("where", "tree"),
    [
        ("x < 5", less("x", 5)),
        ("5 > x", less("x", 5)),
        ("((x)) < (- -5)", less("x", 5)),
        ("x < -5", less("x", -5)),
        ("x < -(.5)", less("x", Decimal("-0.5"))),
        ("x < 1.5E-3", less("x", 0.0015)),
        ("x == 1", Compare("x", "=", (1,))),
        ("x <> 1", Not(Compare("x", "=", (1,)))),
        ("x != 'a'", Not(Compare("x", "=", ("a",)))),
        ('x = "a"', Compare("x", "=", ("a",))),
        (r"x = 'it\'s'", Compare("x", "=", ("it's",))),
        (r"x = 'a\\b'", Compare("x", "=", ("a\\b",))),
        ("x = true", Compare("x", "=", (True,))),
        ("flag", Compare("flag", "=", (True,))),
        ("x is true", Compare("x", "<=>", (True,))),
        ("`a b` < 5", less("a b", 5)),
        ("`a.b` < 5", less("a.b", 5)),
        ("x is null", Compare("x", "<=>", (None,))),
        ("x is not null", Not(Compare("x", "<=>", (None,)))),
        ("x <=> 3", Compare("x", "<=>", (3,))),
        ("x in (1, -2, null)", Compare("x", "=", (1, -2, None))),
        ("x not in ('a')", Not(Compare("x", "=", ("a",)))),
        ("x between 1 and 2", And((Compare("x", ">=", (1,)), Compare("x", "<=", (2,))))),
        ("true", ConstantTruth(True)),
        ("null", ConstantTruth(None)),
        ("x < 1 or y < 2 and z < 3", Or((less("x", 1), And((less("y", 2), less("z", 3)))))),
        ("not x < 1 and y < 2", And((Not(less("x", 1)), less("y", 2)))),
        # The example of the paper, section II-B.
        ("not (x < 4 and (x < 3 or y < 5))", Not(And((less("x", 4), Or((less("x", 3), less("y", 5))))))),
    ],
)
def test_a_predicate_is_read_into_comparisons(where: str, tree: Predicate) -> None:
    assert parse(where) == tree


def test_a_decimal_keeps_digits_that_a_float_would_lose() -> None:
    assert parse("x < 4.99999999999999999999") == Compare("x", "<", (Decimal("4.99999999999999999999"),))


def test_comparisons_come_in_the_order_in_which_they_are_written() -> None:
    tree = parse("not (b < 1 or true) and (a = 2 or c > 3)")
    assert [comparison.column for comparison in comparisons(tree)] == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("where", "shown"),
    [
        ("x like 'a%'", "x LIKE 'a%'"),
        ("x < 3 and abs(y) < 2", r"ABS\(y\) < 2"),
        ("x + 1 < 2", r"x \+ 1 < 2"),
        ("x < 1 + 1", r"x < 1 \+ 1"),
        ("x < y", "x < y. It compares two columns"),
        ("1 < 2", "1 < 2. Neither side is a column"),
        ("x < cast('3' as double)", "CAST"),
        ("x < 3L", "CAST"),
        ("x > date '2020-01-01'", "CAST"),
        ("x > interval '1' day", "INTERVAL"),
        ("x in (select 1)", "SELECT 1"),
        ("x in (1, y)", r"x IN \(1, y\)"),
        ("x in ()", "x IN"),
        ("exists (select 1)", "EXISTS"),
        ("x between symmetric 2 and 1", "BETWEEN"),
        ("x = 'it''s'", "write a quote inside"),
        ("x = -'a'", "x = -'a'"),
        ("x = r'a'", "x = "),
        ("x < 5e", "x < 5e"),
        ("case when x < 1 then true end", "CASE"),
        ("x < 1; y < 2", "x < 1"),
        ("x < 1 as z", "x < 1 AS z"),
        ("select x", "SELECT x"),
        ("7", "Got: 7"),
    ],
)
def test_what_is_no_range_is_refused_and_shown(where: str, shown: str) -> None:
    with pytest.raises(
        FlowError, match=f"QUERY_PREDICATE_UNSUPPORTED.*{shown}.*Compare columns with literals"
    ):
        parse(where)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("x <", "QUERY_SQL_INVALID.* Got: x <"),
        ("x < 1 limit 5", "QUERY_SQL_INVALID"),
        ("x = 'a", "QUERY_SQL_INVALID"),
        ("-- nothing", "QUERY_SQL_INVALID"),
        (r"x = 'a\nb'", "QUERY_ESCAPE_UNSUPPORTED"),
        ("t.x < 1", "QUERY_PREDICATE_UNSUPPORTED.* Got: t.x"),
        ("(" * 2000 + "x < 1" + ")" * 2000, "QUERY_TOO_COMPLEX.*nested too deeply"),
    ],
)
def test_what_cannot_be_read_is_refused(where: str, said: str) -> None:
    with pytest.raises(FlowError, match=said):
        parse(where)
