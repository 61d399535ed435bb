from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import types as T
from tests.unit.messages.expecting import expect

from tidegate.driver.compile.windows.aggregate_calls import without_flag
from tidegate.driver.compile.windows.window_aggregates import _known, check_types
from tidegate.errors import FlowError
from tidegate.window.aggregate.aggregates import CATALOGUE, aggregate

LISTS = T.ArrayType(T.IntegerType())
MONEY = T.DecimalType(9, 2)


@pytest.mark.parametrize(
    ("function", "kinds"),
    [
        ("sum", [T.IntegerType()]),
        ("sum", [MONEY]),
        ("avg", [T.FloatType()]),
        ("corr", [T.DoubleType(), MONEY]),
        ("bit_xor", [T.ByteType()]),
        ("bool_or", [T.BooleanType()]),
        ("count_if", [T.BooleanType()]),
        ("count", [LISTS]),
        ("count", [T.NullType()]),
        ("min", [T.StringType()]),
        ("max", [T.DateType()]),
        ("first", [T.BinaryType()]),
        ("last", [T.NullType()]),
        ("max_by", [T.TimestampNTZType(), T.DayTimeIntervalType()]),
    ],
)
def test_aggregates_take_the_types_that_they_are_made_for(function: str, kinds: list[T.DataType]) -> None:
    check_types("x", aggregate(function), kinds)


@pytest.mark.parametrize(
    ("function", "kinds", "says"),
    [
        ("sum", [T.StringType()], r"'x': sum does not take this type\. Got: string\. .*takes numeric types"),
        ("sum", [T.DayTimeIntervalType()], "interval day to second"),
        ("avg", [T.BooleanType()], "Got: boolean"),
        ("var_pop", [T.TimestampType()], "Got: timestamp"),
        ("corr", [T.DoubleType(), T.StringType()], "Got: double, string"),
        ("bit_and", [T.DoubleType()], "takes integral types"),
        ("bool_and", [T.IntegerType()], "takes boolean types"),
        ("min", [LISTS], r"takes orderable types.*Cast"),
        ("first", [T.StructType([T.StructField("a", T.IntegerType())])], r"Got: struct<a:int>"),
        ("max_by", [T.StringType(), LISTS], "array<int>"),
        ("last", [T.MapType(T.StringType(), T.StringType())], "map<string,string>"),
    ],
)
def test_other_types_are_refused_before_anything_runs(
    function: str, kinds: list[T.DataType], says: str
) -> None:
    with pytest.raises(FlowError, match=f"AGGREGATE_TYPE_INVALID.*{says}"):
        check_types("x", aggregate(function), kinds)


def test_every_family_of_types_in_the_catalogue_is_known() -> None:
    for one in CATALOGUE.values():
        check_types("x", one, [])


class Nodes:
    """Arguments as Java has them: literals, or names of columns."""

    def __init__(self, *nodes: object) -> None:
        self._left = list(nodes)

    def iterator(self) -> Nodes:
        return self

    def hasNext(self) -> bool:  # noqa: N802 - Scala's name
        return bool(self._left)

    def next(self) -> Any:
        one = self._left.pop(0)
        kind = "UnresolvedAttribute" if isinstance(one, str) else "Literal"
        return SimpleNamespace(
            getClass=lambda: SimpleNamespace(getSimpleName=lambda: kind), value=lambda: one, name=one
        )


@pytest.mark.parametrize("function", ["first", "LAST", "any_value", "first_value"])
def test_the_flag_that_spark_s_functions_always_write_down_is_no_argument(function: str) -> None:
    (kept,) = without_flag("x", function, Nodes("fare", False))
    assert kept.name == "fare"
    assert len(without_flag("x", function, Nodes("fare"))) == 1


@pytest.mark.parametrize("flag", [True, "column"])
def test_to_ignore_nulls_is_refused_with_another_way(flag: object) -> None:
    with pytest.raises(
        FlowError, match=r"AGGREGATE_IGNORES_NULLS.*'x': nulls cannot be ignored over windows.*max_by"
    ):
        without_flag("x", "first", Nodes("fare", flag))


@pytest.mark.parametrize("function", ["max_by", "corr", "sum"])
def test_other_aggregates_keep_all_that_they_are_given(function: str) -> None:
    assert len(without_flag("x", function, Nodes("fare", False))) == 2


def test_unknown_aggregates_are_not_asked_for_flags() -> None:
    assert len(without_flag("x", "percentile", Nodes("fare", 0.5))) == 2


@pytest.mark.parametrize(
    ("function", "given", "takes"),
    [("count", 2, "1"), ("max_by", 1, "2"), ("percentile_approx", 1, "2 to 3"), ("sum", 0, "1")],
)
def test_an_aggregate_has_its_number_of_arguments(function: str, given: int, takes: str) -> None:
    error = expect("AGGREGATE_ARGUMENTS_INVALID", lambda: _known("x", function, given))
    assert f"takes {takes} argument(s)" in error.details["problem"]
