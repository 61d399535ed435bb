"""Decides how far event time has come: per source stream and per operator.

        seen ────────────────●         newest event time of the stream
        watermark ───●───────┘         seen - lateness: rows that arrive below it from now on are late

The watermark of a stream never goes back. A join uses the slower of its two inputs. A stream that has been
silent for its idle timeout is moved up to the slowest active stream, so that it no longer holds the others
back; when it resumes, rows below that mark are late. Silence is counted from the start of the run at the
earliest: the time in which a query was stopped does not count.

Guarantee: clocks are a pure function of the previous clocks, the newest times of a batch and the wall clock
in its plan, so a replayed batch advances time equally.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.model.manifest import StreamClock
from tidegate.model.times import BEGINNING_US, END_US


@dataclass(frozen=True)
class ClockSettings:
    """How the event time of one stream is tracked."""

    lateness_us: int
    idle_timeout_us: int | None
    #: Spark's edge: times are rounded down to this, and a row at the watermark is late. None: neither.
    grain_us: int | None = None

    def watermark_us(self, seen_us: int) -> int:
        """Rows below this are late once this time was seen."""
        if self.grain_us is None:
            return saturated(seen_us - self.lateness_us)
        return saturated(seen_us // self.grain_us * self.grain_us - self.lateness_us + 1)


def unheard(now_us: int) -> StreamClock:
    """The clock of a stream before its first row."""
    return StreamClock(seen_us=BEGINNING_US, watermark_us=BEGINNING_US, heard_us=now_us)


def advance(
    clocks: Mapping[str, StreamClock],
    seen_us: Mapping[str, int | None],
    settings: Mapping[str, ClockSettings],
    now_us: int,
    awake_us: int = BEGINNING_US,
) -> dict[str, StreamClock]:
    """The clocks after a batch with these newest times (None: no row of that stream).

    `awake_us` is when the run that planned the batch began.
    """
    heard = {name: _heard(clock, seen_us.get(name), settings[name], now_us) for name, clock in clocks.items()}
    return _release_idle(heard, settings, now_us, awake_us)


def _heard(clock: StreamClock, seen_us: int | None, settings: ClockSettings, now_us: int) -> StreamClock:
    if seen_us is None:
        return clock
    seen = max(clock.seen_us, seen_us)
    watermark = max(clock.watermark_us, settings.watermark_us(seen))
    return StreamClock(seen, watermark, now_us)


def _release_idle(
    clocks: dict[str, StreamClock], settings: Mapping[str, ClockSettings], now_us: int, awake_us: int
) -> dict[str, StreamClock]:
    idle = {name for name, clock in clocks.items() if _is_idle(clock, settings[name], now_us, awake_us)}
    speaking = [clock.watermark_us for name, clock in clocks.items() if name not in idle]
    if not speaking:
        return clocks
    floor = min(speaking)
    return {
        name: StreamClock(clock.seen_us, max(clock.watermark_us, floor), clock.heard_us)
        if name in idle
        else clock
        for name, clock in clocks.items()
    }


def _is_idle(clock: StreamClock, settings: ClockSettings, now_us: int, awake_us: int) -> bool:
    timeout = settings.idle_timeout_us
    return timeout is not None and now_us - max(clock.heard_us, awake_us) >= timeout


def saturated(time_us: int) -> int:
    """The time, clipped to 64 bits."""
    return max(BEGINNING_US, min(END_US, time_us))
