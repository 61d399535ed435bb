from __future__ import annotations

import pytest

from tidegate.errors import FlowError
from tidegate.window.aggregate.aggregates import CATALOGUE, Aggregate, Merge, aggregate, result_type


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("mean", "avg"),
        ("STDDEV", "stddev_samp"),
        ("some", "bool_or"),
        ("every", "bool_and"),
        ("std", "stddev_samp"),
    ],
)
def test_spark_s_other_names_mean_the_same(name: str, meant: str) -> None:
    assert aggregate(name) is CATALOGUE[meant]


def test_an_unknown_aggregate_is_refused_with_a_way_out() -> None:
    with pytest.raises(
        FlowError, match=r"AGGREGATE_UNKNOWN.*Got: histogram_numeric.*all its rows.*max_by.*tg\.Aggregator"
    ):
        aggregate("histogram_numeric")


@pytest.mark.parametrize("one", CATALOGUE.values(), ids=CATALOGUE)
def test_texts_ask_for_no_more_arguments_than_there_are(one: Aggregate) -> None:
    arguments = ["x", "y"][: one.arguments]
    for part in one.parts:
        assert part.pane
        assert len(part.row) in (0, len(part.pane)), "a row has the same partials as a pane"
        for text in (*part.pane, *part.row):
            assert "{" not in text.format(*arguments, time="t", tie="h", check="c", size=9)


def test_only_sketches_have_no_text_for_a_single_row() -> None:
    without = {part.merge for one in CATALOGUE.values() for part in one.parts if not part.row}
    assert without == {Merge.DISTINCT, Merge.QUANTILES}


def test_aggregates_share_their_parts() -> None:
    assert aggregate("avg").parts[1] == aggregate("count").parts[0]
    assert aggregate("var_pop").parts == aggregate("stddev").parts


@pytest.mark.parametrize(
    ("name", "argument", "result"),
    [
        ("sum", "int", "bigint"),
        ("sum", "float", "double"),
        ("sum", "decimal(10,2)", "decimal(20,2)"),
        ("sum", "decimal(35,2)", "decimal(38,2)"),
        ("avg", "int", "double"),
        ("min", "string", "string"),
        ("count", "string", "bigint"),
        ("collect_set", "date", "array<date>"),
    ],
)
def test_results_have_the_types_that_spark_gives_them(name: str, argument: str, result: str) -> None:
    assert result_type(aggregate(name), argument) == result


def test_an_average_of_decimals_is_a_decimal() -> None:
    assert result_type(aggregate("avg", decimal=True), "decimal(10,2)") == "decimal(14,6)"
