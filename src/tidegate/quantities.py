"""Durations as people write them ("2 seconds", "1 minute", "500 ms"), exact to the microsecond.

Numbers as people give them. Python takes more for a number than they mean: True, NaN, infinity.

Sizes as people write them ("2 GB", "512 MiB"), in whole bytes.
"""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction
from math import inf
from typing import TypeGuard

from tidegate.errors import FlowError

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
            f"{what} is not a size",
            got=repr(text),
            do='Write a number and a unit, for example "2 GB" or "512 MiB"',
        )
    total = int(Fraction(found["number"]) * unit)
    if total == 0:
        raise FlowError(f"{what} is zero", got=repr(text), why="Every query stores something")
    return total


def is_number(given: object, least: float = -inf, below: float = inf) -> TypeGuard[float]:
    """A number from `least` to below `below`, and finite."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        return False
    return -inf < given < inf and least <= given < below


def is_whole(given: object, least: int = 1) -> TypeGuard[int]:
    """A whole number of at least `least`."""
    return isinstance(given, int) and not isinstance(given, bool) and given >= least


_UNITS_US = {
    "microsecond": 1,
    "us": 1,
    "millisecond": 1_000,
    "ms": 1_000,
    "second": 1_000_000,
    "sec": 1_000_000,
    "s": 1_000_000,
    "minute": 60_000_000,
    "min": 60_000_000,
    "hour": 3_600_000_000,
    "h": 3_600_000_000,
    "day": 86_400_000_000,
    "d": 86_400_000_000,
    "week": 604_800_000_000,
}
_PART = re.compile(r"\s*(?P<number>-?\d+(?:\.\d+)?)\s*(?P<unit>[a-zA-Z]+)\s*")


def duration_us(text: str | timedelta, what: str) -> int:
    """The duration in whole microseconds; `what` names the setting in the error."""
    total = text // timedelta(microseconds=1) if isinstance(text, timedelta) else _parse(text, what)
    if total < 0:
        raise FlowError(f"{what} is negative", got=repr(text), do="Give zero or a positive duration")
    return total


def _parse(text: str, what: str) -> int:
    if not isinstance(text, str) or not text.strip():
        raise _not_a_duration(text, what)
    # Fractions, because decimals round to whatever precision the application has set.
    total, position = Fraction(0), 0
    while position < len(text):
        part = _PART.match(text, position)
        unit = part["unit"].lower() if part else ""
        size = _UNITS_US.get(unit) or _UNITS_US.get(unit.removesuffix("s"))
        if part is None or size is None:
            raise _not_a_duration(text, what)
        total += Fraction(part["number"]) * size
        position = part.end()
    if total != int(total):
        raise FlowError(
            f"{what} is finer than a microsecond", got=repr(text), why="Event times are microseconds"
        )
    return int(total)


def _not_a_duration(text: object, what: str) -> FlowError:
    return FlowError(
        f"{what} is not a duration",
        got=repr(text),
        do='Write a number and a unit, for example "2 seconds", "500 ms" or "1 hour 30 minutes"',
    )
