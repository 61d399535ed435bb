from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tidegate.edge.coordinates import of_column
from tidegate.sift.queries.axes import Axis

NUMBER = Axis("x")
KIND = Axis("kind", "category", ("bus", "taxi"))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, None, 3], pa.int64()),
        pa.array([1, None, 3], pa.uint8()),
        pa.array([1.0, None, 3.0], pa.float32()),
        pa.array([Decimal(1), None, Decimal(3)], pa.decimal128(5, 2)),
        pa.chunked_array([[1.0], [None, 3.0]]),
    ],
)
def test_numbers_of_every_type_are_coordinates(column: Any) -> None:
    assert np.array_equal(of_column(NUMBER, column), [1, np.nan, 3], equal_nan=True)


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["taxi", None, "tram"]),
        pa.array(["taxi", None, "tram"], pa.large_string()),
        pa.array(["taxi", None, "tram"]).dictionary_encode(),
    ],
)
def test_categories_are_cells_and_all_others_share_the_last(column: Any) -> None:
    assert np.array_equal(of_column(KIND, column), [1, np.nan, 2], equal_nan=True)


def test_booleans_are_categories() -> None:
    axis = Axis("paid", "category", ("true",))
    assert np.array_equal(of_column(axis, pa.array([True, False, None])), [0, 1, np.nan], equal_nan=True)


def test_a_column_of_nulls_is_in_no_region() -> None:
    assert np.isnan(of_column(NUMBER, pa.nulls(3))).all()


@pytest.mark.parametrize("column", [pa.array(["1"]), pa.array([True]), pa.array([[1]])])
def test_a_column_without_numbers_is_refused(column: Any) -> None:
    with pytest.raises(pa.ArrowInvalid, match="has no numbers"):
        of_column(NUMBER, column)
