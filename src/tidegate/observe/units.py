"""Formats numbers: counts with separators, bytes and seconds with a unit, times as moments."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tidegate.model.times import BEGINNING_US, END_US

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def count(n: float) -> str:
    """1234567 → `1,234,567`."""
    return f"{n:,.0f}"


def size(n: float) -> str:
    """Bytes in the largest decimal unit that keeps the number at 1 or above: 7_340_032 → `7.3 MB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(n) < 1000:
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1000
    return f"{n:.1f} TB"


def seconds(s: float) -> str:
    """Two decimals below ten seconds, none above a hundred: `0.62 s`, `12.3 s`, `240 s`."""
    places = 2 if abs(s) < 10 else 1 if abs(s) < 100 else 0
    return f"{s:.{places}f} s"


def moment(iso: str | None) -> str:
    """The time of day of an ISO moment, or a dash before the first row."""
    if iso is None:
        return "-"
    return iso.partition("T")[2].partition(".")[0].partition("+")[0].rstrip("Z") or iso


def date_and_time(iso: str | None) -> str:
    """To the millisecond, without the zone: `2025-03-03 17:00:31.250`; a dash for no moment."""
    if iso is None:
        return "-"
    day, t, rest = iso.partition("T")
    clock, _, fraction = rest.partition("+")[0].partition(".")
    return f"{day} {clock}.{(fraction + '000')[:3]}" if t else iso


def iso(us: int) -> str | None:
    """A moment in UTC; None before the first time, `end` after the last."""
    if us == BEGINNING_US:
        return None
    if us == END_US:
        return "end"
    try:
        return (_EPOCH + timedelta(microseconds=us)).isoformat()
    except OverflowError:
        return f"{us} us"


def watermark_text(us: int) -> str | None:
    """A watermark in whole milliseconds, as Spark shows it."""
    return iso(us if us in (BEGINNING_US, END_US) else us // 1000 * 1000)


def percent(share: float) -> str:
    """`63 %`; one decimal below a tenth and above 99 %, so that little is not shown as nothing."""
    return f"{100 * share:.0f} %" if 0.1 <= share <= 0.99 or share in (0, 1) else f"{100 * share:.1f} %"
