"""Times and sides: the ends of event time, and the two sides of a join.

Times are UTC microseconds since the epoch, as Python ints; names that hold a time end in `_us`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

#: Below every event time: the watermark of a stream that has shown no row yet.
BEGINNING_US = -(2**63)
#: Above every event time: the watermark that closes everything.
END_US = 2**63 - 1
LEFT, RIGHT = 0, 1
SIDES = ("left", "right")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def utc_text(us: int) -> str:
    """A moment as ISO 8601 in UTC, to the microsecond: texts of moments sort as the moments do."""
    return (_EPOCH + timedelta(microseconds=us)).isoformat(timespec="microseconds")
