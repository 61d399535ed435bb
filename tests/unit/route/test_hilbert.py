"""Hilbert cells: every cell once, neighbours in order are neighbours in space, and back again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate.route.hilbert import BITS_MAX, STEPS, cell_bounds, hilbert

LAT, LON = st.floats(-90, 90), st.floats(-180, 180)
BITS = st.integers(1, BITS_MAX)


def one(lat: float, lon: float, bits: int) -> int:
    return int(hilbert(np.array([lat]), np.array([lon]), bits)[0])


def grid_centres(bits: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    centres = (np.arange(2**bits) + 0.5) / 2**bits
    lat, lon = np.meshgrid(180 * centres - 90, 360 * centres - 180, indexing="ij")
    return lat.ravel(), lon.ravel()


def test_the_smallest_curves_are_those_of_the_docstring() -> None:
    assert hilbert(*grid_centres(1), 1).reshape(2, 2).tolist() == [[0, 3], [1, 2]]
    assert hilbert(*grid_centres(2), 2).reshape(4, 4).tolist() == [
        [0, 1, 14, 15],
        [3, 2, 13, 12],
        [4, 7, 8, 11],
        [5, 6, 9, 10],
    ]


@pytest.mark.parametrize("bits", [1, 2, 3, 6])
def test_every_cell_has_one_number_and_consecutive_ones_are_neighbours(bits: int) -> None:
    lat, lon = grid_centres(bits)
    cells = hilbert(lat, lon, bits)
    assert sorted(cells.tolist()) == list(range(4**bits))
    order = np.argsort(cells)
    rows, columns = lat[order] * 2**bits / 180, lon[order] * 2**bits / 360
    assert np.abs(np.diff(rows)) + np.abs(np.diff(columns)) == pytest.approx(1)


@given(LAT, LON, BITS)
def test_a_place_lies_in_its_cell_and_the_middle_of_a_cell_has_its_number(
    lat: float, lon: float, bits: int
) -> None:
    cell = one(lat, lon, bits)
    assert 0 <= cell < 4**bits
    south, west, north, east = (float(bound[0]) for bound in cell_bounds(np.array([cell]), bits))
    # Bounds are rounded to doubles of their own size.
    assert south - 1e-12 <= lat <= north + 1e-12
    assert west - 1e-12 <= lon <= east + 1e-12
    assert (north - south, east - west) == pytest.approx((180 / 2**bits, 360 / 2**bits), rel=1e-3)
    assert one((south + north) / 2, (west + east) / 2, bits) == cell


@given(LAT, LON, st.integers(1, BITS_MAX - 1))
def test_one_bit_less_is_the_larger_cell_around_it(lat: float, lon: float, bits: int) -> None:
    assert one(lat, lon, bits + 1) >> 2 == one(lat, lon, bits)


@given(LAT, LON, st.integers(1, 12))
def test_the_unrolled_steps_of_the_docstring_give_the_same(lat: float, lon: float, bits: int) -> None:
    """In Python integers, as any other language would compute it."""
    x = min(int((lon + 180.0) / 360.0 * 2**bits), 2**bits - 1)
    y = min(int((lat + 90.0) / 180.0 * 2**bits), 2**bits - 1)
    v = cell = 0
    for bit in reversed(range(bits)):
        v = (STEPS >> (4 * ((v & 12) + 2 * (x >> bit & 1) + (y >> bit & 1)))) & 15
        cell = 4 * cell + (v & 3)
    assert cell == one(lat, lon, bits)


def test_edges_belong_to_the_last_row_and_column() -> None:
    assert one(-90, -180, 4) == 0
    assert one(-90, 180, 4) == 4**4 - 1
    assert one(90, 180, 4) == one(89.9, 179.9, 4)
    assert one(np.nextafter(90, 0), 0, 31) == one(90, 0, 31)
    assert one(-0.0, -0.0, 8) == one(0.0, 0.0, 8)


@pytest.mark.parametrize(
    ("lat", "lon"),
    [(np.nan, 0), (0, np.nan), (90.1, 0), (-90.1, 0), (0, 180.1), (0, -181), (np.inf, 0), (0, -np.inf)],
)
def test_what_is_no_place_has_no_cell(lat: float, lon: float) -> None:
    assert one(lat, lon, 8) == -1


def test_numbers_that_no_cell_has_have_no_bounds() -> None:
    for bound in cell_bounds(np.array([-1, 4**5, 7]), 5):
        assert np.isnan(bound).tolist() == [True, True, False]


def test_no_places_have_no_cells() -> None:
    assert hilbert(np.zeros(0), np.zeros(0), 8).tolist() == []


@pytest.mark.parametrize("bits", [0, 32, -1, None, True, 2.5])
def test_too_few_or_too_many_bits_are_refused(bits: Any) -> None:
    for call in (lambda: one(0, 0, bits), lambda: cell_bounds(np.zeros(1, np.int64), bits)):
        with pytest.raises(FlowError, match=rf"HILBERT_BITS_INVALID.*Got: {bits}\. .*64-bit.*bits=16"):
            call()
