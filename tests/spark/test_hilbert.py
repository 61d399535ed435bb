"""Cells of places: Spark and numpy say the same."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import tidegate as tg
from tidegate.route.hilbert import NO_CELL, cell_bounds


def test_spark_and_numpy_give_the_same_cells_and_cells_hold_their_places(spark: SparkSession) -> None:
    rng = np.random.default_rng(3)
    lat, lon = rng.uniform(-95, 95, 3000), rng.uniform(-190, 190, 3000)
    lat[:6], lon[:6] = [90, -90, 0, np.nan, 37.7749, 0], [180, -180, 0, 0, -122.4194, np.inf]
    frame = spark.createDataFrame(pa.table({"lat": lat, "lon": lon}))
    widths = (1, 3, 4, 9, 16, 31)
    cells = frame.select(*[tg.hilbert("lat", "lon", bits).alias(f"c{bits}") for bits in widths]).toArrow()
    for bits in widths:
        got = cells.column(f"c{bits}").fill_null(NO_CELL).to_numpy()
        assert (got == tg.hilbert(lat, lon, bits)).all()
        south, west, north, east = cell_bounds(got, bits)
        known = got != NO_CELL
        assert known.sum() > 2000
        assert ((south <= lat) & (lat <= north) & (west <= lon) & (lon <= east))[known].all()


def test_bits_out_of_range_are_refused(spark: SparkSession) -> None:
    with pytest.raises(tg.FlowError, match="HILBERT_BITS_INVALID"):
        tg.hilbert("lat", "lon", 32)


def test_places_are_columns_or_arrays(spark: SparkSession) -> None:
    with pytest.raises(tg.FlowError, match=r"HILBERT_COLUMN_INVALID.*lon.* Got: list"):
        tg.hilbert("lat", [1.0], 8)  # type: ignore[call-overload]
