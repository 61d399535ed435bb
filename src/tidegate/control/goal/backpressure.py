"""Backpressure: how many rows of each stream the next batch takes from its source, so that it ends in time.

    waiting at the sources   a ▒▒▒▒▒▒▒▒▒▒▒▒▒▒    b ▒▒▒▒▒
    the next batch           a ▓▓▓▓              b ▓▓          up to one event time

Ours. Without a limit, the first batch after a pause or a burst would hold hours of rows and miss the goal.

`wanted`: the rows that arrive meanwhile plus a part of the waiting ones, so that a backlog is drained within
a few batches. This may exceed the time budget; then work is shed. Rows that have waited so long that no
shedding could bring them in on time (the history of a stream) are not hurried. At least as many rows are
wanted as fit without shedding.

`limits`: what fits into the time of a batch. The load model may underestimate this for long, because the
per-row cost cannot be estimated until batch sizes vary. So while rows wait and batches have spare time, the
limit grows by a quarter per batch from the third such batch on (`more`); an overlong batch halves the growth.
While rows wait, all streams are read up to the same event time, because a row of a stream that is ahead would
be stored until the others arrive.

Sources are limited in their own units: files or rows. Guarantee: a function of what was observed; every
stream may always give at least one unit, and a part of its share even if it is ahead; `snapshot` → `restore`
gives the same answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tidegate.model.json_values import Snapshot

#: Rows that wait are worked off within so many batches.
_DRAIN = 5
#: Weight of the last batch in the mean rows per file and rows per second of event time.
_NEWS = 0.3
#: A stream that is ahead of others still gets this part of its share.
_LEAST_SHARE = 0.1
#: A batch that uses less than `_SPARE` of its time has spare time. Each such batch after the first `_AFTER`
#: raises the limit by the factor `_STEP`, or to what would use `_USED` of the time, up to `_MORE_MOST` times
#: the modelled limit.
_SPARE, _STEP, _USED, _MORE_MOST, _AFTER = 0.85, 1.25, 0.95, 8.0, 3
#: A source that does not report its backlog is assumed to hold as much again if it gave this part of its
#: limit.
_FULL = 0.9


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


@dataclass(frozen=True)
class Fits:
    """Rows that fit into a batch: without shedding, at the decided levels, and at the deepest levels."""

    full: float
    decided: float
    deepest: float
    #: Limited by the largest step that is tried at once, not by time.
    tried: bool = False


@dataclass(frozen=True)
class _Stream:
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

    def after(self, taken: TakenRows) -> _Stream:
        per_unit = self.per_unit
        if taken.units and taken.rows:
            per_unit = _moved(per_unit if self.limited else 0.0, taken.rows / taken.units)
        before_us, newest_us = self.newest_us, taken.newest_us
        moved_us = 0 if before_us is None or newest_us is None else newest_us - before_us
        pace = _moved(self.pace, taken.rows / moved_us) if moved_us > 0 and taken.rows else self.pace
        most = None if taken.most is None else taken.most * per_unit
        waiting = _waiting(taken) * per_unit
        return _Stream(taken.rows, per_unit, pace, waiting, newest_us, taken.units is not None, most)


def _moved(before: float, last: float) -> float:
    return before + _NEWS * (last - before) if before else last


def _waiting(taken: TakenRows) -> float:
    """Units that wait."""
    if taken.waiting is not None or taken.units is None:
        return taken.waiting or 0
    limit = taken.most if taken.limit is None else taken.limit
    return taken.units if limit is not None and taken.units >= _FULL * limit else 0


class Backpressure:
    """The backlog of each source, and the limit for the next batch."""

    def __init__(self) -> None:
        self._streams: dict[str, _Stream] = {}
        self._fits: Fits | None = None
        #: Factor on the modelled limit; consecutive batches with spare time while rows wait.
        self.more, self._spared = 1.0, 0

    def felt(self, used: float) -> None:
        """Learn from a batch that used this part of its time. Call it after `observe`."""
        tried = self._fits is None or self._fits.tried
        self._spared = self._spared + 1 if self.waiting and used < _SPARE and not tried else 0
        if used > 1:
            self.more = max(1.0, self.more / 2)
        elif not self.waiting:
            self.more = max(1.0, self.more / _STEP)
        elif self._spared >= _AFTER:
            self.more = min(_MORE_MOST, min(_STEP, _USED / used) * self.more)

    @property
    def waiting(self) -> float:
        """Rows that wait at the sources."""
        return sum(stream.waiting for stream in self._streams.values())

    def held(self, taken: Mapping[str, TakenRows]) -> float:
        """Rows that wait because of our limits, not of the user's. Call it after `observe`."""
        ours = [name for name, one in taken.items() if one.most is None or (one.limit or one.most) < one.most]
        return sum(self._streams[name].waiting for name in ours)

    def observe(self, taken: Mapping[str, TakenRows]) -> float:
        """Learn from a batch; returns the rows that arrived since the batch before, taken or not."""
        # The backlog that the first batch finds has built up for an unknown time.
        waited = self.waiting if self._streams else None
        self._streams = {
            name: self._streams.get(name, _Stream()).after(one) for name, one in sorted(taken.items())
        }
        more = 0.0 if waited is None else self.waiting - waited
        return max(0.0, self._rows + more)

    @property
    def _rows(self) -> float:
        return sum(stream.rows for stream in self._streams.values())

    def wanted(self, coming: float) -> float:
        """Rows that the next batch should have, if this many arrive meanwhile."""
        waiting, fits = self.waiting, self._fits
        if not waiting:
            return coming
        there = min(coming + waiting, self._allowed(coming))
        if fits is None:
            return min(there, max(coming, self._rows))
        hurried = coming + waiting / _DRAIN
        if hurried > fits.deepest:
            hurried = coming
        # What fits without shedding, and one unit of each stream, is let in anyway; expecting less would make
        # the forecast wrong.
        return min(there, max(hurried, fits.full, self._least))

    @property
    def _least(self) -> float:
        """Rows in the one unit that each stream may always give, where it has one."""
        return sum(min(one.per_unit, one.waiting) for one in self._streams.values() if one.limited)

    def _allowed(self, coming: float) -> float:
        """The largest number of rows that the user's limits allow."""
        return sum(coming + one.waiting if one.most is None else one.most for one in self._streams.values())

    def limits(self, fits: Fits) -> dict[str, int]:
        """By stream whose source can be limited: units that the next batch may take."""
        self._fits = fits
        rows = self._rows
        if not rows:
            return {}
        shares = {name: stream.rows / rows * fits.decided for name, stream in self._streams.items()}
        aligned = self._aligned(fits.decided, shares) if self.waiting else shares
        units = {
            name: max(aligned[name], _LEAST_SHARE * shares[name]) / stream.per_unit
            for name, stream in self._streams.items()
            if stream.limited and stream.rows
        }
        return self._whole(units, fits.decided)

    def let_in(self, limits: Mapping[str, int]) -> float:
        """Rows in these units, plus those of streams that cannot be limited."""
        return sum(
            limits[name] * one.per_unit if name in limits else one.rows for name, one in self._streams.items()
        )

    def _whole(self, units: Mapping[str, float], rows: float) -> dict[str, int]:
        """In whole units, at least one each; the remainder goes to the streams that rounding cut most, if it
        fits.
        """
        whole = {name: max(1, int(one)) for name, one in units.items()}
        left = rows - sum(one * self._streams[name].per_unit for name, one in whole.items())
        for name in sorted(units, key=lambda name: whole[name] - units[name]):
            if self._streams[name].per_unit <= left and whole[name] < units[name]:
                whole[name] += 1
                left -= self._streams[name].per_unit
        return whole

    def _aligned(self, rows: float, shares: Mapping[str, float]) -> dict[str, float]:
        """This many rows in all, split so that all streams reach the same event time."""
        since_us = min((one.newest_us or 0) for one in self._streams.values() if one.waiting)
        # A stream that is behind with no backlog cannot catch up, so it holds no other stream back.
        ahead_us = {
            name: one.newest_us - since_us
            for name, one in self._streams.items()
            if one.pace and one.newest_us is not None and (one.waiting or one.newest_us > since_us)
        }
        given = {
            name: min(shares[name], one.rows) for name, one in self._streams.items() if name not in ahead_us
        }
        left, until_us, pace = max(0.0, rows - sum(given.values())), 0.0, 0.0
        for name in sorted(ahead_us, key=lambda name: ahead_us[name]):
            rise = pace * (ahead_us[name] - until_us)
            if pace and rise >= left:
                break
            left, until_us, pace = left - rise, ahead_us[name], pace + self._streams[name].pace
        until_us += left / pace if pace else 0.0
        return given | {
            name: self._streams[name].pace * max(0.0, until_us - at_us) for name, at_us in ahead_us.items()
        }

    def snapshot(self) -> Snapshot:
        return {
            "streams": {name: asdict(one) for name, one in self._streams.items()},
            "fits": None if self._fits is None else asdict(self._fits),
            "more": [self.more, self._spared],
        }

    @classmethod
    def restore(cls, raw: Mapping[str, Any]) -> Backpressure:
        restored = cls()
        restored._streams = {name: _Stream(**one) for name, one in raw["streams"].items()}
        restored._fits = None if raw["fits"] is None else Fits(**raw["fits"])
        restored.more, restored._spared = raw.get("more", (1.0, 0))
        return restored
