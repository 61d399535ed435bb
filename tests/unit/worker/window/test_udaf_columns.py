from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tidegate.worker.window.merged_rows import moment
from tidegate.worker.window.udaf_columns import Argument

ALL = slice(None)


def test_whole_numbers_stay_whole_where_their_own_slice_has_no_null() -> None:
    big = 2**62 + 1
    argument = Argument(pa.array([big, None, 3], pa.int64()))
    assert argument[0:1].tolist() == [big]
    assert argument[0:1].dtype == np.int64
    assert argument[1:3].dtype == np.float64
    np.testing.assert_array_equal(argument[1:3], [np.nan, 3.0])


def test_booleans_with_nulls_are_objects() -> None:
    argument = Argument(pa.array([True, None, False]))
    assert argument[ALL].tolist() == [True, None, False]
    assert argument[2:3].dtype == np.bool_


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (pa.array([1.5, 2.5], pa.float32()), [1.5, 2.5]),
        (pa.array(["a", None, ""]), ["a", None, ""]),
        (pa.array([b"x", None]), [b"x", None]),
        (pa.array([Decimal("1.50"), None]), [Decimal("1.50"), None]),
        (pa.array([{"a": 1, "b": None}, None]), [{"a": 1, "b": None}, None]),
        (pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())), [{"k": 1}, None]),
        (pa.array([[[1], [2, 3]], None]), [[[1], [2, 3]], None]),
    ],
)
def test_arguments_of_every_kind_are_arrays_of_plain_values(column: pa.Array, values: list[Any]) -> None:
    assert Argument(column)[ALL].tolist() == values


def test_floats_have_nan_for_null_and_times_have_nat() -> None:
    np.testing.assert_array_equal(Argument(pa.array([1.5, None]))[ALL], [1.5, np.nan])
    when = datetime(2026, 1, 2, tzinfo=UTC)
    times = Argument(pa.array([when, None], pa.timestamp("us", "UTC")))[ALL]
    assert times.dtype == np.dtype("datetime64[us]")
    assert np.isnat(times).tolist() == [False, True]


def test_arrays_of_numbers_are_numpy_arrays() -> None:
    first, second = Argument(pa.array([[1.0, 2.0], None]))[ALL]
    assert isinstance(first, np.ndarray)
    assert second is None


def test_arrays_cannot_be_changed_since_windows_share_them() -> None:
    for column in (pa.array([1, 2]), pa.array(["a", "b"]), pa.array([[1], [2]])):
        with pytest.raises(ValueError, match="read-only"):
            Argument(column)[0:1][0] = None


def test_times_are_readable_as_far_as_the_calendar_goes() -> None:
    assert moment(1_700_000_000_000_000) == "2023-11-14 22:13:20 UTC"
    assert moment(1_500_000) == "1970-01-01 00:00:01.500000 UTC"
    assert moment(2**60) == f"{2**60} microseconds after 1970"
