"""Forecast of the rows of the next batch, from the rates measured at the sources.

    batch b     [ rows since the trigger before ]
    batch b+1                                    [ rate · time until it begins ]

Two means of the rate, a fast and a slow one. They agree under steady input, and the slow one is expected. If
the fast one is higher by more than chance, the rate rises, and is expected to go on. A rate that differs from
the expected one by far more than usual is a surprise: the next batch is prepared for it (`lasting` says which
part of its rows is usual). A second one to the same side, or a very large one, is a change, and both means
start anew.

    rates   ▁▁▁▂▁▁▃▁▁▁▁▅▅▅▅▅
                  ↑    ↑↑ change
                  surprise only

A source without a limit has no backlog beyond the next batch. If it is read in portions (`backpressure.py`),
the rows that it still has are behind by the time they took to arrive. With triggers, the next batch begins at
the trigger or when this one ends, whichever is later; back to back (`trigger_seconds` 0), when this one ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from sys import float_info

from tidegate.control.goal.control_tuning import TUNING, ControlTuning


@dataclass(frozen=True)
class Expected:
    """Rows that arrive until the next batch, and the seconds that sources are behind."""

    rows: float
    behind_seconds: float
    #: Rows a second seen in two batches in a row; the backlog of a stalled source comes once.
    lasting_rate: float
    #: The part of these rows that later batches are expected to have as well.
    lasting: float = 1.0


@dataclass
class Arrivals:
    """Rows a second, over all streams; its fields are all that it remembers."""

    #: Means of the rate, and its usual deviation.
    fast: float = 0.0
    slow: float = 0.0
    spread: float = 0.0
    #: The last rate, and the sign of its deviation if it was a surprise.
    last: float = 0.0
    surprise: int = 0
    began_us: int | None = None
    #: The rate expected for the last batch.
    expected: float = 0.0

    def observe(
        self,
        rows: float,
        now_us: int,
        busy_seconds: float,
        trigger_seconds: float,
        waiting: float = 0,
        tuning: ControlTuning = TUNING,
    ) -> Expected:
        """After a batch that was planned at `now_us`.

        `rows`: those that arrived, taken by the batch or not; `waiting`: those still at the sources.
        """
        interval = max(trigger_seconds, busy_seconds, float_info.epsilon)
        first = self.began_us is None
        since = (
            interval
            if self.began_us is None
            else timedelta(microseconds=now_us - self.began_us).total_seconds()
        )
        if self.is_silent:
            # Idle triggers were left out since: had there been rows, an earlier one would have had them.
            since = min(since, interval)
        # A clock that goes backwards gives no time.
        rate, lasting = self._next(rows / (since if since > 0 else interval), tuning)
        before, self.expected, self.began_us = self.expected, rate, now_us
        if first:
            # The rows of the first batch arrived over an unknown time, so they give no rate.
            self.slow = self.fast = 0.0
        late = max(0.0, busy_seconds - trigger_seconds) if trigger_seconds else 0.0
        return Expected(rate * interval, late + (waiting / rate if rate else 0.0), min(rate, before), lasting)

    @property
    def is_silent(self) -> bool:
        """Whether the last batch had no rows."""
        return not self.last

    def _next(self, last: float, tuning: ControlTuning) -> tuple[float, float]:
        """The rate until the next batch, and the part of it that is expected to last."""
        before, self.last = self.last, last
        if not self.slow or not last:
            self.fast = self.slow = last
            self.spread, self.surprise = self.spread or tuning.load.noise_first * last / 2, 0
            return last, 1.0
        foreseen = self._foreseen
        off, side = last - foreseen, 1 if last > foreseen else -1
        bound = tuning.forecast.surprise * max(self.spread, tuning.load.noise_least * foreseen)
        again = side == self.surprise and abs(off) > bound / 2
        self.surprise = side if abs(off) > bound or again else 0
        self.spread += (min(abs(off), bound) - self.spread) / tuning.load.memory
        if again or abs(off) > tuning.forecast.surprise * bound:
            # Two rates on the way up are a line.
            self.fast, self.slow = last, before if again and side > 0 else last
            return max(last, self._foreseen), 1.0
        if self.surprise:
            return max(last, foreseen), foreseen / max(last, foreseen)
        self.slow += (last - self.slow) / tuning.forecast.memory
        self.fast += (last - self.fast) / max(1.0, tuning.forecast.memory / 2)
        return self._foreseen, 1.0

    @property
    def _foreseen(self) -> float:
        """The slow mean, or where the rate rises, the next point of the line through both means."""
        return max(self.slow, 2 * self.fast - self.slow)
