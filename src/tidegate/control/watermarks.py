"""Decides how far time has come: per source stream and per operator, from what batches have seen.

        seen ────────────────●         newest event time of the stream
        watermark ───●───────┘         seen - lateness: whatever comes below it from now on is late

The watermark of a stream never goes back. A join believes the slower of its two inputs. A stream that has
been silent for its idle timeout is moved up to the slowest of the streams that do speak, so that it no
longer holds them back; should it speak again, rows below that mark are late like any other. Silence is
counted from the start of the run at the earliest: a query that was stopped for an hour has not heard an
hour of silence.

Guarantee: clocks are a pure function of the previous clocks, the maxima a batch saw and the wall clock
written in its plan, so a replayed batch moves time exactly as far.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.model.manifest import StreamClock
from tidegate.model.times import BEGINNING_US, END_US


@dataclass(frozen=True)
class ClockSettings:
    """How one stream's time is read."""

    lateness_us: int
    idle_timeout_us: int | None


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
    """The clocks after a batch that saw these newest times (None: no row of that stream).

    `awake_us` is when the run that decided the batch began to listen.
    """
    heard = {name: _heard(clock, seen_us.get(name), settings[name], now_us) for name, clock in clocks.items()}
    return _release_idle(heard, settings, now_us, awake_us)


def _heard(clock: StreamClock, seen_us: int | None, settings: ClockSettings, now_us: int) -> StreamClock:
    if seen_us is None:
        return clock
    seen = max(clock.seen_us, seen_us)
    watermark = max(clock.watermark_us, saturated(seen - settings.lateness_us))
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
    """The time, kept within what 64 bits can hold."""
    return max(BEGINNING_US, min(END_US, time_us))
