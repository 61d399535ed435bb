"""Join predicate for similar sets: stored runs are prepared once and probed by every later batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tidegate.api.joins.conditions import OnSets
from tidegate.join.probe.probe import Ranges
from tidegate.join.sets.bitset_pairs import Bitsets
from tidegate.join.sets.index_choice import choose
from tidegate.join.sets.inverted_lists import InvertedLists, PreparedLists
from tidegate.join.sets.pair_finders import PairFinder, PreparedSets
from tidegate.join.sets.thresholds import InnerProduct
from tidegate.join.sets.weighted_pairs import Weighted
from tidegate.worker.join.item_columns import SetColumn, set_column
from tidegate.worker.join.joined_rows import Places, Positions
from tidegate.worker.join.work import JoinWork
from tidegate.worker.runtime.runs import RowRun, StoredRun
from tidegate.worker.runtime.worker_cache import worker_views


class BySets:
    """Pairs whose sets are similar enough."""

    def __init__(self, on: OnSets, work: JoinWork) -> None:
        self.on, self._work = on, work
        self._probing: dict[int, SetColumn] = {}
        self._views = worker_views(work.layout.operator, work.state)

    def prepare(self, run: RowRun, other: RowRun, places: Places | None) -> None:
        self.view(other, places)
        self.column(run)

    def pairs(
        self, run: RowRun, other: RowRun, places: Places | None, ranges: Ranges, at_most: int
    ) -> Iterator[tuple[Positions, Positions]]:
        view = self.view(other, places)
        # Rows are distinct and ascend, so if there are as many as in the run, they are the whole run.
        probing = self.column(run).in_terms_of(view.column, ranges.rows)
        for rows, found in view.prepared.find(probing, ranges.first, ranges.first + ranges.count, at_most):
            yield ranges.rows[rows], found if places is None else places.rows[found]

    def column(self, run: RowRun) -> SetColumn:
        """The sets of new rows, converted once for all runs that they probe."""
        if id(run) not in self._probing:
            self._probing[id(run)] = self._sets(run)
        return self._probing[id(run)]

    def view(self, other: RowRun, places: Places | None) -> SetView:
        """The prepared sets of stored rows, cached by the worker for later batches."""
        stored = isinstance(other, StoredRun)
        name = (other.piece.name, tuple(other.slices)) if isinstance(other, StoredRun) else (id(other), ())
        view = self._views.get(name)
        if not isinstance(view, SetView):
            column = self._sets(other)
            sets = column.sets if places is None else column.sets.take(places.rows)
            column = SetColumn(column.dictionary, sets)
            view = SetView(column, self._matcher(column).prepare(sets))
            self._views.put(name, view, kept=stored)
        return view

    def _sets(self, run: RowRun) -> SetColumn:
        name = (self.on.left, self.on.right)[run.side]
        return set_column(run.column(name), self.on.weighted)

    def _matcher(self, column: SetColumn) -> PairFinder:
        condition = self.on.condition
        if self.on.index == "auto":
            return choose(condition, column.sets)
        if self.on.index != "none":
            return InvertedLists(condition, self.on.index)
        return Weighted(condition) if isinstance(condition, InnerProduct) else Bitsets(condition)


@dataclass(frozen=True, eq=False)
class SetView:
    """The sets of one stored run, prepared for probes."""

    column: SetColumn
    prepared: PreparedSets

    @property
    def nbytes(self) -> int:
        return self.prepared.nbytes

    @property
    def lists(self) -> bool:
        """Whether pairs are found by inverted lists."""
        return isinstance(self.prepared, PreparedLists)

    @cached_property
    def item_counts(self) -> NDArray[np.int64]:
        """Per item: the number of rows that contain it."""
        return np.bincount(self.column.sets.items, minlength=self.column.sets.universe).astype(np.int64)

    @cached_property
    def item_weights(self) -> NDArray[np.float64]:
        """Per item: the sum of its weights over all rows."""
        sets = self.column.sets
        return np.bincount(sets.items, sets.weights, minlength=sets.universe).astype(np.float64)
