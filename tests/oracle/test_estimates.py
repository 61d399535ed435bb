"""Estimated aggregates against DuckDB: partials by the catalogue's own SQL, and rows weighed one by one."""

from __future__ import annotations

import re
from typing import Any

import duckdb
import numpy as np
import pytest

from tidegate.errors import FlowError
from tidegate.window.aggregate.aggregates import Merge, aggregate
from tidegate.window.aggregate.closing import Stretches
from tidegate.window.aggregate.columns import Column
from tidegate.window.aggregate.combine import combine
from tidegate.window.aggregate.finals import finish
from tidegate.window.estimate.estimates import AVERAGE, COUNT, SUM, estimated
from tidegate.window.estimate.horvitz_thompson import estimate

BATCHES = 5


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    """Kept rows of one window, in batches of different weights; the last one kept all rows."""
    rng = np.random.default_rng(4)
    connection = duckdb.connect()
    connection.execute("CREATE TABLE rows (batch INT, weight DOUBLE, x DOUBLE, y DOUBLE, b BOOLEAN)")
    for _ in range(300):
        batch = int(rng.integers(0, BATCHES))
        weight = 1 / (0.2 * (batch + 1))
        x = None if rng.random() < 0.2 or batch == 2 else 1e5 + float(rng.gamma(0.7, 20))
        y = float(rng.normal()) + (x or 0.0) / 3
        flag = None if rng.random() < 0.1 else bool(rng.random() < 0.4)
        connection.execute("INSERT INTO rows VALUES (?, ?, ?, ?, ?)", [batch, weight, x, y, flag])
    return connection


def sql(text: str, *arguments: str) -> str:
    """The dialect of DuckDB: Spark writes doubles with a D, and its skewness is not corrected for bias."""
    text = text.format(*arguments, weight="weight", time="0")
    text = re.sub(r"\b([\d.]+)D\b", r"\1::DOUBLE", text)
    corrected = r"(skewness(\1) * (count(\1) - 2) / sqrt(count(\1) * (count(\1) - 1.0)))"
    return re.sub(r"skewness\((\w+)\)", corrected, text)


def merged(
    database: duckdb.DuckDBPyConnection, name: str, arguments: list[str], by_row: bool
) -> list[Column]:
    """Partial columns of the window: a partial per batch, or per row."""
    found: list[Column] = []
    for part in estimated(aggregate(name)).parts:
        texts = part.row if by_row else part.pane
        select = ", ".join(sql(text, *arguments) for text in texts)
        group = "" if by_row else "GROUP BY batch, weight"
        rows = database.execute(f"SELECT {select} FROM rows {group}").fetchall()
        columns = [_column(list(values), part.merge) for values in zip(*rows, strict=True)]
        whole = Stretches(np.array([0]), np.array([0]), np.array([len(rows)]))
        found += combine(part.merge, columns, whole)
    return found


def _column(values: list[Any], merge: Merge) -> Column:
    kind = np.float64 if merge is not Merge.SUM or any(isinstance(v, float) for v in values) else np.int64
    filled = np.array([0 if value is None else value for value in values], kind)
    return Column(filled, np.array([value is not None for value in values]))


@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize(
    ("name", "argument", "weighed"),
    [
        ("count", "x", "sum(weight) FILTER (x IS NOT NULL)"),
        ("count", "1", "sum(weight)"),
        ("count_if", "b", "sum(weight) FILTER (b)"),
        ("sum", "x", "sum(weight * x)"),
        ("avg", "x", "sum(weight * x) / sum(weight) FILTER (x IS NOT NULL)"),
    ],
)
def test_totals_are_those_of_rows_weighed_one_by_one(
    database: duckdb.DuckDBPyConnection, name: str, argument: str, weighed: str, by_row: bool
) -> None:
    final = estimated(aggregate(name)).final
    assert final in (COUNT, SUM, AVERAGE)
    columns = [column.filled(0).astype(np.float64) for column in merged(database, name, [argument], by_row)]
    wanted = database.execute(f"SELECT {weighed} FROM rows").fetchall()[0][0]
    assert estimate(final, columns)[0] == pytest.approx(wanted, rel=1e-12)
    missing, spread, squares = columns[{COUNT: 1, SUM: 1, AVERAGE: 2}[final] :][:3]
    counted = {"count": f"{argument} IS NOT NULL", "count_if": "b"}.get(name, "x IS NOT NULL")
    sums = "sum(weight - 1), sum(weight * (weight - 1)), sum((weight * (weight - 1)) ** 2)"
    found = database.execute(f"SELECT {sums} FROM rows WHERE {counted}").fetchall()[0]
    assert [missing[0], spread[0], squares[0]] == pytest.approx(found, rel=1e-12)


@pytest.mark.parametrize("by_row", [False, True])
def test_the_spread_of_values_is_that_of_rows_weighed_one_by_one(
    database: duckdb.DuckDBPyConnection, by_row: bool
) -> None:
    weight, mean, m2, m3 = (column.values[0] for column in merged(database, "sum", ["x"], by_row)[-4:])
    x, w = database.execute("SELECT x, weight FROM rows WHERE x IS NOT NULL").fetchnumpy().values()
    u = w * (w - 1)
    centre = (u * x).sum() / u.sum()
    wanted = [u.sum(), centre, (u * (x - centre) ** 2).sum(), (u * (x - centre) ** 3).sum()]
    assert [weight, mean, m2, m3] == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("by_row", [False, True])
def test_variances_are_those_of_rows_repeated_as_often_as_they_count(
    database: duckdb.DuckDBPyConnection, by_row: bool
) -> None:
    x, y, w = database.execute("SELECT x, y, weight FROM rows WHERE x IS NOT NULL").fetchnumpy().values()
    mean_x, mean_y = np.average(x, weights=w), np.average(y, weights=w)
    variance = np.average((x - mean_x) ** 2, weights=w)
    covariance = np.average((x - mean_x) * (y - mean_y), weights=w)
    for name, arguments, wanted in (
        ("var_pop", ["x"], variance),
        ("stddev_pop", ["x"], np.sqrt(variance)),
        ("var_samp", ["x"], variance * w.sum() / (w.sum() - 1)),
        ("skewness", ["x"], np.average((x - mean_x) ** 3, weights=w) / variance**1.5),
        ("covar_pop", ["x", "y"], covariance),
        ("corr", ["x", "y"], covariance / np.sqrt(variance * np.average((y - mean_y) ** 2, weights=w))),
    ):
        made = finish(estimated(aggregate(name)).final, merged(database, name, arguments, by_row))
        assert made.values[0] == pytest.approx(wanted, rel=1e-6), name


@pytest.mark.parametrize("name", ["min", "max", "first", "last", "min_by", "bool_or", "bit_xor"])
def test_other_aggregates_stay_what_they_are(name: str) -> None:
    assert estimated(aggregate(name)) == aggregate(name)


@pytest.mark.parametrize("name", ["collect_list", "array_agg", "collect_set"])
def test_no_list_of_some_rows_passes_for_one_of_all(name: str) -> None:
    with pytest.raises(FlowError, match="cannot be estimated"):
        estimated(aggregate(name))
