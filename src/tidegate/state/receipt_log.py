"""`ReceiptLog`: what every batch lost, line by line, and the same by minute and by hour.

    <checkpoint>/receipts/             a line a batch      for 24 hours
    <checkpoint>/receipts_by_minute/   a line a minute     for 7 days
    <checkpoint>/receipts_by_hour/     a line an hour      for 400 days, or as long as the query is told

A batch has exactly one line of its own, also after replays and crashes. It is written before the manifest of
its batch; until that stands, the batch may run again, and replaces its line by one that differs in measured
times alone. Once a minute is over, the lines of its batches are read back and added up to a line of the
minute, and so on: only committed batches are added up, and what is added up is what is on the disk. A crash
in between loses nothing, because the last line of a minute says which batch comes next.

Whoever asks gets every batch once, from the coarsest lines that lie within what is asked for; finer ones fill
what is left at the ends, and what was lost. So totals stay exact as long as one of the three knows a batch.

Files are sealed line by line (`sealed_lines.py`), and can be read by any tool, each folder for itself:
`spark.read.json("<checkpoint>/receipts")`. Commits have no gaps, and the manifest says which batch is the
last and from which on there must be lines: so a lost line and a deleted file are noticed (`missing`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, NamedTuple

from tidegate.model.json_values import Json
from tidegate.model.manifest import Manifest
from tidegate.model.receipts import ReceiptRange, batches_of, hour_of, minute_of
from tidegate.state.sealed_lines import SealedLines
from tidegate.state.store.store import Store

_log = logging.getLogger(__name__)
#: Adds up the lines of one period.
Combine = Callable[[Sequence[Json]], Json]


class Retention(NamedTuple):
    """How long lines are kept, by their start."""

    batches: timedelta = timedelta(hours=24)
    minutes: timedelta = timedelta(days=7)
    hours: timedelta = timedelta(days=400)

    @classmethod
    def of(cls, kept_us: int | None) -> Retention:
        """The default, or lines of hours for so long, and no others for longer."""
        if kept_us is None:
            return DEFAULT
        whole = timedelta(microseconds=kept_us)
        return cls(min(whole, DEFAULT.batches), min(whole, DEFAULT.minutes), whole)


#: Unless the query says otherwise.
DEFAULT = Retention()


class ReceiptLog:
    """The receipts of one checkpoint; one writer at a time (see `lock`)."""

    def __init__(self, batches: Store, minutes: Store, hours: Store) -> None:
        self.batches = SealedLines(batches)
        self.minutes, self.hours = SealedLines(minutes, sums=True), SealedLines(hours, sums=True)
        #: The minute that was begun last, in this run.
        self._minute: str | None = None
        #: What was warned of: somebody may read again and again.
        self._warned: set[tuple[int, int, int]] = set()

    @property
    def tiers(self) -> tuple[SealedLines, ...]:
        """In the order in which lines pass from one to the next."""
        return (self.batches, self.minutes, self.hours)

    def write(self, receipt: Mapping[str, Any]) -> None:
        """Keep the receipt of a batch; that of a batch that runs again takes the place of the first."""
        self.batches.put(receipt)

    def read(self, wanted: ReceiptRange | None = None, state: Manifest | None = None) -> list[Json]:
        """The lines that cover the wanted batches, each batch once, oldest first.

        With the last manifest, batches that should have a line and have none are warned of.
        """
        wanted = (wanted or ReceiptRange()).resolved(self.batches.newest())
        tiers = [self.batches] if wanted.by_batch else [self.hours, self.minutes, self.batches]
        spans: list[tuple[int, int | None]] = [(0, None)]
        lines: list[Json] = []
        for tier in tiers:
            lines += [line for first, last in spans for line in tier.read(wanted, first, last)]
            lines.sort(key=batches_of)
            spans = _uncovered(lines)
        if state is not None:
            self._warn_of(missing(lines, wanted, state))
        return lines

    def _warn_of(self, spans: Sequence[tuple[int, int, int]]) -> None:
        for first, last, lost in set(spans) - self._warned:
            _log.warning(
                "The receipts of %d of the batches %d to %d are missing: lines were lost or damaged, so sums "
                "lack these batches",
                *(lost, first, last),
            )
        self._warned.update(spans)

    def begins_period(self, receipt: Mapping[str, Any]) -> bool:
        """Whether a batch is the first of a minute, or of this run: the time to roll up and to purge."""
        return self._minute != minute_of(receipt)

    def roll_up(self, newest: Mapping[str, Any], combine: Combine) -> None:
        """Add up all minutes and hours that are over; `newest`: the receipt of the last commit."""
        minute = minute_of(newest)
        self._roll(self.batches, self.minutes, minute_of, combine, newest)
        if self._minute is None or self._minute[:13] != minute[:13]:
            self._roll(self.minutes, self.hours, hour_of, combine, newest)
        self._minute = minute

    @staticmethod
    def _roll(
        finer: SealedLines,
        coarser: SealedLines,
        label: Callable[[Mapping[str, Any]], str],
        combine: Combine,
        newest: Mapping[str, Any],
    ) -> None:
        done = coarser.newest()
        since = 0 if done is None else batches_of(done)[1] + 1
        lines = finer.read(ReceiptRange(), since, batches_of(newest)[1])
        for _, some in groupby(lines, label):
            run = list(some)
            # The last period may go on, unless the newest batch is in another one.
            if run[-1] is not lines[-1] or label(run[-1]) != label(newest):
                coarser.put({**combine(run), "started_at": label(run[0])})

    def kept_from(self, now_us: int, retention: Retention, before: Sequence[int]) -> tuple[int, int, int]:
        """By tier: the first batch that is still kept at this time; `before`: as of the last manifest."""
        now = datetime.fromtimestamp(now_us / 1e6, UTC)
        batches, minutes, hours = (
            tier.kept_from(ReceiptRange(since=now - age), known)
            for tier, age, known in zip(
                (self.batches, self.minutes, self.hours), retention, before, strict=True
            )
        )
        return batches, minutes, hours

    def purge(self, kept_from: Sequence[int]) -> None:
        """Delete what lies before these batches, by tier; a manifest must say so already."""
        for tier, first in zip((self.batches, self.minutes, self.hours), kept_from, strict=True):
            tier.purge(first)

    def tidy(self) -> None:
        """Delete what a crash left of writes that were cut short."""
        for tier in (self.batches, self.minutes, self.hours):
            tier.tidy()


def missing(lines: Sequence[Json], wanted: ReceiptRange, state: Manifest) -> list[tuple[int, int, int]]:
    """Batches that should have a line and have none: the first and the last of a run, and how many of it.

    A range by time begins with the first line that is there, because only the lines know times.
    """
    kept = state.receipts_from
    begin = max(kept[0] if wanted.by_batch else min(kept), wanted.first_batch)
    if wanted.since is not None and lines:
        begin = batches_of(lines[0])[0]
    found = []
    for line in lines:
        first, last = batches_of(line)
        if first > begin:
            found.append((begin, first - 1, first - begin))
        lost = last - first + 1 - int(line.get("batches", 1))
        if lost:
            found.append((first, last, lost))
        begin = max(begin, last + 1)
    if begin <= state.batch:
        found.append((begin, state.batch, state.batch - begin + 1))
    return found


def _uncovered(lines: Sequence[Json]) -> list[tuple[int, int | None]]:
    """The batches that these lines leave out."""
    spans: list[tuple[int, int | None]] = []
    begin = 0
    for line in lines:
        first, last = batches_of(line)
        if first > begin:
            spans.append((begin, first - 1))
        begin = last + 1
    return [*spans, (begin, None)]
