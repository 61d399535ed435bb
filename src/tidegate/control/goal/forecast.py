"""Forecast of the rows of the next batch, from the rates measured at the sources.

    batch b     [ rows since the trigger before ]
    batch b+1                                    [ rate · time until it begins ]

The expected rate is the mean of the last batches, or a line through them if it rises by more than chance. A
rate that differs by more than usual is suspect: only the next batch is prepared for more rows (`lasting`).
One that differs by far more, or a second suspect one in the same direction, is a change: the mean starts
anew. A rate that changes upwards twice in a row is expected to go on rising.

    rates   ▁▁▁▂▁▁▃▁▁▁▁▅▅▅▅▅
                  ↑    ↑↑ change
                  suspect only

A source without a limit has no backlog beyond the next batch. If it is read in portions (`backpressure.py`),
the rows that it still has are behind by the time they took to arrive. With triggers, the next batch begins at
the trigger or when this one ends, whichever is later; back to back (`trigger_seconds` 0), when this one ends.

Guarantee: a function of what was observed; `snapshot` → `restore` gives the same answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate.model.json_values import Snapshot

#: Batches that the mean is of, and steps from batch to batch that tell what is usual.
_RATES_KEPT, _STEPS_KEPT = 6, 24
#: The usual step, in standard deviations of a rate; a rise that is more than chance; and the least variation
#: assumed, as a part of the rate.
_USUAL, _MORE_THAN_CHANCE, _LEAST = 0.954, 2.0, 0.01
#: A rate that differs by `_SUSPECT` deviations is suspect; by `_CLEARLY` times as much, likely to recur; by
#: `_SURELY` times as much, a change. With 2 deviations one batch in twenty is suspect by chance.
_SUSPECT, _CLEARLY, _SURELY = 2.5, 1.5, 4.0
#: Variation assumed before enough steps were seen, how many are enough, and the largest rise extrapolated.
_AT_FIRST, _STEPS_ENOUGH, _RISE_MOST = 0.05, 4, 0.1
#: Least number of batches for a line.
_LINE_LEAST = 4
#: Least time between the starts of two batches, in case a clock goes backwards.
_SECONDS_LEAST = 1e-3


@dataclass(frozen=True)
class Expected:
    """Rows that arrive until the next batch, and the seconds that sources are behind."""

    rows: float
    behind_seconds: float
    #: Rows a second seen in two batches in a row; the backlog of a stalled source comes once.
    lasting_rate: float
    #: The part of these rows that later batches are expected to have as well.
    lasting: float = 1.0


class Arrivals:
    """Rows a second, over all streams."""

    def __init__(self) -> None:
        #: Rates since the last change, and relative steps from batch to batch.
        self._rates: list[float] = []
        self._steps: list[float] = []
        #: The last rate; the part by which it exceeded the expected one; and the side to which it is suspect
        #: (1, -1) or changes (2, -2).
        self._last, self._rise, self._side = 0.0, 0.0, 0
        self._began_us: int | None = None
        #: The rate expected for the last batch.
        self._rate = 0.0

    def observe(
        self, rows: float, now_us: int, busy_seconds: float, trigger_seconds: float, waiting: float = 0
    ) -> Expected:
        """After a batch that was planned at `now_us`.

        `rows`: those that arrived, taken by the batch or not; `waiting`: those still at the sources.
        """
        interval = max(trigger_seconds, busy_seconds, _SECONDS_LEAST)
        first = self._began_us is None
        since = interval if self._began_us is None else (now_us - self._began_us) / 1e6
        if self.is_silent:
            # Idle triggers were left out since: had there been rows, an earlier one would have had them.
            since = min(since, interval)
        last = rows / max(since, _SECONDS_LEAST)
        rate, lasting = self._expected_rate(last)
        before, self._rate = self._rate, rate
        self._began_us, self._last = now_us, last
        if first:
            # The rows of the first batch arrived over an unknown time, so they give no rate.
            self._rates = []
        late = max(0.0, busy_seconds - trigger_seconds) if trigger_seconds else 0.0
        return Expected(rate * interval, late + (waiting / rate if rate else 0.0), min(rate, before), lasting)

    @property
    def is_silent(self) -> bool:
        """Whether the last batch had no rows."""
        return not self._last

    def _expected_rate(self, last: float) -> tuple[float, float]:
        """The rate until the next batch, and the part of it that is expected to last."""
        if not self._rates or not last:
            self._rates, self._rise, self._side = [last] if last else [], 0.0, 0
            return last, 1.0
        mean, count, foreseen = float(np.mean(self._rates)), len(self._rates), self._next_rate()
        bound = _SUSPECT * self._usual() * (1 + 1 / count) ** 0.5
        off = (last - foreseen) / mean
        side, rise, risen = (1 if off > 0 else -1), max(0.0, off), self._rise
        self._steps = [*self._steps, (last - self._last) / mean][-_STEPS_KEPT:]
        if abs(off) <= bound:
            self._rates, self._rise, self._side = [*self._rates, last][-_RATES_KEPT:], 0.0, 0
            return self._next_rate(), 1.0
        again, going_on = side * self._side > 0, side * self._side > 1
        self._rise, self._side = rise, side
        if not again and abs(off) <= _SURELY * bound:
            likely = max(foreseen, last if off > _CLEARLY * bound else (last + foreseen) / 2)
            return likely, foreseen / likely
        since = self._rates if going_on else [self._last] if again else []
        self._rates, self._side = [*since, last][-_RATES_KEPT:], 2 * side
        return last * (1 + min(risen, rise, _RISE_MOST)), 1.0

    def _next_rate(self) -> float:
        """The mean of the rates, or the extrapolated line through them if it rises by more than chance."""
        rates, count = np.array(self._rates), len(self._rates)
        mean = float(rates.mean())
        if count < _LINE_LEAST:
            return mean
        at = np.arange(count) - (count - 1) / 2
        rise = float(at @ rates / (at @ at))
        off = max(float(np.std(rates - mean - rise * at)), _LEAST * mean)
        real = rise > _MORE_THAN_CHANCE * off / float(np.sqrt(at @ at))
        return mean + rise * (count + 1) / 2 if real else mean

    def _usual(self) -> float:
        """Relative variation of rates by chance: from the median deviation of steps."""
        if len(self._steps) < _STEPS_ENOUGH:
            return _AT_FIRST
        # A ramp has steps, too, but all of the same size.
        steps = np.array(self._steps)
        return max(_LEAST, float(np.median(np.abs(steps - np.median(steps)))) / _USUAL)

    def snapshot(self) -> Snapshot:
        return {
            "rates": self._rates,
            "steps": self._steps,
            "last": [self._last, self._rise, self._side],
            "began_us": self._began_us,
            "rate": self._rate,
        }

    @classmethod
    def restore(cls, raw: Mapping[str, Any]) -> Arrivals:
        restored = cls()
        restored._rates, restored._steps = list(raw["rates"]), list(raw["steps"])
        restored._last, restored._rise, restored._side = raw["last"]
        restored._began_us = raw["began_us"]
        restored._rate = raw.get("rate", 0.0)
        return restored
