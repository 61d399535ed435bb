"""The catalogue's formulas against DuckDB: partials by the catalogue's own SQL, merged and finished here."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pytest

from tidegate.window.aggregate.aggregates import Aggregate, aggregate
from tidegate.window.aggregate.closing import Stretches, closing_windows
from tidegate.window.aggregate.columns import Column
from tidegate.window.aggregate.combine import combine
from tidegate.window.aggregate.finals import finish
from tidegate.window.aggregate.merge_runs import Merged, PartialRun, merge_runs
from tidegate.window.panes import Panes
from tidegate.window.spec import WindowSpec
from tidegate_lab.simulate.windows.run_columns import in_order

PANES = Panes(WindowSpec(7, 3))
WINDOWS = 12


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    """Numbers far from zero, a third of them null; groups with a single row, and with nulls only."""
    random = np.random.default_rng(5)
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE rows (g UBIGINT, t BIGINT, run INT, x DOUBLE, y DOUBLE, i BIGINT, b BOOLEAN)"
    )
    for _ in range(400):
        group = int(random.integers(0, 8))
        x = None if random.random() < 0.3 or group == 3 else 1e6 + float(random.normal())
        y = None if random.random() < 0.3 else float(random.normal()) + (x or 0.0) / 2
        values = [group, int(random.integers(0, 40)), int(random.integers(0, 3)), x, y]
        integer = None if random.random() < 0.3 else int(random.integers(-50, 50))
        flag = None if random.random() < 0.3 else bool(random.random() < 0.7)
        connection.execute("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?)", [*values, integer, flag])
    return connection


def pane_sql() -> str:
    return "(t // 3) * 2 + CAST(t % 3 >= 1 AS BIGINT)"


def columns_of(
    database: duckdb.DuckDBPyConnection, run: int, texts: list[str]
) -> tuple[PartialRun, list[Column]]:
    select = ", ".join(["g", pane_sql(), *(text.replace("0D", "0.0::DOUBLE") for text in texts)])
    found = database.execute(
        f"SELECT {select} FROM rows WHERE run = {run} GROUP BY 1, 2 ORDER BY 1, 2"
    ).fetchall()
    code, pane, *partials = zip(*found, strict=True)
    return PartialRun(np.array(code, np.uint64), np.array(pane, np.int64)), [
        column(values) for values in partials
    ]


def column(values: tuple[Any, ...]) -> Column:
    present = [value for value in values if value is not None]
    kind: type = type(present[0]) if present else float
    filled = np.array([kind(0) if value is None else value for value in values], np.dtype(kind))
    return Column(filled, np.array([value is not None for value in values], np.bool_))


def by_windows(
    database: duckdb.DuckDBPyConnection, one: Aggregate, arguments: list[str]
) -> dict[tuple[int, int], Any]:
    """The way of the engine: partials of three runs, merged over windows, finished."""
    texts = [text.format(*arguments, time="t") for part in one.parts for text in part.pane]
    runs = [columns_of(database, run, texts) for run in range(3)]
    merged: Merged = merge_runs([run for run, _ in runs])
    closed: Stretches = closing_windows(merged, PANES, 0, WINDOWS)
    finished: list[Column] = []
    taken = 0
    for part in one.parts:
        numbers = range(taken, taken + len(part.pane))
        inputs = [in_order([columns[k] for _, columns in runs], merged.order) for k in numbers]
        finished += combine(part.merge, inputs, closed)
        taken += len(part.pane)
    result = finish(one.final, finished)
    valid = np.ones(closed.count, np.bool_) if result.valid is None else result.valid
    groups = merged.group[closed.begin].tolist()
    shown = [value if there else None for value, there in zip(result.values.tolist(), valid, strict=True)]
    return dict(zip(zip(groups, closed.at.tolist(), strict=True), shown, strict=True))


def by_duckdb(database: duckdb.DuckDBPyConnection, call: str) -> dict[tuple[int, int], Any]:
    found = database.execute(
        f"SELECT g, w, {call} FROM rows, range({WINDOWS}) AS windows(w) "
        "WHERE t >= w * 3 AND t < w * 3 + 7 GROUP BY g, w"
    ).fetchall()
    return {(group, window): value for group, window, value in found}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        *((name, ["x"]) for name in ("count", "sum", "avg", "min", "max")),
        *((name, ["x"]) for name in ("var_samp", "var_pop", "stddev_samp", "stddev_pop")),
        *((name, ["x", "y"]) for name in ("covar_samp", "covar_pop", "corr")),
        *((name, ["i"]) for name in ("count", "avg", "min", "max", "bit_and", "bit_or", "bit_xor")),
        *((name, ["b"]) for name in ("bool_and", "bool_or", "count_if")),
        ("sum", ["CAST(i AS INTEGER)"]),
    ],
)
def test_windows_of_partials_equal_those_of_duckdb(
    database: duckdb.DuckDBPyConnection, name: str, arguments: list[str]
) -> None:
    found = by_windows(database, aggregate(name), arguments)
    expected = by_duckdb(database, f"{name}({', '.join(arguments)})")
    assert found.keys() == expected.keys()
    assert len(found) > 80
    for key, value in expected.items():
        if isinstance(value, float) and value != value:
            value = None  # DuckDB's correlation of a constant is NaN
        assert found[key] == (value if value is None else pytest.approx(value, rel=1e-9, abs=1e-9)), key


@pytest.mark.parametrize("name", ["var_pop", "skewness", "kurtosis", "covar_pop"])
@pytest.mark.parametrize(
    ("x", "spread"), [("1.5", 0.0), ("'nan'", np.nan), ("'-inf'", np.nan), ("NULL", None)]
)
def test_a_single_row_has_no_spread_unless_it_is_no_number(name: str, x: str, spread: float | None) -> None:
    found = aggregate(name)
    arguments = [f"{x}::DOUBLE", "2.5::DOUBLE"][: found.arguments]
    # Lines in front are a count and means.
    texts = [text.format(*arguments) for text in found.parts[0].row[1 + found.arguments :]]
    values = duckdb.connect().execute(f"SELECT {', '.join(texts)}").fetchall()[0]
    np.testing.assert_equal(values[0], spread)
    np.testing.assert_equal(values[-1], spread)
