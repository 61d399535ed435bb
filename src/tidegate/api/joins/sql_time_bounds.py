"""Time bounds in SQL: what a comparison of two event times says about `right.time - left.time`.

Both sides of a comparison are read as `a * left.time + b * right.time + c`, with c in microseconds. If their
difference contains each time once, with opposite signs, the comparison is a bound:

    tracks.ts <= orders.ts + INTERVAL 1 MINUTE      ⇔      right - left <= 60 000 000

A strict comparison is one microsecond narrower, because event times are whole microseconds. A day counts as
24 hours.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from tidegate.errors import FlowError
from tidegate.model.times import LEFT, RIGHT

_UNITS_US = {
    "microsecond": 1,
    "millisecond": 10**3,
    "second": 10**6,
    "minute": 60 * 10**6,
    "hour": 3600 * 10**6,
    "day": 86_400 * 10**6,
    "week": 7 * 86_400 * 10**6,
}
_CALENDAR = ("month", "quarter", "year")
#: The units of `INTERVAL '1 02:03:04.5' DAY TO SECOND`, from the longest to the shortest.
_SPAN = ("day", "hour", "minute", "second")
_PART = re.compile(r"\s*(?P<number>[+-]?\s*\d+(?:\.\d+)?)\s*(?P<unit>[a-zA-Z]+)\s*")


@dataclass(frozen=True)
class Bounds:
    """`lower_us <= right.time - left.time <= upper_us`; None: no bound on this end."""

    lower_us: int | None = None
    upper_us: int | None = None

    def both(self, other: Bounds) -> Bounds:
        """The bounds under which both hold."""
        lower = [one for one in (self.lower_us, other.lower_us) if one is not None]
        upper = [one for one in (self.upper_us, other.upper_us) if one is not None]
        return Bounds(max(lower, default=None), min(upper, default=None))


@dataclass(frozen=True)
class _Linear:
    """left * left.time + right * right.time + constant_us."""

    left: int
    right: int
    constant_us: Fraction

    def plus(self, other: _Linear, sign: int = 1) -> _Linear:
        return _Linear(
            self.left + sign * other.left,
            self.right + sign * other.right,
            self.constant_us + sign * other.constant_us,
        )


#: Which event time a column is: LEFT, RIGHT, or None for another column.
TimeOf = Callable[[exp.Column], int | None]
_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}


def bounds_of(term: exp.Expr, time_of: TimeOf) -> tuple[Bounds, bool] | None:
    """The bounds that a comparison sets, and whether they say all of it; None: it sets none."""
    term = term.unnest()
    if not {LEFT, RIGHT} <= {time_of(column) for column in term.find_all(exp.Column)}:
        return None
    if isinstance(term, exp.Between) and not term.args.get("symmetric"):
        low = _compared(exp.GTE, term.this, term.args["low"], time_of)
        high = _compared(exp.LTE, term.this, term.args["high"], time_of)
        if low is None and high is None:
            return None
        return (low or Bounds()).both(high or Bounds()), low is not None and high is not None
    if isinstance(term, (exp.EQ, exp.NullSafeEQ, *_MIRRORED)):
        found = _compared(type(term), term.this, term.expression, time_of)
        return None if found is None else (found, True)
    return None


def _compared(kind: type[exp.Expr], one: exp.Expr, other: exp.Expr, time_of: TimeOf) -> Bounds | None:
    distance = _distance(kind, one, other, time_of)
    if distance is not None:
        return distance
    first, second = _linear(one, time_of), _linear(other, time_of)
    if first is None or second is None:
        return None
    difference = first.plus(second, -1)
    if (difference.left, difference.right) == (1, -1):
        # Turn it round, so that the right time has the plus sign.
        difference = _Linear(0, 0, Fraction(0)).plus(difference, -1)
        kind = _MIRRORED.get(kind, kind)
    elif (difference.left, difference.right) != (-1, 1):
        return None
    return _bound(kind, _whole_us(-difference.constant_us, other))


def _bound(kind: type[exp.Expr], at_us: int) -> Bounds:
    """`right - left` compared with a number."""
    if kind is exp.LTE:
        return Bounds(upper_us=at_us)
    if kind is exp.LT:
        return Bounds(upper_us=at_us - 1)
    if kind is exp.GTE:
        return Bounds(lower_us=at_us)
    if kind is exp.GT:
        return Bounds(lower_us=at_us + 1)
    return Bounds(at_us, at_us)


def _distance(kind: type[exp.Expr], one: exp.Expr, other: exp.Expr, time_of: TimeOf) -> Bounds | None:
    """`abs(left.time - right.time) <= interval`, either side first."""
    if isinstance(other.unnest(), exp.Abs):
        one, other, kind = other, one, _MIRRORED.get(kind, kind)
    one = one.unnest()
    if not isinstance(one, exp.Abs) or kind not in (exp.LT, exp.LTE):
        return None
    inner, most = _linear(one.this, time_of), _linear(other, time_of)
    if inner is None or most is None or (most.left, most.right) != (0, 0):
        return None
    if {inner.left, inner.right} != {-1, 1}:
        return None
    middle = -inner.constant_us * inner.right
    width = most.constant_us - (kind is exp.LT)
    return Bounds(_whole_us(middle - width, other), _whole_us(middle + width, other))


def _linear(node: exp.Expr, time_of: TimeOf) -> _Linear | None:
    node = node.unnest()
    if isinstance(node, exp.Column):
        side = time_of(node)
        return None if side is None else _Linear(int(side == LEFT), int(side != LEFT), Fraction(0))
    if isinstance(node, exp.Interval):
        return _Linear(0, 0, interval_us(node))
    if isinstance(node, exp.Neg):
        inner = _linear(node.this, time_of)
        return None if inner is None else _Linear(0, 0, Fraction(0)).plus(inner, -1)
    if isinstance(node, (exp.Add, exp.Sub)):
        one, other = _linear(node.this, time_of), _linear(node.expression, time_of)
        if one is None or other is None:
            return None
        return one.plus(other, 1 if isinstance(node, exp.Add) else -1)
    if isinstance(node, exp.TimestampAdd):
        return _added(node, time_of)
    return None


def _added(node: exp.TimestampAdd, time_of: TimeOf) -> _Linear | None:
    """`timestampadd(MINUTE, 5, ts)`."""
    base, number = _linear(node.this, time_of), node.expression.unnest()
    sign = 1
    if isinstance(number, exp.Neg):
        number, sign = number.this.unnest(), -1
    if base is None or not isinstance(number, exp.Literal) or not number.name.isdecimal():
        return None
    return base.plus(_Linear(0, 0, Fraction(sign * int(number.name)) * _unit_us(node.text("unit"), node)))


def interval_us(node: exp.Interval) -> Fraction:
    """The length of an interval literal in microseconds."""
    text, unit = node.name.strip(), node.args.get("unit")
    if not isinstance(node.this, exp.Literal):
        raise _not_a_literal(node)
    if isinstance(unit, exp.IntervalSpan):
        return _span_us(text, unit.name.lower(), unit.expression.name.lower(), node)
    if unit is not None:
        text = f"{text} {unit.name}"
    total, position = Fraction(0), 0
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            raise _not_a_literal(node)
        total += Fraction(part["number"].replace(" ", "")) * _unit_us(part["unit"], node)
        position = part.end()
    return total


def _span_us(text: str, first: str, last: str, node: exp.Expr) -> Fraction:
    """`'1 02:03:04.5' DAY TO SECOND`: one number per unit from the first to the last."""
    if first.removesuffix("s") in _CALENDAR:
        _unit_us(first, node)
    first, last = first.removesuffix("s"), last.removesuffix("s")
    if first not in _SPAN or last not in _SPAN:
        raise _not_a_literal(node)
    units = _SPAN[_SPAN.index(first) : _SPAN.index(last) + 1]
    numbers = re.split(r"[ :]+", text.lstrip("+-"))
    if len(numbers) != len(units) or not all(re.fullmatch(r"\d+(\.\d+)?", one) for one in numbers):
        raise _not_a_literal(node)
    total = sum((Fraction(n) * _UNITS_US[u] for n, u in zip(numbers, units, strict=True)), Fraction(0))
    return -total if text.startswith("-") else total


def _unit_us(unit: str, node: exp.Expr) -> int:
    word = unit.lower().removesuffix("s")
    if word in _CALENDAR:
        raise FlowError(
            "A time bound of a join is a month or longer",
            code="JOIN_SQL_INTERVAL",
            got=node.sql("spark"),
            why="Months and years have no fixed length",
            do="Write it in days or weeks, for example INTERVAL 30 DAYS",
        )
    if word not in _UNITS_US:
        raise _not_a_literal(node)
    return _UNITS_US[word]


def _not_a_literal(node: exp.Expr) -> FlowError:
    return FlowError(
        "An interval in the time bound of a join cannot be read",
        code="JOIN_SQL_INTERVAL",
        got=node.sql("spark"),
        do="Write a number and a unit, for example INTERVAL 5 MINUTES or INTERVAL '1 minute 30 seconds'",
    )


def _whole_us(given: Fraction, node: exp.Expr) -> int:
    if given.denominator != 1:
        raise FlowError(
            "A time bound of a join is finer than a microsecond",
            code="JOIN_SQL_INTERVAL",
            got=node.sql("spark"),
            why="Event times are microseconds",
            do="Round it",
        )
    return int(given)
