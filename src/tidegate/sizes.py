"""Sizes as people write them ("1 GB", "512 MB"), in bytes; units are powers of ten, or of two ("1 GiB")."""

from __future__ import annotations

import re
from fractions import Fraction

from tidegate.errors import FlowError, explain

_UNITS = {
    "b": 1,
    **{unit: 1000**power for power, unit in enumerate(("kb", "mb", "gb", "tb"), start=1)},
    **{unit: 1024**power for power, unit in enumerate(("kib", "mib", "gib", "tib"), start=1)},
}
_SIZE = re.compile(r"\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[a-zA-Z]+)\s*")


def size_bytes(text: str, what: str) -> int:
    """The size in whole bytes; `what` names the setting in the error."""
    size = _SIZE.fullmatch(text) if isinstance(text, str) else None
    unit = _UNITS.get(size["unit"].lower()) if size else None
    if size is None or unit is None:
        raise FlowError(
            explain(
                f"{what} is not a size",
                got=repr(text),
                do='Write a number and a unit, for example "1 GB", "512 MB" or "1.5 GiB"',
            )
        )
    return int(Fraction(size["number"]) * unit)
