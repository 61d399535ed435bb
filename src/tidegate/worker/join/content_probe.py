"""Chooses, by the items a new row contains, which basic windows it probes.

`join/selective/content_choice.py` decides; this module prepares its input and applies the choice.

    new runs ──┐   sizes: candidate pairs by row and basic window
               ├─▶ items: how often each occurs in a basic window ─▶ choice ─▶ probes
    runs of ───┘   (lengths of lists, cached with the prepared run)
    the other side

All pieces of a basic window that the instance stores count as one. Exploring rows are excluded: they probe
as the plan says, whatever they contain. Otherwise their matches would not be representative.

Guarantee: the choice is a function of the plan, the rows of the batch and the stored runs, so a replay
repeats it. Unlike in `join/selective/reach.py` it depends on the instance that makes it. Skipped work can
therefore not be described later by time and identity, so joins with repair do not choose by content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from tidegate.join.selective.content_choice import Direction, StoredItems, choose_by_content
from tidegate.join.selective.reach import ProbeRange, probe_ranges
from tidegate.worker.join.item_columns import SetColumn
from tidegate.worker.join.matcher import Matcher
from tidegate.worker.join.probing import ProbingRows
from tidegate.worker.join.set_predicates import BySets, SetView
from tidegate.worker.join.work import ProbeCounter
from tidegate.worker.runtime.runs import RowRun

#: The runs that a probing run may probe.
Opposite = Callable[[ProbingRows], Iterable[RowRun]]


class ChosenCells:
    """The basic windows that every new row probes in this batch; see the module docstring."""

    def __init__(
        self,
        fraction: float,
        probings: Sequence[ProbingRows],
        opposite: Opposite,
        counts: Sequence[ProbeCounter],
        meeting: Matcher,
        stored_rows: int,
    ) -> None:
        assert isinstance(meeting.judge, BySets), "only sets know what a comparison is worth"
        self._counts, self._meeting, self._judge = counts, meeting, meeting.judge
        #: By run of new rows: its rows as if none explored.
        self._rows = {id(one.run): replace(one.rows, unit_hashes=None, exploring=None) for one in probings}
        columns: list[dict[int, int]] = []
        directions = []
        for probing in probings:
            others = list(opposite(probing))
            slots = sorted({self._slot(other) for other in others})
            columns.append({slot: column for column, slot in enumerate(slots)})
            directions.append(self._direction(probing, others, columns[-1]))
        choice = choose_by_content(self._judge.on.condition, directions, fraction, stored_rows)
        self.charged: float = choice.charged
        #: By run of new rows: the column of each basic window, and by row and column whether to probe.
        self._of = {
            id(probing.run): (mine, mask)
            for probing, mine, mask in zip(probings, columns, choice.probes, strict=True)
        }

    def probes(self, probing: ProbingRows, other: RowRun) -> Iterator[ProbeRange]:
        """The probes of new rows into one run."""
        columns, mask = self._of[id(probing.run)]
        chosen = mask[:, columns[self._slot(other)]]
        for probe in self._whole(probing, other):
            kept = np.flatnonzero(chosen if probe.rows is None else chosen[probe.rows])
            if kept.size:
                rows = kept if probe.rows is None else probe.rows[kept]
                yield ProbeRange(rows, probe.low[kept], probe.high[kept], probe.age, False)

    def _whole(self, probing: ProbingRows, other: RowRun) -> Iterator[ProbeRange]:
        """The probe of all candidates in a run."""
        ages = self._counts[other.side].ages
        stored = other.first_us, other.last_us
        return probe_ranges(ages, (1.0,) * ages.count, self._rows[id(probing.run)], stored)

    def _slot(self, other: RowRun) -> int:
        """The basic window of a run; the first, if the run spans several."""
        return other.first_us // self._counts[other.side].ages.slot_us

    def _direction(
        self, probing: ProbingRows, others: Sequence[RowRun], columns: dict[int, int]
    ) -> Direction:
        sets = self._judge.column(probing.run)
        stored = StoredItems.nothing(len(sets.dictionary), len(columns), self._judge.on.weighted)
        sizes = np.zeros((len(columns), len(probing.run.codes)), np.int32)
        for other in others:
            column = columns[self._slot(other)]
            _count(stored, column, sets, self._judge.view(other, self._meeting.places(other)))
            for probe in self._whole(probing, other):
                for ranges in self._meeting.candidates(probing.run, probe, other):
                    # Usually every row of a run is a candidate of all new rows.
                    rows = ranges.rows if len(ranges.rows) < sizes.shape[1] else slice(None)
                    sizes[column, rows] += ranges.count.astype(np.int32)
                    if not probing.forgets:
                        self._counts[other.side].candidates[probe.age] += ranges.total
        exploring = probing.rows.exploring
        if exploring is not None and probing.rows.unit_hashes is not None:
            sizes[:, probing.rows.unit_hashes < exploring.share] = 0
        return Direction(sets.sets, stored, sizes.T)


def _count(stored: StoredItems, column: int, probing: SetColumn, view: SetView) -> None:
    """Add the items of a run to the counts of its basic window."""
    codes = probing.codes_in(view.column)
    known = np.flatnonzero(codes >= 0)
    stored.counts[known, column] += view.item_counts[codes[known]]
    if stored.weights is not None:
        stored.weights[known, column] += view.item_weights[codes[known]]
    stored.rows[column] += len(view.column.sets)
    stored.items[column] += int(view.column.sets.sizes.sum())
    stored.lists[column] |= view.lists
