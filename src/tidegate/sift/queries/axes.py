"""Axes: maps a column to a coordinate, and a coordinate to an integer that preserves its order.

Queries and regions use the same n-dimensional space, with one axis for each column that a query names:

    number     any numeric column as a 64-bit float
    integer    integers: the value v fills the cell [v, v + 1), so that `x = 5` has a volume
    category   strings and booleans: each value that a query names is a cell, all others share the last one

A *coordinate* is a float. A *place* on an axis is the int64 whose order is Spark's order of the
coordinates: -0.0 = 0.0, NaN = NaN and above every number, and null above NaN, outside of every comparison.
Ranges of places [low, high) therefore express exactly the values that a predicate accepts, open or closed,
with NaN and null.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate.model.json_values import Json

KINDS = ("number", "integer", "category")

#: Below -inf, the lowest value.
FIRST = -(2**63)
#: The places of NaN and null; END is after both.
NAN = 2**63 - 3
NULL = 2**63 - 2
END = 2**63 - 1


@dataclass(frozen=True)
class Axis:
    """One column of the space; `categories[c]` is the value whose cell is [c, c + 1)."""

    column: str
    kind: str = "number"
    categories: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise FlowError(
                "Unknown kind of axis",
                code="QUERY_COLUMN_TYPE_UNSUPPORTED",
                got=repr(self.kind),
                do="Use one of " + ", ".join(KINDS),
            )

    @property
    def other(self) -> int:
        """The cell of all values that no query names."""
        return len(self.categories)

    def to_json(self) -> Json:
        return {"column": self.column, "kind": self.kind, "categories": list(self.categories)}

    @classmethod
    def from_json(cls, raw: Json) -> Axis:
        return cls(raw["column"], raw["kind"], tuple(raw["categories"]))


def places(coordinates: NDArray[np.float64], null: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
    """The place of every coordinate; NULL where `null` is true."""
    # Adding zero turns -0.0 into 0.0. The bits of negative floats are in reverse order.
    bits = (np.ascontiguousarray(coordinates, np.float64) + 0.0).view(np.int64)
    found = np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)
    found[np.isnan(coordinates)] = NAN
    if null is not None:
        found[null] = NULL
    return found


def coordinates(found: NDArray[np.int64]) -> NDArray[np.float64]:
    """The inverse of `places`; places from NaN on become +inf, places below every number -inf."""
    numbers = np.clip(found, places(np.array([-np.inf]))[0], places(np.array([np.inf]))[0])
    bits = np.where(numbers < 0, numbers ^ np.int64(2**63 - 1), numbers)
    return bits.view(np.float64)
