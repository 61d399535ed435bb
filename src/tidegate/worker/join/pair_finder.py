"""Finds the pairs of one instance in one batch: new rows against stored ones, and new against new.

Every pair is found exactly once: by the later row if the two came in different batches, and by the left row
within a batch. A join without a key sends all new rows to every instance, which compares them with the rows
that it stores itself (`foreign` rows are stored elsewhere). Pairs are yielded in bounded chunks, so a hot key
cannot exhaust memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidegate.join.probe import probe as kernel
from tidegate.join.selective.planned import planned
from tidegate.join.selective.reach import (
    ALL_AGES,
    NewRows,
    ProbeRange,
    Stored,
    candidate_pairs,
    cell_number,
    probe_ranges,
)
from tidegate.join.selective.selection import sample_groups
from tidegate.model.times import LEFT
from tidegate.route.hash_routing import partition_bounds, partition_of
from tidegate.route.targets import MEET, PROBE, STORE
from tidegate.worker.join.joined_rows import PairReferences
from tidegate.worker.join.matcher import Matcher, chunks
from tidegate.worker.join.probing import ProbingRows, Together
from tidegate.worker.join.work import KEEPING, PROBING, JoinCounts, JoinWork
from tidegate.worker.runtime.runs import NewRun, RowRun, StoredRun

if TYPE_CHECKING:
    from tidegate.worker.join.content_probe import ChosenCells

#: Pairs returned to Spark at once. Larger: fewer crossings; smaller: less memory with a hot key.
PAIRS_PER_CHUNK = 1 << 18


class Finder:
    """The pairs of one instance; see the module docstring."""

    def __init__(
        self,
        work: JoinWork,
        stored: Sequence[StoredRun],
        new: Sequence[NewRun],
        counts: JoinCounts,
        together: bool = False,
    ) -> None:
        """`together`: all new rows of a side probe as one run, whatever slots they lie in."""
        self._work, self._layout, self._meeting = work, work.layout, Matcher(work)
        self._stored, self._new, self._counts = stored, new, counts
        #: New rows that probe, and those on the build side.
        self._probe_runs = [run for run in new if run.role & PROBE and not run.keyless]
        self._build_runs = [run for run in new if run.role & (STORE | MEET) and not run.keyless]
        #: Basic windows of runs, and the matches there by group of the present new rows.
        self._in_slots: list[tuple[int, NDArray[Any]]] = []
        self._together = Together()
        if together:
            self._probe_runs, self._build_runs = map(
                self._together.of_sides, (self._probe_runs, self._build_runs)
            )

    def chunks(self) -> Iterator[list[PairReferences]]:
        """Pairs in lists of about PAIRS_PER_CHUNK, keys verified."""
        return chunks(self._pairs(), PAIRS_PER_CHUNK)

    def _pairs(self) -> Iterator[PairReferences]:
        probings = [self._sampled(self._probing(run)) for run in self._probe_runs]
        chosen = self._chosen(probings)
        for probing in probings:
            self._counts.probed[probing.owned] += np.diff(probing.bounds)
            others = list(self._opposite(probing))
            if self._sees_all(probing):
                self._count_in_reach(probing, others)
            for other in others:
                yield from self._meet(probing, other, self._probes(probing, other))
                if chosen is not None:
                    yield from self._meet(probing, other, chosen.probes(probing, other))
            self._tell_slots(probing)
        self._counts.spared += self._meeting.spared
        if self._work.watch_keys:
            self._together.tell_pairs()

    def _probing(self, run: NewRun) -> ProbingRows:
        low, high = self._layout.within.partner_range(run.side, run.times)
        rows = planned_rows = NewRows(run.times, low, high, run.first_us, run.last_us)
        skipping, seed, batch = self._work.skipping, self._work.seed, self._work.state.batch
        if skipping is not None:
            planned_rows = planned(rows, lambda: run.identity(batch), 1 - run.side, skipping, seed)
        slot_us = self._counts.probes[1 - run.side].ages.slot_us
        return ProbingRows(
            run, planned_rows, rows, *partition_bounds(run.codes, self._layout.partitions), slot_us
        )

    def _sampled(self, probing: ProbingRows) -> ProbingRows:
        """The probing rows, with the groups of sampled rows: those that explore or probe the full history."""
        skipping, rows, window = self._work.skipping, probing.rows, 1 - probing.run.side
        if skipping is None or rows.unit_hashes is None:
            return probing
        counts = self._counts.probes[window]
        share = skipping.explore_share if counts.ages.slot_us else skipping.shares[window][0]
        if not share:
            return probing
        sample = np.flatnonzero(rows.unit_hashes < share)
        groups = np.zeros(rows.unit_hashes.size, np.int64)
        groups[sample] = sample_groups(rows.unit_hashes[sample])
        counts.count_rows(rows.unit_hashes.size, groups[sample])
        return replace(probing, groups=groups)

    def _chosen(self, probings: Sequence[ProbingRows]) -> ChosenCells | None:
        """The basic windows that rows choose by content, if the plan allows it."""
        skipping = self._work.skipping
        if skipping is None or skipping.content is None:
            return None
        # Imported here because most joins do not need its compiled loops.
        from tidegate.worker.join.content_probe import ChosenCells

        counts, rows = self._counts.probes, sum(len(run.codes) for run in self._new if run.role & STORE)
        self._counts.turn_to(PROBING)
        chosen = ChosenCells(skipping.content, probings, self._opposite, counts, self._meeting, rows)
        self._counts.turn_to(KEEPING)
        self._counts.charged += chosen.charged
        return chosen

    def _meet(
        self, probing: ProbingRows, other: RowRun, probed: Iterable[ProbeRange]
    ) -> Iterator[PairReferences]:
        """Pairs of new rows with the rows of one run, within the given probes."""
        for probe in probed:
            for ranges in self._meeting.candidates(probing.run, probe, other):
                if self._layout.spread:
                    self._count_seen(other.side, probe, ranges.total)
                if probe.age == ALL_AGES:
                    yield from self._at_all_ages(probing, other, ranges)
                    continue
                for pairs in self._found(probing, other, ranges):
                    self._count_found(probing, other.side, probe, pairs)
                    yield replace(pairs, cell=cell_number(other.side, probe.exploring, probe.age))

    def _at_all_ages(
        self, probing: ProbingRows, other: RowRun, ranges: kernel.Ranges
    ) -> Iterator[PairReferences]:
        """Pairs of one probe over all ages, counted by age after they are found."""
        # If every candidate is a pair, counting rows is cheaper than counting pairs.
        counted = not self._meeting.judges and self._in_one_slot(other)
        if counted:
            self._count_rows(probing, other, ranges.rows, ranges.count)
        for pairs in self._found(probing, other, ranges):
            if not counted:
                self._count_by_age(probing, other, pairs)
            yield pairs

    def _probes(self, probing: ProbingRows, other: RowRun) -> Iterator[ProbeRange]:
        """The probes that the plan allows; counts the candidate pairs without skipping."""
        skipping, rows = self._work.skipping, probing.rows
        if skipping is None:
            yield ProbeRange(None, rows.low, rows.high, 0, False)
            return
        counts, ages = self._counts.probes[other.side], self._counts.probes[other.side].ages
        stored, shares = (other.first_us, other.last_us), skipping.shares[other.side]
        everything = rows is probing.unhindered
        if self._sees_all(probing):
            yield ProbeRange(None, rows.low, rows.high, ALL_AGES, False, uncut=True)
            return
        # The content-aware probe has already counted its candidate pairs.
        if skipping.content is None or probing.forgets:
            for probe in probe_ranges(ages, (1.0,) * ages.count, probing.unhindered, stored):
                size = self._size(probing, probe, other)
                counts.candidates[probe.age] += size
                if everything:
                    self._count_seen(other.side, probe, 0 if self._layout.spread else size)
                    yield probe
        if everything:
            return
        for probe in probe_ranges(ages, shares, rows, stored, skipping.filled_us[other.side]):
            if not self._layout.spread:
                self._count_seen(other.side, probe, self._size(probing, probe, other))
            yield probe

    def _sees_all(self, probing: ProbingRows) -> bool:
        """Whether all candidates are probed at once and counted by age afterwards."""
        counts = self._work.skipping is not None and bool(probing.slot_us)
        at_once = not (self._layout.spread or self._layout.cells)
        return counts and at_once and probing.rows is probing.unhindered

    def _count_in_reach(self, probing: ProbingRows, others: Sequence[RowRun]) -> None:
        """Count the candidate pairs with these runs, all of which are probed."""
        counts = self._counts.probes[1 - probing.run.side]
        stored = [Stored(other.first_us, other.last_us, other.in_sight) for other in others]
        pairs = candidate_pairs(counts.ages, probing.by_slot, stored)
        counts.candidates += pairs
        counts.seen[0] += pairs

    def _count_by_age(self, probing: ProbingRows, other: RowRun, pairs: PairReferences) -> None:
        """Count the pairs of a probe over all ages by their basic windows."""
        left = probing.run.side == LEFT
        mine, theirs = (pairs.left, pairs.right) if left else (pairs.right, pairs.left)
        if self._in_one_slot(other):
            self._count_rows(probing, other, mine, None)
            return
        counts, groups = self._counts.probes[other.side], probing.by_slot
        slots = other.times[theirs] // counts.ages.slot_us
        numbers = counts.ages.numbers(groups.own[groups.which[mine]], slots)
        counts.matches[0] += np.bincount(numbers, minlength=counts.ages.count)

    def _count_rows(
        self, probing: ProbingRows, other: RowRun, rows: NDArray[np.int64], matches: NDArray[np.int64] | None
    ) -> None:
        """Record the new rows that matched in a run of one basic window, and how often each did."""
        groups, slot_us = probing.by_slot, self._counts.probes[other.side].ages.slot_us
        found = np.bincount(groups.which[rows], matches, groups.own.size)
        self._in_slots.append((other.first_us // slot_us, found))

    def _tell_slots(self, probing: ProbingRows) -> None:
        """Add the matches in runs of one basic window to the counts by age, for all runs at once."""
        if not self._in_slots:
            return
        counts = self._counts.probes[1 - probing.run.side]
        slots, found = zip(*self._in_slots, strict=True)
        ages = counts.ages.numbers(probing.by_slot.own, np.array(slots)[:, None])
        counts.matches[0] += np.bincount(ages.ravel(), np.concatenate(found), counts.ages.count)
        self._in_slots.clear()

    def _in_one_slot(self, other: RowRun) -> bool:
        slot_us = self._counts.probes[other.side].ages.slot_us
        return other.first_us // slot_us == other.last_us // slot_us

    def _size(self, probing: ProbingRows, probe: ProbeRange, other: RowRun) -> float:
        return self._meeting.size(probe, other, probing.unhindered.middle if probe.uncut else None)

    def _count_seen(self, side: int, probe: ProbeRange, pairs: float) -> None:
        if self._work.skipping is not None:
            self._counts.probes[side].seen[int(probe.exploring), probe.age] += pairs

    def _count_found(self, probing: ProbingRows, side: int, probe: ProbeRange, pairs: PairReferences) -> None:
        if self._work.skipping is None:
            return
        counts = self._counts.probes[side]
        counts.matches[int(probe.exploring), probe.age] += len(pairs)
        if probing.groups is not None and (probe.exploring or not counts.ages.slot_us):
            mine = pairs.left if probing.run.side == LEFT else pairs.right
            counts.count_sampled(probe.age, probing.groups[mine])

    def _opposite(self, probing: ProbingRows) -> Iterator[RowRun]:
        """Runs of the other side that may contain a match.

        New rows probe new rows only from the left, and only where the right row is stored: once. (In a semi
        join the left row probes on one instance only, so there it probes all right rows, wherever stored.)
        """
        run, (low, high) = probing.run, probing.rows.extent
        others: list[RowRun] = [*self._stored]
        if run.side == LEFT:
            others += self._build_runs
        for other in others:
            if (
                other.side != run.side
                and not other.keyless
                and other.first_us <= high
                and other.last_us >= low
            ):
                yield other

    def _found(self, probing: ProbingRows, other: RowRun, ranges: kernel.Ranges) -> Iterator[PairReferences]:
        if not len(ranges.rows):
            return
        run, layout, counts = probing.run, self._layout, self._counts
        per_partition = kernel.counts_per_partition(probing.bounds, ranges)
        counts.comparisons[probing.owned] += per_partition
        if self._work.watch_keys:
            run.pairs[ranges.rows] += ranges.count
        judged = self._meeting.judges
        if not judged:
            counts.matches[probing.owned] += per_partition
        self._meeting.prepare(run, other)
        for found in self._timed(self._meeting.pairs(run, other, ranges, PAIRS_PER_CHUNK)):
            if judged:
                rows = found.left if run.side == LEFT else found.right
                np.add.at(counts.matches, partition_of(run.codes[rows], layout.partitions), 1)
            if len(found):
                yield found

    def _timed(self, pairs: Iterator[PairReferences]) -> Iterator[PairReferences]:
        """The same pairs; the time of finding them counts as probing."""
        while True:
            self._counts.turn_to(PROBING)
            found = next(pairs, None)
            self._counts.turn_to(KEEPING)
            if found is None:
                return
            yield found
