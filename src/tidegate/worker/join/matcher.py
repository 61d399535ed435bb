"""How rows of one run meet rows of another: ranges that key and time nominate, pairs that the judge picks.

Nothing here knows which rows are new and which are stored: `finding.py` lets new rows meet what they may look
at, `paying.py` lets stored rows meet what they owe.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tidegate.join.probe import probe as kernel
from tidegate.join.probe.key_filter import worth_asking
from tidegate.join.selective.reach import ProbeRange
from tidegate.model.times import LEFT
from tidegate.worker.join.joined_rows import PairReferences, same_keys
from tidegate.worker.join.positions import Places
from tidegate.worker.join.predicates import by_time, judge_of, places_of
from tidegate.worker.join.work import JoinWork
from tidegate.worker.runtime.runs import RowRun, StoredRun


class Matcher:
    """What the runs of one join have in common, with what was prepared of them; see the module docstring."""

    def __init__(self, work: JoinWork, by_time: dict[int, Places] | None = None) -> None:
        self._layout, self.judge = work.layout, judge_of(work)
        self._by_time = {} if by_time is None else by_time
        #: Looks of rows at stored runs that certainly do not have their key: not even searched for.
        self.spared = 0

    @property
    def judges(self) -> bool:
        """May a candidate turn out to be no pair?"""
        return bool(self._layout.verify) or self._layout.condition is not None

    def candidates(self, run: RowRun, probe: ProbeRange, other: RowRun) -> Iterator[kernel.Ranges]:
        """Per row of the look the rows of the other run that key and time allow."""
        if self._layout.spread:
            yield by_time(self.places(other), probe.rows, probe.low, probe.high)
            return
        codes, probe = self._with_key(run, probe, other)
        for start, stop in other.slices:
            # Only rows whose codes lie in the slice: where slices are many and small, looking at all new rows
            # for each of them would cost more than the pairs.
            first = int(np.searchsorted(codes, other.codes[start])) if start else 0
            behind = int(np.searchsorted(codes, other.codes[stop - 1], side="right"))
            if first == behind:
                continue
            low, high = probe.low[first:behind], probe.high[first:behind]
            mine, in_order = codes[first:behind], not probe.exploring
            ranges = kernel.probe(mine, low, high, other.codes, other.times, start, stop, in_order)
            rows = ranges.rows + first if first else ranges.rows
            yield replace(ranges, rows=rows if probe.rows is None else probe.rows[rows])

    def _with_key(
        self, run: RowRun, probe: ProbeRange, other: RowRun
    ) -> tuple[NDArray[np.uint64], ProbeRange]:
        """The codes of the rows that look, without those whose key is not there."""
        codes = run.codes if probe.rows is None else run.codes[probe.rows]
        if not isinstance(other, StoredRun) or not worth_asking(len(codes), other.in_sight):
            return codes, probe
        known = other.key_filter.may_hold(codes)
        self.spared += len(codes) - len(known)
        rows = known if probe.rows is None else probe.rows[known]
        return codes[known], replace(probe, rows=rows, low=probe.low[known], high=probe.high[known])

    def prepare(self, run: RowRun, other: RowRun) -> None:
        """Make what is made once of two runs, however many of their pairs are looked at."""
        self.judge.prepare(run, other, self.places(other) if self._layout.spread else None)

    def pairs(
        self, run: RowRun, other: RowRun, ranges: kernel.Ranges, at_most: int
    ) -> Iterator[PairReferences]:
        """The pairs among candidates, keys verified, so many at once."""
        places = self.places(other) if self._layout.spread else None
        for mine, theirs in self.judge.pairs(run, other, places, ranges, at_most):
            found = (
                PairReferences(run, mine, other, theirs)
                if run.side == LEFT
                else PairReferences(other, theirs, run, mine)
            )
            yield found.only(same_keys(found, self._layout.verify)) if self._layout.verify else found

    def size(self, probe: ProbeRange, other: RowRun, middle: tuple[float, float] | None = None) -> float:
        """How many pairs a look takes in: exactly, where rows are sorted by time.

        `middle`: the range of a row on average, where that is known already.
        """
        if self._layout.spread:
            return by_time(self.places(other), probe.rows, probe.low, probe.high).total
        # Counting them would cost a probe; as if rows lay evenly in time.
        if probe.exploring:
            seen = np.minimum(probe.high, other.last_us) - np.maximum(probe.low, other.first_us) + 1.0
            return _part(other, float(np.maximum(seen, 0.0).sum()))
        if middle is None:
            middle = float(probe.low.mean()), float(probe.high.mean())
        low, high = max(middle[0], other.first_us), min(middle[1], other.last_us)
        return _part(other, probe.low.size * max(0.0, high - low + 1))

    def places(self, run: RowRun) -> Places:
        """The rows of a run by time, sorted once a batch."""
        if id(run) not in self._by_time:
            self._by_time[id(run)] = places_of(run)
        return self._by_time[id(run)]


def _part(other: RowRun, seen_us: float) -> float:
    """How many rows of a run lie in so many microseconds of it."""
    return other.in_sight * seen_us / (other.last_us - other.first_us + 1)


def chunks(found: Iterator[PairReferences], at_least: int) -> Iterator[list[PairReferences]]:
    """Pairs in lists of about so many."""
    waiting: list[PairReferences] = []
    size = 0
    for pairs in found:
        waiting.append(pairs)
        size += len(pairs)
        if size >= at_least:
            yield waiting
            waiting, size = [], 0
    if waiting:
        yield waiting
