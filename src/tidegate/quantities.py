"""Durations as people write them ("2 seconds", "1 minute", "500 ms"), exact to the microsecond."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction

from tidegate.errors import FlowError, explain

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
        raise FlowError(explain(f"{what} is negative", got=repr(text), do="Give zero or a positive duration"))
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
            explain(f"{what} is finer than a microsecond", got=repr(text), why="Event times are microseconds")
        )
    return int(total)


def _not_a_duration(text: object, what: str) -> FlowError:
    return FlowError(
        explain(
            f"{what} is not a duration",
            got=repr(text),
            do='Write a number and a unit, for example "2 seconds", "500 ms" or "1 hour 30 minutes"',
        )
    )
