"""How many rows of each stream the next batch takes from its source, so that it ends in time.

    waiting at the sources   a ▒▒▒▒▒▒▒▒▒▒▒▒▒▒    b ▒▒▒▒▒
    the next batch           a ▓▓▓▓              b ▓▓          up to one event time

Ours: a source that gives all it has gives the first batch after a pause, or after a burst, hours of rows, and
whatever the goal says that batch takes as long as it takes.

How many rows are *wanted*: those that come meanwhile, and a part of those that wait, so that a burst is over
after a few batches. That may be more than there is time for, and work is then left out. But rows that wait
longer than leaving out work could ever bring back in time (the history of a stream) are late whatever is
done: they are not hurried. In any case as many are wanted as there is time for with nothing left out.

How many are *let in*: what fits into the time of a batch, whatever was wanted. What fits is what was learnt,
and that may be wrong for long: of batches that are all of one size nobody learns what rows take, and a file
more may be twice the rows. So while rows wait and batches have time to spare, from the third one on a quarter
more fits with every batch (`more`); one that takes too long halves that again. While rows wait, streams are
let in up to the same event time, because a row of a stream that runs ahead is stored until the others come.

Sources are counted in units of their own: files, where they give whole files, or rows. Guarantee: a function
of what was observed; every stream is always let in with a unit at least, and with a part of its share even
where it is ahead; `snapshot` → `restore` gives the same answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tidegate.model.json_values import Snapshot

#: Rows that wait are worked off within so many batches.
_DRAIN = 5
#: Weight of the last batch in what a file holds and what a second of event time brings.
_NEWS = 0.3
#: A stream that is ahead of others still gets this part of its share.
_LEAST_SHARE = 0.1
#: Batches that use less than this part of their time have some to spare; so many times as much then fits with
#: every one of them, or what would use that part of it, up to so many times what was learnt; but not yet with
#: the first few: what was just learnt has to be tried.
_SPARE, _STEP, _USED, _MORE_MOST, _AFTER = 0.85, 1.25, 0.95, 8.0, 3
#: A source that does not say what waits is thought to hold as much again when it gave this part of its limit.
_FULL = 0.9


@dataclass(frozen=True)
class TakenRows:
    """What a batch took of one stream."""

    rows: int
    #: The newest event time so far; None before the first row.
    newest_us: int | None
    #: Of a source that can be limited: units taken, those that wait (None: it does not say), its limit, and
    #: the largest one that the user allows (None: any).
    units: int | None = None
    waiting: int | None = None
    limit: int | None = None
    most: int | None = None


@dataclass(frozen=True)
class Fits:
    """Rows that fit into a batch: with nothing left out, as decided, and with all left out that may be."""

    full: float
    decided: float
    deepest: float
    #: Not what there is time for, but the most that is tried at once.
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
    """What sources hold, and what they are asked for."""

    def __init__(self) -> None:
        self._streams: dict[str, _Stream] = {}
        self._fits: Fits | None = None
        #: How many times as much fits as was learnt; batches in a row that had time to spare while rows wait.
        self.more, self._spared = 1.0, 0

    def felt(self, used: float) -> None:
        """After a batch that used this part of its time, and what it took is known."""
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

    def observe(self, taken: Mapping[str, TakenRows]) -> float:
        """After a batch; returns the rows that came since the one before, taken or not."""
        # What the first batch of all meets has gathered for nobody knows how long.
        waited = self.waiting if self._streams else None
        self._streams = {
            name: self._streams.get(name, _Stream()).after(one) for name, one in sorted(taken.items())
        }
        more = 0.0 if waited is None else self.waiting - waited
        return max(0.0, self._rows + more)

    @property
    def _rows(self) -> float:
        return sum(stream.rows for stream in self._streams.values())

    def wanted(self, coming: float, hurry: bool = True) -> float:
        """Rows that the next batch should have, where so many come meanwhile.

        `hurry`: the sooner what waits is worked off, the better.
        """
        waiting, fits = self.waiting, self._fits
        if not waiting:
            return coming
        there = min(coming + waiting, self._allowed(coming))
        if fits is None:
            return min(there, max(coming, self._rows))
        hurried = coming + waiting / _DRAIN
        if not hurry or hurried > fits.deepest:
            hurried = coming
        # What fits with nothing left out is let in anyway: who expects less is surprised by it.
        return min(there, max(hurried, fits.full))

    def _allowed(self, coming: float) -> float:
        """What the user lets sources give at most."""
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
        """Rows of so many units, and of streams that cannot be limited."""
        return sum(
            limits[name] * one.per_unit if name in limits else one.rows for name, one in self._streams.items()
        )

    def _whole(self, units: Mapping[str, float], rows: float) -> dict[str, int]:
        """In whole units, one of each at least; what is cut off goes to those that lost most, if it fits."""
        whole = {name: max(1, int(one)) for name, one in units.items()}
        left = rows - sum(one * self._streams[name].per_unit for name, one in whole.items())
        for name in sorted(units, key=lambda name: whole[name] - units[name]):
            if self._streams[name].per_unit <= left and whole[name] < units[name]:
                whole[name] += 1
                left -= self._streams[name].per_unit
        return whole

    def _aligned(self, rows: float, shares: Mapping[str, float]) -> dict[str, float]:
        """So many rows in all, such that the streams come to the same event time."""
        since_us = min((one.newest_us or 0) for one in self._streams.values() if one.waiting)
        # A stream that is behind and has nothing waiting is so by nature, and no faster for being let in.
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
