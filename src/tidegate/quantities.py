"""Durations as people write them ("2 seconds", "1 minute", "INTERVAL 2 SECONDS"), exact to the microsecond.

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

#: A duration as users write it: "2 seconds", "INTERVAL 2 SECONDS", or a timedelta.
Duration = str | timedelta

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
            code="SIZE_INVALID",
            got=repr(text),
            do='Write a number and a unit, for example "2 GB" or "512 MiB"',
        )
    total = int(Fraction(found["number"]) * unit)
    if total == 0:
        raise FlowError(
            f"{what} must be larger than zero",
            code="SIZE_ZERO",
            got=repr(text),
            do='Give a size such as "2 GB"',
        )
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
#: A quoted number is Spark's way too: INTERVAL '2' SECONDS.
_PART = re.compile(r"\s*(?P<quote>'?)(?P<number>[+-]?\s*\d+(?:\.\d+)?)(?P=quote)\s*(?P<unit>[a-zA-Z]+)\s*")
#: Text may begin with Spark's word for a duration; a sign before it is that of the whole.
_INTERVAL = re.compile(r"\s*(?P<sign>[+-]?)\s*interval\b", re.IGNORECASE)


def duration_us(text: Duration, what: str, *, signed: bool = False) -> int:
    """The duration in whole microseconds; `what` names the setting in the error. `signed`: may be negative.

    Every part of a text has its own sign, as in Spark: "-1 hour 30 minutes" is half an hour ago.
    """
    total = text // timedelta(microseconds=1) if isinstance(text, timedelta) else _parse(text, what)
    if total < 0 and not signed:
        raise FlowError(
            f"{what} is negative",
            code="DURATION_NEGATIVE",
            got=repr(text),
            do="Give zero or a positive duration",
        )
    return total


_SHOWN = {
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}


def duration_text(us: int) -> str:
    """A duration as a user would write it, in its largest whole unit."""
    for unit, size in _SHOWN.items():
        if us and us % size == 0:
            count = us // size
            return f"{count} {unit}{'' if abs(count) == 1 else 's'}"
    return "0 seconds"


def _parse(text: str, what: str) -> int:
    if not isinstance(text, str) or not text.strip():
        raise _not_a_duration(text, what)
    # Fractions, because decimals round to whatever precision the application has set.
    total, interval = Fraction(0), _INTERVAL.match(text)
    position = begin = interval.end() if interval else 0
    while position < len(text) or position == begin:
        part = _PART.match(text, position)
        unit = part["unit"].lower() if part else ""
        size = _UNITS_US.get(unit) or _UNITS_US.get(unit.removesuffix("s"))
        if part is None or size is None:
            raise _not_a_duration(text, what)
        total += Fraction(part["number"].replace(" ", "")) * size
        position = part.end()
    if total != int(total):
        raise FlowError(
            f"{what} is finer than a microsecond",
            code="DURATION_TOO_FINE",
            got=repr(text),
            why="Event times are whole microseconds",
            do='Round it, for example to "1 microsecond"',
        )
    return -int(total) if interval and interval["sign"] == "-" else int(total)


def _not_a_duration(text: object, what: str) -> FlowError:
    return FlowError(
        f"{what} is not a duration",
        code="DURATION_INVALID",
        got=repr(text),
        do='Write a number and a unit, for example "2 seconds", "500 ms" or "1 hour 30 minutes"',
    )
