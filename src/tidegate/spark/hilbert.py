"""`tg.hilbert` as a Spark expression: the same cells as `route/hilbert.py`, four bits a step.

A step of one bit refers to the one before it twice (for the cell and for the next turn), so unrolled bit by
bit the expression would grow with the square of the bits. Four bits at once are one look into a table of 4
turns × 256 squares: an array literal, which is data to Spark's compiled code.
"""

from __future__ import annotations

import json
from functools import cache

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidegate.route.hilbert import STEPS, check_bits

#: Bits of each axis that a step takes.
_GROUP = 4


def hilbert(lat: Column | str, lon: Column | str, bits: int) -> Column:
    """Cell number of a place; null where it has none."""
    check_bits(bits)
    y, x = (F.expr(one) if isinstance(one, str) else one for one in (lat, lon))
    y, x = y.cast("double"), x.cast("double")
    inside = y.between(-90.0, 90.0) & x.between(-180.0, 180.0)
    row, column = _grid(y, 90.0, bits), _grid(x, 180.0, bits)
    cell, turn = F.lit(0).cast("long"), F.lit(0)
    left = bits
    while left:
        # The first step takes what is left over: leading zeros would turn the curve.
        width = left % _GROUP or _GROUP
        left -= width
        square = _bits(column, left, width) * (1 << width) + _bits(row, left, width)
        step = F.get(_table(width), turn * (1 << 2 * width) + square)
        cell = cell * (1 << 2 * width) + F.shiftright(step, 2)
        turn = step.bitwiseAND(F.lit(3))
    return F.when(inside, cell)


def _grid(degrees: Column, half: float, bits: int) -> Column:
    number = F.floor((degrees + F.lit(half)) / F.lit(2 * half) * F.lit(2.0**bits))
    return F.least(number, F.lit((1 << bits) - 1).cast("long"))


def _bits(number: Column, shift: int, width: int) -> Column:
    return F.shiftright(number, shift).bitwiseAND(F.lit((1 << width) - 1).cast("long")).cast("int")


def _table(width: int) -> Column:
    return F.from_json(F.lit(json.dumps(steps_of(width))), "array<int>")


@cache
def steps_of(width: int) -> list[int]:
    """Per turn and square (x bits, then y bits): the digits walked, times four, and the turn behind them."""
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
