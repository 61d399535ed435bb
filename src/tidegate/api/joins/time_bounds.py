"""The time condition of a join, as `within=` takes it.

    within="20 seconds"                              at most 20 seconds apart, in either direction
    within=tg.between("-5 minutes", "1 minute")      right.time - left.time lies between these, both included
    within=tg.between("1 hour", "2 hours")           the right row comes 1 to 2 hours after the left one
    within=tg.same_window("10 seconds")              both rows lie in the same tumbling window
    within=tg.UNBOUNDED                              the full history; inner and semi joins only

There is no default: how long rows wait for each other decides how much state a join keeps.
"""

from __future__ import annotations

from datetime import timedelta

from tidegate.errors import FlowError
from tidegate.join.within import TimeCondition, Tumbling, Unbounded, Within
from tidegate.quantities import Duration, duration_us

#: For `within`: rows are joined with the full history, and state grows without a limit.
UNBOUNDED = Unbounded()

_EXAMPLES = 'tg.between("-5 minutes", "1 minute")'
_ALL_FORMS = f'within="20 seconds", within={_EXAMPLES}, tg.same_window("10 seconds") or tg.UNBOUNDED'


def between(lower: Duration, upper: Duration) -> Within:
    """For `within`: a pair matches when `lower <= right.time - left.time <= upper`.

    Both bounds may have the same sign: `between("1 hour", "2 hours")` means 1 to 2 hours after the left row.

    >>> between("-5 minutes", "1 minute")
    Within(lower_us=-300000000, upper_us=60000000)
    """
    return Within(
        duration_us(lower, "The lower bound of between", signed=True),
        duration_us(upper, "The upper bound of between", signed=True),
    )


def same_window(size: Duration) -> Tumbling:
    """For `within`: both rows fall into the same tumbling window of this size, aligned to the epoch.

    >>> same_window("10 seconds")
    Tumbling(size_us=10000000)
    """
    return Tumbling(duration_us(size, "The size of same_window"))


def time_condition(given: object) -> TimeCondition:
    """What `within` means; one duration `d` means `between(-d, d)`."""
    if isinstance(given, Within | Tumbling | Unbounded):
        return given
    if isinstance(given, str | timedelta):
        apart_us = duration_us(given, "within")
        return Within(-apart_us, apart_us)
    if given is None:
        raise FlowError(
            "A join needs a time condition",
            code="JOIN_WITHIN_MISSING",
            got="no `within`",
            why="It says how long a row waits for its partners, and so how much state the join keeps",
            do=f"Give {_ALL_FORMS}",
        )
    if isinstance(given, tuple | list):
        raise FlowError(
            "`within` takes no pair of durations",
            code="JOIN_WITHIN_PAIR",
            got=repr(given),
            why="A pair does not say from which row to which the bounds are counted",
            do=f"Write within={_EXAMPLES}: the least and the greatest right.time - left.time",
        )
    raise FlowError(
        "`within` is not a time condition",
        code="JOIN_WITHIN_UNKNOWN",
        got=repr(given),
        do=f"Give {_ALL_FORMS}",
    )
