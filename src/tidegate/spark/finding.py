"""Finds the pairs of one instance in one batch: new rows against stored ones, and new against new.

Every pair is found exactly once: by the later of its two rows when they came in different batches, and in
the batch itself by the left row. Without a key every instance sees all new rows (`foreign` are those that
another one stores): each compares them with what it stores itself. Pairs are handed on in bounded chunks, so
a hot key cannot exhaust memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tidegate.join import probe as kernel
from tidegate.join.reach import Exploring, Look, NewRows, cell_number, looks
from tidegate.join.selection import EXPLORE, lots, purpose, row_identity, sample_groups
from tidegate.route.hash import partition_bounds, partition_of
from tidegate.route.targets import MEET, PROBE, STORE
from tidegate.spark.assemble import Pairs, same_keys
from tidegate.spark.join_batch import Counts, JoinBatch
from tidegate.spark.judging import Places, by_time, judge_of, places_of
from tidegate.spark.runs import NewRun, Run, StoredRun
from tidegate.values import LEFT, Skipping

#: Pairs handed to Spark at once. Larger: fewer crossings; smaller: less memory when a hot key explodes.
PAIRS_PER_CHUNK = 1 << 18


@dataclass(frozen=True)
class Probing:
    """New rows that look for partners, and which partitions they belong to."""

    run: NewRun
    rows: NewRows
    #: The same rows as if nothing were left out.
    unhindered: NewRows
    owned: NDArray[np.int64]
    bounds: NDArray[np.int64]
    #: Per row its group, where some rows are a sample of all; groups of the others mean nothing.
    groups: NDArray[np.int64] | None = None


class Finder:
    """The pairs of one instance; see the module docstring."""

    def __init__(
        self,
        work: JoinBatch,
        stored: Sequence[StoredRun],
        new: Sequence[NewRun],
        counts: Counts,
    ) -> None:
        self._work, self._layout, self._judge = work, work.layout, judge_of(work)
        self._stored, self._new, self._counts = stored, new, counts
        self._by_time: dict[int, Places] = {}

    def chunks(self) -> Iterator[list[Pairs]]:
        """Pairs in lists of about PAIRS_PER_CHUNK, keys verified."""
        waiting: list[Pairs] = []
        size = 0
        for pairs in self._pairs():
            waiting.append(pairs)
            size += len(pairs)
            if size >= PAIRS_PER_CHUNK:
                yield waiting
                waiting, size = [], 0
        if waiting:
            yield waiting

    def _pairs(self) -> Iterator[Pairs]:
        for run in self._new:
            if run.keyless or not run.role & PROBE:
                continue
            probing = self._sampled(self._probing(run))
            self._counts.probed[probing.owned] += np.diff(probing.bounds)
            for other in self._opposite(run, *probing.rows.extent):
                yield from self._meet(probing, other)

    def _probing(self, run: NewRun) -> Probing:
        low, high = self._layout.within.partner_range(run.side, run.times)
        rows = told = NewRows(run.times, low, high, run.first_us, run.last_us)
        if self._work.skipping is not None:
            told = self._told(rows, run, self._work.skipping)
        return Probing(run, told, rows, *partition_bounds(run.codes, self._layout.partitions))

    def _sampled(self, probing: Probing) -> Probing:
        """With the groups of the rows that are a sample: those that explore, or that look at the history."""
        skipping, rows, window = self._work.skipping, probing.rows, 1 - probing.run.side
        if skipping is None or rows.lots is None:
            return probing
        counts = self._counts.looks[window]
        share = skipping.explore_share if counts.ages.slot_us else skipping.shares[window][0]
        if not share:
            return probing
        sample = np.flatnonzero(rows.lots < share)
        groups = np.zeros(rows.lots.size, np.int64)
        groups[sample] = sample_groups(rows.lots[sample])
        counts.count_rows(rows.lots.size, groups[sample])
        return replace(probing, groups=groups)

    def _told(self, rows: NewRows, run: NewRun, skipping: Skipping) -> NewRows:
        """The rows with what the plan says about them."""
        window = 1 - run.side
        if skipping.forget_us[window] > rows.extent[0]:
            rows = replace(rows, low=np.maximum(rows.low, skipping.forget_us[window]))
        if not skipping.explore_share and min(skipping.shares[window]) >= 1:
            return rows
        identity = row_identity(run.codes, run.times, self._work.batch)
        lot = lots(identity, purpose(self._work.seed, EXPLORE))
        return replace(rows, lots=lot, exploring=Exploring(skipping.explore_share, skipping.explore_depth))

    def _meet(self, probing: Probing, other: Run) -> Iterator[Pairs]:
        """Pairs of new rows with the rows of one run, as far as the plan lets them look."""
        for look in self._looks(probing, other):
            for ranges in self._candidates(probing.run, look, other):
                for pairs in self._found(probing, other, ranges):
                    self._count_found(probing, other.side, look, pairs)
                    yield replace(pairs, cell=cell_number(other.side, look.exploring, look.age))

    def _candidates(self, run: NewRun, look: Look, other: Run) -> Iterator[kernel.Ranges]:
        """Per new row the rows of the other run that key and time allow."""
        if self._layout.spread:
            ranges = by_time(self._places(other), look.rows, look.low, look.high)
            self._count_seen(other.side, look, ranges.total)
            yield ranges
            return
        codes = run.codes if look.rows is None else run.codes[look.rows]
        for start, stop in other.slices:
            # Only rows whose codes lie in the slice: where slices are many and small, looking at all new rows
            # for each of them would cost more than the pairs.
            first = int(np.searchsorted(codes, other.codes[start])) if start else 0
            behind = int(np.searchsorted(codes, other.codes[stop - 1], side="right"))
            if first == behind:
                continue
            low, high = look.low[first:behind], look.high[first:behind]
            mine, in_order = codes[first:behind], not look.exploring
            ranges = kernel.probe(mine, low, high, other.codes, other.times, start, stop, in_order)
            rows = ranges.rows + first if first else ranges.rows
            yield replace(ranges, rows=rows if look.rows is None else look.rows[rows])

    def _places(self, run: Run) -> Places:
        """The rows of a run by time, sorted once a batch."""
        if id(run) not in self._by_time:
            self._by_time[id(run)] = places_of(run)
        return self._by_time[id(run)]

    def _looks(self, probing: Probing, other: Run) -> Iterator[Look]:
        skipping, rows = self._work.skipping, probing.rows
        if skipping is None:
            yield Look(None, rows.low, rows.high, 0, False)
            return
        counts, ages = self._counts.looks[other.side], self._counts.looks[other.side].ages
        stored, shares = (other.first_us, other.last_us), skipping.shares[other.side]
        everything = rows is probing.unhindered
        for look in looks(ages, (1.0,) * ages.count, probing.unhindered, stored):
            size = self._size(probing, look, other)
            counts.in_reach[look.age] += size
            if everything:
                self._count_seen(other.side, look, 0 if self._layout.spread else size)
                yield look
        if everything:
            return
        for look in looks(ages, shares, rows, stored, skipping.filled_us[other.side]):
            if not self._layout.spread:
                self._count_seen(other.side, look, self._size(probing, look, other))
            yield look

    def _size(self, probing: Probing, look: Look, other: Run) -> float:
        """How many pairs a look takes in: exactly, where rows are sorted by time."""
        if self._layout.spread:
            return by_time(self._places(other), look.rows, look.low, look.high).total
        # Counting them would cost a probe; as if rows lay evenly in time.
        if look.exploring:
            seen = np.minimum(look.high, other.last_us) - np.maximum(look.low, other.first_us) + 1.0
            return self._part(other, float(np.maximum(seen, 0.0).sum()))
        middle = (
            probing.unhindered.middle if look.uncut else (float(look.low.mean()), float(look.high.mean()))
        )
        low, high = max(middle[0], other.first_us), min(middle[1], other.last_us)
        return self._part(other, look.low.size * max(0.0, high - low + 1))

    def _part(self, other: Run, seen_us: float) -> float:
        """How many rows of a run lie in so many microseconds of it."""
        stored = sum(stop - start for start, stop in other.slices)
        return stored * seen_us / (other.last_us - other.first_us + 1)

    def _count_seen(self, side: int, look: Look, pairs: float) -> None:
        if self._work.skipping is not None:
            self._counts.looks[side].seen[int(look.exploring), look.age] += pairs

    def _count_found(self, probing: Probing, side: int, look: Look, pairs: Pairs) -> None:
        if self._work.skipping is None:
            return
        counts = self._counts.looks[side]
        counts.matches[int(look.exploring), look.age] += len(pairs)
        if probing.groups is not None and (look.exploring or not counts.ages.slot_us):
            mine = pairs.left if probing.run.side == LEFT else pairs.right
            counts.count_sampled(look.age, probing.groups[mine])

    def _opposite(self, run: Run, low: int, high: int) -> Iterator[Run]:
        """Runs of the other side that may hold a partner.

        New rows meet new ones only from the left, and only where the right row is stored: once. (In a semi
        join the left row looks at one instance only, and right rows meet it there, wherever they are
        stored.)
        """
        others: list[Run] = [*self._stored]
        if run.side == LEFT:
            others += [one for one in self._new if one.role & (STORE | MEET)]
        for other in others:
            if (
                other.side != run.side
                and not other.keyless
                and other.first_us <= high
                and other.last_us >= low
            ):
                yield other

    def _found(self, probing: Probing, other: Run, ranges: kernel.Ranges) -> Iterator[Pairs]:
        if not len(ranges.rows):
            return
        run, layout, counts = probing.run, self._layout, self._counts
        per_partition = kernel.counts_per_partition(probing.bounds, ranges)
        counts.comparisons[probing.owned] += per_partition
        if self._work.watch_keys:
            run.pairs[ranges.rows] += ranges.count
        judged = layout.verify or layout.condition is not None
        if not judged:
            counts.matches[probing.owned] += per_partition
        places = self._places(other) if layout.spread else None
        for mine, theirs in self._judge.pairs(run, other, places, ranges, PAIRS_PER_CHUNK):
            found = Pairs(run, mine, other, theirs) if run.side == LEFT else Pairs(other, theirs, run, mine)
            if layout.verify:
                found = found.only(same_keys(found, layout.verify))
            if judged:
                rows = found.left if run.side == LEFT else found.right
                np.add.at(counts.matches, partition_of(run.codes[rows], layout.partitions), 1)
            if len(found):
                yield found
