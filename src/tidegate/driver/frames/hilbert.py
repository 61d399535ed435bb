"""`tg.hilbert` as a Spark expression: the same cells as `route/hilbert.py`, four bits a step.

A step refers to the previous one twice, for the cell and for the next turn of the curve. An unrolled
expression would grow with the square of the steps, and from 20 bits on Spark would not compile it (13 µs per
row instead of 1). So a step takes four bits, by one lookup in a table of 4 turns × 256 squares, and
`aggregate` passes the previous state on as one number.
"""

from __future__ import annotations

import json
from functools import cache

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidegate.errors import FlowError
from tidegate.route.hilbert import STEPS, check_bits

#: Bits of each axis that a step takes.
_GROUP = 4


def hilbert(lat: Column | str, lon: Column | str, bits: int) -> Column:
    """The cell number of a position; null if it has none."""
    check_bits(bits)
    for name, given in (("lat", lat), ("lon", lon)):
        if not isinstance(given, str | Column):
            raise FlowError(
                f"{name} of tg.hilbert is not a column",
                code="HILBERT_COLUMN_INVALID",
                got=type(given).__name__,
                do="Give two columns (or expressions as text), or two numpy arrays",
            )
    y, x = (F.expr(one) if isinstance(one, str) else one for one in (lat, lon))
    y, x = y.cast("double"), x.cast("double")
    inside = y.between(-90.0, 90.0) & x.between(-180.0, 180.0)
    row, column = _grid(y, 90.0, bits), _grid(x, 180.0, bits)
    # The first step takes the remaining bits: leading zeros would turn the curve.
    first = bits % _GROUP or _GROUP
    state = F.get(_table(first), _square(column, row, bits - first, first)).cast("long")
    squares = [_square(column, row, left, _GROUP) for left in range(bits - first - _GROUP, -1, -_GROUP)]
    if squares:
        state = F.aggregate(F.array(*squares), state, _step)
    return F.when(inside, F.shiftrightunsigned(state, 2))


def _step(state: Column, square: Column) -> Column:
    """A state is the cell so far, times four, and the turn of the curve."""
    turn = state.bitwiseAND(F.lit(3).cast("long")).cast("int")
    found = F.get(_table(_GROUP), turn * (1 << 2 * _GROUP) + square)
    return F.shiftleft(F.shiftrightunsigned(state, 2), 2 * _GROUP + 2).bitwiseOR(found.cast("long"))


def _square(column: Column, row: Column, shift: int, width: int) -> Column:
    return _bits(column, shift, width) * (1 << width) + _bits(row, shift, width)


def _grid(degrees: Column, half: float, bits: int) -> Column:
    number = F.floor((degrees + F.lit(half)) / F.lit(2 * half) * F.lit(2.0**bits))
    return F.least(number, F.lit((1 << bits) - 1).cast("long"))


def _bits(number: Column, shift: int, width: int) -> Column:
    return F.shiftright(number, shift).bitwiseAND(F.lit((1 << width) - 1).cast("long")).cast("int")


def _table(width: int) -> Column:
    return F.from_json(F.lit(json.dumps(steps_of(width))), "array<int>")


@cache
def steps_of(width: int) -> list[int]:
    """Per turn and square (x bits, then y bits): the digits walked, times four, plus the next turn."""
    table = []
    for turn in range(4):
        for square in range(1 << 2 * width):
            x, y, v, digits = square >> width, square & ((1 << width) - 1), 4 * turn, 0
            for bit in range(width - 1, -1, -1):
                quarter = 2 * (x >> bit & 1) + (y >> bit & 1)
                v = STEPS >> 4 * ((v & 12) + quarter) & 15
                digits = 4 * digits + (v & 3)
            table.append(4 * digits + (v >> 2))
    return table
