"""Matches the rows of two runs: key and time give candidate ranges, the join predicate selects the pairs.

The matcher does not distinguish new rows from stored ones. `pair_finder.py` uses it for new rows, `repair.py`
for stored rows whose pairs were skipped.
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
from tidegate.worker.join.joined_rows import PairReferences, Places, same_keys
from tidegate.worker.join.predicates import by_time, judge_of, places_of
from tidegate.worker.join.work import JoinWork
from tidegate.worker.runtime.runs import RowRun, StoredRun


class Matcher:
    """State shared by the runs of one join, with what was prepared for them; see the module docstring."""

    def __init__(self, work: JoinWork, by_time: dict[int, Places] | None = None) -> None:
        self._layout, self.judge = work.layout, judge_of(work)
        self._by_time = {} if by_time is None else by_time
        #: Probes that a key filter avoided because the stored run cannot contain the key.
        self.spared = 0

    @property
    def judges(self) -> bool:
        """Whether the join predicate may reject a candidate."""
        return bool(self._layout.verify) or self._layout.condition is not None

    def candidates(self, run: RowRun, probe: ProbeRange, other: RowRun) -> Iterator[kernel.Ranges]:
        """Per probing row the rows of the other run that agree in key and time."""
        if self._layout.spread:
            yield by_time(self.places(other), probe.rows, probe.low, probe.high)
            return
        codes, probe = self._with_key(run, probe, other)
        for start, stop in other.slices:
            # Only rows whose codes lie in the slice: with many small slices, searching for all new rows
            # in each of them would cost more than finding the pairs.
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
        """The codes of the probing rows, without those whose key the other run lacks."""
        codes = run.codes if probe.rows is None else run.codes[probe.rows]
        if not isinstance(other, StoredRun) or not worth_asking(len(codes), other.in_sight):
            return codes, probe
        known = other.key_filter.may_hold(codes)
        self.spared += len(codes) - len(known)
        rows = known if probe.rows is None else probe.rows[known]
        return codes[known], replace(probe, rows=rows, low=probe.low[known], high=probe.high[known])

    def prepare(self, run: RowRun, other: RowRun) -> None:
        """Prepare once what all probes between these two runs share."""
        self.judge.prepare(run, other, self.places(other) if self._layout.spread else None)

    def pairs(
        self, run: RowRun, other: RowRun, ranges: kernel.Ranges, at_most: int
    ) -> Iterator[PairReferences]:
        """The pairs among candidates, keys verified, at most `at_most` at a time."""
        places = self.places(other) if self._layout.spread else None
        for mine, theirs in self.judge.pairs(run, other, places, ranges, at_most):
            found = (
                PairReferences(run, mine, other, theirs)
                if run.side == LEFT
                else PairReferences(other, theirs, run, mine)
            )
            yield found.only(same_keys(found, self._layout.verify)) if self._layout.verify else found

    def size(self, probe: ProbeRange, other: RowRun, middle: tuple[float, float] | None = None) -> float:
        """The number of candidate pairs of a probe: exact if rows are sorted by time, else an estimate.

        `middle`: the mean range of a row, if already computed.
        """
        if self._layout.spread:
            return by_time(self.places(other), probe.rows, probe.low, probe.high).total
        # Counting would cost a probe, so assume that rows are spread evenly in time.
        if probe.exploring:
            seen = np.minimum(probe.high, other.last_us) - np.maximum(probe.low, other.first_us) + 1.0
            return _part(other, float(np.maximum(seen, 0.0).sum()))
        if middle is None:
            middle = float(probe.low.mean()), float(probe.high.mean())
        low, high = max(middle[0], other.first_us), min(middle[1], other.last_us)
        return _part(other, probe.low.size * max(0.0, high - low + 1))

    def places(self, run: RowRun) -> Places:
        """The rows of a run by time, sorted once per batch."""
        if id(run) not in self._by_time:
            self._by_time[id(run)] = places_of(run)
        return self._by_time[id(run)]


def _part(other: RowRun, seen_us: float) -> float:
    """How many rows of a run lie in this many microseconds of it, if they are spread evenly."""
    return other.in_sight * seen_us / (other.last_us - other.first_us + 1)


def chunks(found: Iterator[PairReferences], at_least: int) -> Iterator[list[PairReferences]]:
    """Pairs in lists of at least this many."""
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
