from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tidegate.errors import BatchFailed
from tidegate.window.estimate.estimates import AVERAGE, COUNT, SUM
from tidegate.window.spec import WindowSpec
from tidegate.worker.runtime.layout import WindowLayout, WindowResult
from tidegate.worker.window.estimated_columns import estimated_values, with_bounds


def reals(*values: float) -> pa.Array:
    return pa.array([float(value) for value in values])


def weights(kept: int, weight: float) -> list[float]:
    spread = weight * (weight - 1)
    return [kept * (weight - 1), kept * spread, kept * spread * spread]


#: Three windows: of four exact rows, of a hundred rows of which each stands for two and a half, and of three
#: such rows; whose values are all but 7 on average.
COUNTS = pa.array([4, 100, 3])
WEIGHTS = [reals(*column) for column in zip(weights(4, 1.0), weights(100, 2.5), weights(3, 2.5), strict=True)]
VALUES = [reals(0, 1.5 * 700, 1.5 * 21), WEIGHTS[1], reals(0, 7, 7), reals(0, 3000, 30), reals(0, 900, 9)]


def columns_of(final: str, total: pa.Array) -> list[pa.Array]:
    if final == COUNT:
        return [COUNTS, *WEIGHTS]
    return [total, *([COUNTS] if final == AVERAGE else []), *WEIGHTS, *VALUES]


def test_counts_and_whole_sums_are_rounded_and_exact_where_all_rows_were_kept() -> None:
    assert estimated_values(COUNT, columns_of(COUNT, None), pa.int64()).to_pylist() == [4, 250, 8]
    huge = 2**62 + 1  # no double is this number
    total = pa.array([huge, 700, 21])
    assert estimated_values(SUM, columns_of(SUM, total), pa.int64()).to_pylist() == [huge, 1750, 52]


def test_decimals_stay_decimals() -> None:
    exact = Decimal("12345678901234567890.12")
    total = pa.array([exact, Decimal("700.10"), Decimal("21.00")], pa.decimal128(22, 2))
    found = estimated_values(SUM, columns_of(SUM, total), pa.decimal128(22, 2)).to_pylist()
    assert found == [exact, Decimal("1750.10"), Decimal("52.50")]
    means = estimated_values(AVERAGE, columns_of(AVERAGE, total), pa.decimal128(26, 6)).to_pylist()
    assert means == [exact / 4, Decimal("7.000400"), Decimal("7.000000")]


def test_nothing_but_nulls_has_no_sum_and_no_average() -> None:
    total = pa.array([None, 700.0, None], pa.float64())
    found = estimated_values(SUM, columns_of(SUM, total), pa.float64()).to_pylist()
    assert found == [None, 1750.0, None]


def test_what_does_not_fit_fails_the_batch() -> None:
    total = pa.array([0, 2**63 - 1, 0])
    with pytest.raises(BatchFailed, match=r"AGGREGATE_OVERFLOW.*64 bits"):
        estimated_values(SUM, columns_of(SUM, total), pa.int64())
    digits = pa.array([Decimal(0), Decimal(999), Decimal(0)], pa.decimal128(3, 0))
    with pytest.raises(BatchFailed, match=r"AGGREGATE_OVERFLOW.*3 digits"):
        estimated_values(SUM, columns_of(SUM, digits), pa.decimal128(3, 0))


def bounded(final: str, value: pa.Array, sampled: list[bool]) -> tuple[list[Any], list[Any]]:
    columns = columns_of(final, reals(28, 700, 21)) if final != "as it is" else [value]
    names = tuple(f"p{i}" for i in range(len(columns)))
    results = (WindowResult("x", final, names),)
    layout = WindowLayout("w", None, WindowSpec(1, 1), (), (), results, 1, b"", approximate=True)
    partials = dict(zip(names, columns, strict=True))
    made = with_bounds(layout, {"x": value}, partials, np.array(sampled))
    assert list(made) == ["x_low", "x_high"]
    return made["x_low"].to_pylist(), made["x_high"].to_pylist()


@pytest.mark.parametrize("final", [COUNT, SUM, AVERAGE])
def test_intervals_are_the_value_an_interval_or_nothing(final: str) -> None:
    value = estimated_values(final, columns_of(final, reals(28, 700, 21)), pa.float64())
    low, high = bounded(final, value.cast(pa.float64()), [False, True, True])
    assert low[0] == high[0] == value[0].as_py()
    assert low[1] < value[1].as_py() < high[1]
    assert low[2] is None
    assert high[2] is None


def test_kept_rows_that_stand_for_themselves_do_not_make_a_sampled_window_exact() -> None:
    low, high = bounded(COUNT, pa.array([4, 250, 8]), [True, True, True])
    assert low[0] is None
    assert high[0] is None


@pytest.mark.parametrize(
    ("values", "kind", "wanted"),
    [
        (["a", "b", None], pa.string(), ["a", None, None]),
        ([1, 2, 3], pa.int32(), [1.0, None, None]),
        ([Decimal("1.50"), Decimal(2), None], pa.decimal128(5, 2), [1.5, None, None]),
        ([True, False, None], pa.bool_(), [True, None, None]),
        ([[1, 2], [3], []], pa.list_(pa.int64()), [[1, 2], None, None]),
    ],
)
def test_other_aggregates_have_no_interval_where_rows_were_left_out(
    values: list[Any], kind: pa.DataType, wanted: list[Any]
) -> None:
    assert bounded("as it is", pa.array(values, kind), [False, True, True]) == (wanted, wanted)
