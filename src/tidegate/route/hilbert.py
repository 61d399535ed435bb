"""Places as keys: the number of a cell of the earth on a Hilbert curve, and the cell of a number.

The map (longitude to the right, latitude upwards) is halved `bits` times each way. Cells are numbered along a
curve that visits every cell once and only ever steps to a neighbour, so places with near numbers are near
each other. The curve begins in the south-west and ends in the south-east:

    bits = 1    1 ─ 2        bits = 2     5 ─ 6   9 ─ 10       the first digits (base 4) of a cell's
                │   │                     │   │   │   │        number are the number of the larger
                0   3                     4   7 ─ 8   11       cell around it: cell >> 2 is the
                                          │           │        cell with one bit less
                                          3 ─ 2  13 ─ 12
                                              │   │
                                          0 ─ 1  14 ─ 15

One step per bit, from the highest down. A step reads one bit of x and of y, and the present turn of the
curve: its axes may be swapped, and its ends flipped. That makes 4 turns × 4 quarters, so a step is one
lookup in a table of 16 entries of 4 bits, which together are one 64-bit number:

    v = (STEPS >> (4 · ((v & 12) + 2 · x_bit + y_bit))) & 15       cell = 4 · cell + (v & 3)

with v = 0 at the start: plain integer arithmetic, which SQL can unroll into `bits` steps.

Domain: latitude in [-90, 90], longitude in [-180, 180]. The northern and eastern edges belong to the last row
and column; longitude 180 is not taken for -180. Anything else (NaN, also for null; infinite; out of range)
has no cell: -1 here, null in SQL. x = floor((longitude + 180) / 360 · 2**bits) in doubles, and y likewise; a
power of two is exact, so every system with IEEE doubles gets the same cell.

Guarantee: a bijection between the 4**bits cells and their numbers; consecutive numbers are neighbours.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate.quantities import is_whole

#: Two bits per step must fit into 63; a cell is then at most 2 cm wide.
BITS_MAX = 31
NO_CELL = -1
_ONE, _TWO, _THREE = np.uint64(1), np.uint64(2), np.uint64(3)


def _tables() -> tuple[int, int]:
    """The steps of the curve, and their inverse (turn and digit → quarter and next turn), 4 bits an entry."""
    steps = inverse = 0
    for turn in range(4):
        swapped, flipped = turn & 1, turn >> 1
        for quarter in range(4):
            x, y = quarter >> 1, quarter & 1
            if swapped:
                x, y = y, x
            x, y = x ^ flipped, y ^ flipped
            digit = (3 * x) ^ y
            # The curve is turned in both lower quarters, and reversed in the last one.
            following = turn if y else turn ^ (1 | 2 * x)
            steps |= (4 * following + digit) << 4 * (4 * turn + quarter)
            inverse |= (4 * following + quarter) << 4 * (4 * turn + digit)
    return steps, inverse


#: The table of the module docstring, as an unsigned 64-bit number, and its inverse.
STEPS, INVERSE = _tables()


def hilbert(lat: NDArray[np.float64], lon: NDArray[np.float64], bits: int) -> NDArray[np.int64]:
    """Cell number of each place, 0 … 4**bits - 1; -1 for invalid places."""
    check_bits(bits)
    valid = (lat >= -90) & (lat <= 90) & (lon >= -180) & (lon <= 180)
    y, x = _grid(lat, 90.0, bits, valid), _grid(lon, 180.0, bits, valid)
    cells, v = np.zeros(x.shape, np.uint64), np.zeros(x.shape, np.uint64)
    for bit in range(bits - 1, -1, -1):
        quarter = _TWO * (x >> np.uint64(bit) & _ONE) + (y >> np.uint64(bit) & _ONE)
        v = _look_up(STEPS, v, quarter)
        cells = cells << _TWO | v & _THREE
    return np.where(valid, cells.view(np.int64), NO_CELL)


def cell_bounds(
    cells: NDArray[np.int64], bits: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """South, west, north and east of each cell, in degrees; NaN for invalid cell numbers."""
    check_bits(bits)
    valid = (cells >= 0) & (cells < 4**bits)
    known = np.where(valid, cells, 0).astype(np.uint64)
    x, y, v = np.zeros_like(known), np.zeros_like(known), np.zeros_like(known)
    for bit in range(bits - 1, -1, -1):
        v = _look_up(INVERSE, v, known >> np.uint64(2 * bit) & _THREE)
        x, y = x << _ONE | v >> _ONE & _ONE, y << _ONE | v & _ONE
    height, width = 180.0 / 2**bits, 360.0 / 2**bits
    bounds = (y * height - 90, x * width - 180, (y + 1) * height - 90, (x + 1) * width - 180)
    south, west, north, east = (np.where(valid, bound, np.nan) for bound in bounds)
    return south, west, north, east


def _grid(
    degrees: NDArray[np.float64], half: float, bits: int, valid: NDArray[np.bool_]
) -> NDArray[np.uint64]:
    """Row or column of each place; arbitrary for invalid places."""
    inside = np.where(valid, degrees, 0.0)
    number: NDArray[np.float64] = np.floor((inside + half) / (2 * half) * 2.0**bits)
    return np.minimum(number, 2.0**bits - 1).astype(np.uint64)


def _look_up(table: int, v: NDArray[np.uint64], entry: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return np.uint64(table) >> ((v & np.uint64(12)) + entry << _TWO) & np.uint64(15)


def check_bits(bits: int) -> None:
    if not is_whole(bits) or bits > BITS_MAX:
        raise FlowError(
            "A Hilbert cell needs between 1 and 31 bits per axis",
            code="HILBERT_BITS_INVALID",
            got=repr(bits),
            why="The cell number takes two bits per step and must fit into a signed 64-bit integer",
            do="Give for example bits=16: cells of about 300 by 600 metres at the equator",
        )
