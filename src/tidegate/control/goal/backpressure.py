"""Backpressure: how many rows of each stream the next batch takes from its source, so that it ends in time.

    waiting at the sources   a ▒▒▒▒▒▒▒▒▒▒▒▒▒▒    b ▒▒▒▒▒
    the next batch           a ▓▓▓▓              b ▓▓          up to one event time

Ours. Without a limit, the first batch after a pause or a burst would hold hours of rows and miss the goal.

`wanted`: the rows that arrive meanwhile plus a part of the waiting ones, so that a backlog is drained within
a few batches. This may exceed the time budget; then work is shed. Rows that have waited so long that no
shedding could bring them in on time (the history of a stream) are not hurried. At least as many rows are
wanted as fit without shedding.

`limits`: what fits into the time of a batch. While rows wait, all streams are read up to the same event time,
because a row of a stream that is ahead would be stored until the others arrive.

Sources are limited in their own units: files or rows. Guarantee: every stream may always give at least one
unit, and a part of its share even if it is ahead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.control.goal.control_tuning import TUNING, ControlTuning


@dataclass(frozen=True)
class TakenRows:
    """What a batch took of one stream."""

    rows: int
    #: The newest event time so far; None before the first row.
    newest_us: int | None
    #: Of a source that can be limited: units taken, units waiting (None: not reported), its limit, and
    #: the largest one that the user allows (None: any).
    units: int | None = None
    waiting: int | None = None
    limit: int | None = None
    most: int | None = None

    def units_waiting(self, tuning: ControlTuning) -> int:
        """Units that wait. A source that does not report them and gave about its limit has as many again."""
        if self.waiting is not None or self.units is None:
            return self.waiting or 0
        limit = self.most if self.limit is None else self.limit
        return self.units if limit and self.units >= (1 - tuning.level.measurable) * limit else 0


@dataclass(frozen=True)
class Fits:
    """Rows that fit into a batch: without shedding, at the decided levels, and at the deepest levels."""

    full: float
    decided: float
    deepest: float


@dataclass(frozen=True)
class SourceBacklog:
    """What is known of one stream."""

    rows: float = 0.0
    #: Rows of a unit, rows per microsecond of event time, and rows that wait.
    per_unit: float = 1.0
    pace: float = 0.0
    waiting: float = 0.0
    newest_us: int | None = None
    #: Can its source be limited, and what does the user allow, in rows?
    limited: bool = False
    most: float | None = None

    def after(self, taken: TakenRows, tuning: ControlTuning) -> SourceBacklog:
        def moved(before: float, last: float) -> float:
            return before + (last - before) / tuning.forecast.memory if before else last

        per_unit = self.per_unit
        if taken.units and taken.rows:
            per_unit = moved(per_unit if self.limited else 0.0, taken.rows / taken.units)
        before_us, newest_us = self.newest_us, taken.newest_us
        moved_us = 0 if before_us is None or newest_us is None else newest_us - before_us
        pace = moved(self.pace, taken.rows / moved_us) if moved_us > 0 and taken.rows else self.pace
        most = None if taken.most is None else taken.most * per_unit
        waiting = taken.units_waiting(tuning) * per_unit
        return SourceBacklog(taken.rows, per_unit, pace, waiting, newest_us, taken.units is not None, most)


@dataclass
class Backpressure:
    """The backlog of each source, and what fits into a batch; its fields are all that it remembers."""

    streams: dict[str, SourceBacklog] = field(default_factory=dict)
    fits: Fits | None = None
    #: Rows of the largest batch remembered.
    largest: float = 0.0

    @property
    def waiting(self) -> float:
        """Rows that wait at the sources."""
        return sum(stream.waiting for stream in self.streams.values())

    @property
    def rows(self) -> float:
        """Rows of the last batch."""
        return sum(stream.rows for stream in self.streams.values())

    def held(self, taken: Mapping[str, TakenRows]) -> float:
        """Rows that wait because of our limits, not of the user's. Call it after `observe`."""
        ours = [name for name, one in taken.items() if one.most is None or (one.limit or one.most) < one.most]
        return sum(self.streams[name].waiting for name in ours)

    def observe(self, taken: Mapping[str, TakenRows], tuning: ControlTuning = TUNING) -> float:
        """Learn from a batch; returns the rows that arrived since the batch before, taken or not."""
        # The backlog that the first batch finds has built up for an unknown time.
        waited = self.waiting if self.streams else None
        self.streams = {
            name: self.streams.get(name, SourceBacklog()).after(one, tuning)
            for name, one in sorted(taken.items())
        }
        self.largest = max(self.rows, (1 - 1 / tuning.load.scale_memory) * self.largest)
        more = 0.0 if waited is None else self.waiting - waited
        return max(0.0, self.rows + more)

    def wanted(self, coming: float, tuning: ControlTuning = TUNING) -> float:
        """Rows that the next batch should have, if this many arrive meanwhile."""
        waiting, fits = self.waiting, self.fits
        if not waiting:
            return coming
        allowed = sum(coming + one.waiting if one.most is None else one.most for one in self.streams.values())
        there = min(coming + waiting, allowed)
        if fits is None:
            return min(there, max(coming, self.rows))
        hurried = coming + waiting / tuning.forecast.drain
        # One unit of each stream is let in anyway; expecting less would make the forecast wrong.
        least = sum(min(one.per_unit, one.waiting) for one in self.streams.values() if one.limited)
        return min(there, max(coming if hurried > fits.deepest else hurried, fits.full, least))

    def limits(self, fits: Fits, tuning: ControlTuning = TUNING) -> dict[str, int]:
        """By stream whose source can be limited: units that the next batch may take."""
        self.fits = fits
        if not self.rows:
            return {}
        shares = {name: stream.rows / self.rows * fits.decided for name, stream in self.streams.items()}
        aligned = self._aligned(fits.decided, shares) if self.waiting else shares
        units = {
            name: max(aligned[name], tuning.level.measurable * shares[name]) / stream.per_unit
            for name, stream in self.streams.items()
            if stream.limited and stream.rows
        }
        return self._whole(units, fits.decided)

    def let_in(self, limits: Mapping[str, int]) -> float:
        """Rows in these units, plus those of streams that cannot be limited."""
        return sum(
            limits[name] * one.per_unit if name in limits else one.rows for name, one in self.streams.items()
        )

    def _whole(self, units: Mapping[str, float], rows: float) -> dict[str, int]:
        """In whole units, at least one each; the remainder goes to the streams that rounding cut most, if it
        fits.
        """
        whole = {name: max(1, int(one)) for name, one in units.items()}
        left = rows - self.let_in(whole)
        for name in sorted(units, key=lambda name: whole[name] - units[name]):
            if self.streams[name].per_unit <= left and whole[name] < units[name]:
                whole[name] += 1
                left -= self.streams[name].per_unit
        return whole

    def _aligned(self, rows: float, shares: Mapping[str, float]) -> dict[str, float]:
        """This many rows in all, split so that all streams reach the same event time."""
        since_us = min((one.newest_us or 0) for one in self.streams.values() if one.waiting)
        # A stream that is behind with no backlog cannot catch up, so it holds no other stream back.
        ahead_us = {
            name: one.newest_us - since_us
            for name, one in self.streams.items()
            if one.pace and one.newest_us is not None and (one.waiting or one.newest_us > since_us)
        }
        given = {
            name: min(shares[name], one.rows) for name, one in self.streams.items() if name not in ahead_us
        }
        left, until_us, pace = max(0.0, rows - sum(given.values())), 0.0, 0.0
        for name in sorted(ahead_us, key=lambda name: ahead_us[name]):
            rise = pace * (ahead_us[name] - until_us)
            if pace and rise >= left:
                break
            left, until_us, pace = left - rise, ahead_us[name], pace + self.streams[name].pace
        until_us += left / pace if pace else 0.0
        return given | {
            name: self.streams[name].pace * max(0.0, until_us - at_us) for name, at_us in ahead_us.items()
        }
