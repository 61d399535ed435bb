from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tidegate.window.aggregate.aggregates import AggregatePart, Merge
from tidegate.window.aggregate.closing import Stretches
from tidegate.worker.window.partial_columns import as_arrow, as_column, merged_partials

MONEY = pa.decimal128(20, 2)
NAN = math.nan


def money(*values: str | None) -> pa.Array:
    return pa.array([None if value is None else Decimal(value) for value in values], MONEY)


#: Arrays with something at both ends that a slice leaves out.
PADDED = {
    "integers": pa.array([7, 1, None, -(2**63), 2**63 - 1, 7]),
    "short integers": pa.array([7, 1, None, -128, 7], pa.int8()),
    "reals": pa.array([7.0, 1.5, None, -math.inf, 7.0]),
    "short reals": pa.array([7.0, 1.5, None, -0.25, 7.0], pa.float32()),
    "booleans": pa.array([True, True, False, None, False, True]),
    "decimals": money("7.00", "-0.01", None, "99999999999999.99", "-99999999999999.99", "7.00"),
    "no nulls": money("7.00", "-1.00", "2.00", "7.00"),
    "only nulls": pa.nulls(5, MONEY),
    "only null booleans": pa.nulls(5, pa.bool_()),
    "only null integers": pa.nulls(5, pa.int16()),
}


@pytest.mark.parametrize("array", PADDED.values(), ids=PADDED)
@pytest.mark.parametrize("offset", [0, 1, 3])
def test_an_array_comes_back_from_the_kernels_as_it_was(array: pa.Array, offset: int) -> None:
    part = array.slice(offset, len(array) - 1 - offset)
    column = as_column(part)
    assert len(column.values) == len(part)
    assert as_arrow(column, array.type).to_pylist() == part.to_pylist()


@pytest.mark.parametrize("array", PADDED.values(), ids=PADDED)
def test_no_rows_are_no_rows(array: pa.Array) -> None:
    for empty in (array.slice(2, 0), pa.array([], array.type)):
        back = as_arrow(as_column(empty), array.type)
        assert back.type == array.type
        assert not len(back)


def test_a_negative_decimal_is_the_two_s_complement_of_two_words() -> None:
    column = as_column(money("-0.01", "1.00"))
    assert column.decimal
    assert column.values.tolist() == [[2**64 - 1, 2**64 - 1], [100, 0]]


def test_a_decimal_that_is_null_is_not_valid() -> None:
    valid = as_column(money("1.00", None, "-2.00").slice(1)).valid
    assert valid is not None
    assert valid.tolist() == [False, True]


# -- merging -------------------------------------------------------------------------------------------------


def stretches(*bounds: tuple[int, int]) -> Stretches:
    begin, end = (np.array(side, np.int64) for side in zip(*bounds, strict=True))
    return Stretches(np.arange(len(bounds)), begin, end)


def merged(merge: Merge, column: pa.Array, *bounds: tuple[int, int]) -> list[Any]:
    (result,) = merged_partials(AggregatePart(merge, ("x",), ("x",)), [column], stretches(*bounds))
    assert result.type == column.type
    values: list[Any] = result.to_pylist()
    return values


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        (pa.string(), "Z", "ß"),
        (pa.binary(), b"\x00", b"\xff"),
        (pa.date32(), date(1969, 1, 1), date(2026, 1, 1)),
        (pa.timestamp("us", "UTC"), datetime(1969, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)),
        (pa.timestamp("us"), datetime(1969, 1, 1), datetime(2026, 1, 1)),
        (pa.duration("us"), timedelta(days=-1), timedelta(seconds=1)),
        (pa.bool_(), False, True),
        (pa.int8(), -128, 127),
        (pa.float32(), -1.5, NAN),
        (MONEY, Decimal("-1.00"), Decimal("0.50")),
    ],
    ids=str,
)
def test_smallest_and_largest_of_any_type_leave_nulls_out(kind: pa.DataType, low: Any, high: Any) -> None:
    column = pa.array([None, high, low, None, None, low, high], kind)
    bounds = ((0, 3), (3, 5), (4, 7))
    assert merged(Merge.MIN, column, *bounds) == [low, None, low]
    # As text, since NaN is not equal to itself.
    assert str(merged(Merge.MAX, column, *bounds)) == str(pa.array([high, None, high], kind).to_pylist())


def pairs(kind: pa.DataType, value: pa.DataType, *rows: tuple[Any, Any] | None) -> pa.Array:
    cells = [None if row is None else {"key": row[0], "value": row[1]} for row in rows]
    return pa.array(cells, pa.struct([("key", kind), ("value", value)]))


def values_of(rows: list[Any]) -> list[Any]:
    return [None if row is None else row["value"] for row in rows]


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        (pa.int64(), -(2**63), 2**63 - 1),
        (pa.int32(), -5, 5),
        (pa.float64(), -math.inf, math.inf),
        (pa.float64(), math.inf, NAN),
        (pa.string(), "", "a"),
        (pa.bool_(), False, True),
        (MONEY, Decimal("-1.00"), Decimal("1.00")),
        (pa.timestamp("us"), datetime(1900, 1, 1), datetime(2026, 1, 1)),
    ],
    ids=str,
)
@pytest.mark.parametrize("turned", [False, True])
def test_at_one_time_null_comes_before_all_values_and_nan_behind_them(
    kind: pa.DataType, low: Any, high: Any, turned: bool
) -> None:
    values = [None, low, high][:: -1 if turned else 1]
    column = pairs(pa.int64(), kind, *((3, value) for value in values), (4, low))
    assert values_of(merged(Merge.FIRST, column, (0, 3), (0, 4))) == [None, None]
    assert str(values_of(merged(Merge.LAST, column, (0, 3), (0, 4)))) == str([high, low])


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        (pa.float64(), [NAN, 1.0, math.inf]),
        (pa.float64(), [NAN, -math.inf, NAN]),
        (pa.string(), ["b", "B", "a"]),
        (pa.bool_(), [True, False, True]),
        (pa.date32(), [date(2026, 1, 1), date(1960, 1, 1), date(1970, 1, 1)]),
        (MONEY, [Decimal("1.00"), Decimal("-1.00"), Decimal("0.00")]),
    ],
    ids=str,
)
def test_keys_of_any_type_choose_the_row(kind: pa.DataType, keys: list[Any]) -> None:
    column = pairs(kind, pa.string(), None, *zip(keys, ("most", "least", "more"), strict=True), None)
    assert values_of(merged(Merge.FIRST, column, (0, 4), (4, 5))) == ["least", None]
    assert values_of(merged(Merge.LAST, column, (0, 4), (4, 5))) == ["most", None]


def test_zeros_of_either_sign_are_one_key() -> None:
    column = pairs(pa.float64(), pa.string(), (0.0, "b"), (-0.0, "a"), (0.0, "c"))
    assert values_of(merged(Merge.FIRST, column, (0, 3))) == ["a"]
    assert values_of(merged(Merge.LAST, column, (0, 3))) == ["c"]


def test_values_without_a_type_are_null() -> None:
    assert values_of(merged(Merge.FIRST, pairs(pa.int64(), pa.null(), (1, None), (2, None)), (0, 2))) == [
        None
    ]


def test_sums_of_nothing_but_nulls_are_null_and_of_types_as_they_came() -> None:
    column = money(None, "-1.25", "0.25", None, None)
    assert merged(Merge.SUM, column, (0, 3), (3, 5)) == [Decimal("-1.00"), None]
    assert merged(Merge.SUM, pa.array([None, None, 3]), (0, 2), (1, 3)) == [None, 3]
