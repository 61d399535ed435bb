"""Ranges: the places of an axis that one comparison accepts.

A comparison is true for some places, false for others, and null for the rest, so both sets are computed:
with `x < 4`, places below 4 are true, those from 4 up to NaN false, and null is neither. A set of places is
a list of *edges*, ascending; a place is in the set if an odd number of edges lies at or below it:

    x in (1, 3)         edges        1 ┌─┐ 1⁺    3 ┌─┐ 3⁺             (1⁺: the place behind 1)
    not x in (1, 3)     ──────────────┘   └───────┘   └──────┐ NULL   (NaN is in, null is not)

A literal fills the places [before, after): one place for a float; for an integer v all from v up to v + 1,
and none for 4.5, which no integer equals; for a category its cell. The first cell begins at FIRST and the
last one ends at NULL, so that `kind != 'bus'` leaves no range that no row can be in.

Guarantee: exact. A decimal literal is compared with integers as a decimal, not as the nearest float.
Literals of 2^53 and more are refused: a bigint that large has no exact float.
"""

from __future__ import annotations

import math
import struct
from decimal import Decimal

from tidegate.errors import FlowError
from tidegate.sift.queries.axes import END, FIRST, NULL
from tidegate.sift.queries.predicates import Compare, Literal, Number
from tidegate.sift.queries.space import AxisCells, category

#: From here on not every integer is a float.
WHOLE_MAX = 2**53

_TO_BITS, _FROM_BITS = struct.Struct("<d"), struct.Struct("<q")


def edges(line: AxisCells, comparison: Compare, wanted: bool) -> list[int]:
    """The places where the comparison is true, or (`wanted` is False) false."""
    operator, literals = comparison.operator, comparison.literals
    if operator == "<=>":
        return _inside(_same(line, literals[0]), END, wanted)
    if operator == "=":
        if None in literals and not wanted:
            return []  # a value that equals none of the others might still equal the null
        return _inside(_one_of(line, literals), NULL, wanted)
    if literals[0] is None:
        return []
    before, after = _ordered(line, operator, literals[0])
    below = [FIRST, before if operator in ("<", ">=") else after]
    return _inside(below, NULL, wanted if operator in ("<", "<=") else not wanted)


def place_of(coordinate: float) -> int:
    """`axes.places` for one number, without the cost of an array."""
    bits: int = _FROM_BITS.unpack(_TO_BITS.pack(coordinate + 0.0))[0]
    return bits ^ (2**63 - 1) if bits < 0 else bits


def _inside(found: list[int], end: int, wanted: bool) -> list[int]:
    """The set itself, or its complement in [FIRST, end)."""
    if wanted:
        return found
    rest = found[1:] if found and found[0] == FIRST else [FIRST, *found]
    return rest[:-1] if rest and rest[-1] == end else [*rest, end]


def _same(line: AxisCells, literal: Literal) -> list[int]:
    return [NULL, END] if literal is None else _one_of(line, (literal,))


def _one_of(line: AxisCells, literals: tuple[Literal, ...]) -> list[int]:
    found: list[int] = []
    for before, after in sorted([_filled(line, literal) for literal in literals if literal is not None]):
        if found and before <= found[-1]:  # adjacent to the last one, or a duplicate
            found[-1] = max(found[-1], after)
        elif before < after:
            found += (before, after)
    return found


def _ordered(line: AxisCells, operator: str, literal: Literal) -> tuple[int, int]:
    if line.axis.kind == "category":
        raise FlowError(
            f"Column {line.axis.column!r} holds categories, which have no order",
            code="QUERY_CATEGORY_ORDERED",
            got=f"{line.axis.column} {operator} {shown(literal)}",
            do=f"List the values: {line.axis.column} = 'a', or {line.axis.column} in ('a', 'b')",
        )
    return _filled(line, literal)


def _filled(line: AxisCells, literal: Literal) -> tuple[int, int]:
    """The places [before, after) of a literal that is not null."""
    axis, cells = line
    if axis.kind == "category":
        cell = cells[category(axis.column, literal)]
        return FIRST if cell == 0 else place_of(cell), place_of(cell + 1)
    value = _checked(axis.column, literal)
    if axis.kind == "integer":
        return place_of(math.ceil(value)), place_of(math.floor(value) + 1)
    place = place_of(float(value))
    return place, place + 1


def _checked(column: str, literal: Literal) -> Number:
    if isinstance(literal, bool) or not isinstance(literal, Decimal | float):
        raise FlowError(
            f"Column {column!r} holds numbers but is compared with a different type",
            code="QUERY_LITERAL_TYPE_MISMATCH",
            got=shown(literal),
            why="Spark would cast one of the two, which is rarely what is meant",
            do="Compare it with a number, without quotes",
        )
    if not -WHOLE_MAX < literal < WHOLE_MAX:
        raise FlowError(
            f"Column {column!r} is compared with a number that is too large",
            code="QUERY_LITERAL_TOO_LARGE",
            got=shown(literal),
            why="From 2^53 on, comparing as 64-bit floats is not exact",
            do="Use literals below 9007199254740992, or scale the column",
        )
    return literal


def shown(literal: Literal) -> str:
    """A literal as SQL, for messages."""
    if literal is None or isinstance(literal, bool):
        return str(literal).lower().replace("none", "null")
    return f"'{literal}'" if isinstance(literal, str) else str(literal)
