"""Sizes as people write them ("2 GB", "512 MiB"), in whole bytes."""

from __future__ import annotations

import re
from fractions import Fraction

from tidegate.errors import FlowError, explain

_UNITS = {
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_SIZE = re.compile(r"\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[a-zA-Z]+)\s*")


def size_bytes(text: str, what: str) -> int:
    """The size in whole bytes, rounded down; `what` names the setting in the error."""
    found = _SIZE.fullmatch(text) if isinstance(text, str) else None
    unit = _UNITS.get(found["unit"].lower()) if found else None
    if found is None or unit is None:
        raise FlowError(
            explain(
                f"{what} is not a size",
                got=repr(text),
                do='Write a number and a unit, for example "2 GB" or "512 MiB"',
            )
        )
    total = int(Fraction(found["number"]) * unit)
    if total == 0:
        raise FlowError(explain(f"{what} is zero", got=repr(text), why="Every query stores something"))
    return total
