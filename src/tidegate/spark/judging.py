"""Which candidates are pairs: ranges of stored rows in, matching rows out.

Finding has two parts. Key and time nominate, per new row, a range of places in a run of stored rows; what
else the join demands picks the pairs out of these ranges:

    equality alone     all of them are (real keys are compared where codes may collide)
    sets               bitsets or inverted lists of the stored run (join/bitset_pairs.py, inverted_lists.py)
    a function         all candidates, in chunks, as columns of the two sides

Without a key to sort by, the places of a run are its rows by time (`Places`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import BatchFailed, explain
from tidegate.join import probe as kernel
from tidegate.join.bitset_pairs import Bitsets
from tidegate.join.index_choice import choose
from tidegate.join.inverted_lists import InvertedLists
from tidegate.join.matching import Matcher, Prepared
from tidegate.join.probe import Ranges
from tidegate.join.similarity import InnerProduct
from tidegate.join.weighted_pairs import Weighted
from tidegate.on import OnPairs, OnSets
from tidegate.spark.assemble import gather
from tidegate.spark.item_columns import SetColumn, set_column
from tidegate.spark.join_batch import JoinBatch
from tidegate.spark.runs import Run, StoredRun
from tidegate.spark.worker_cache import worker_views

Positions = NDArray[np.int64]
#: Candidates that a user's function is given at once: enough to be vectorised, few enough to fit anywhere.
CANDIDATES_PER_CALL = 1 << 16


@dataclass(frozen=True, eq=False)
class Places:
    """The rows of a run that belong to this instance, by time: place → row."""

    rows: Positions
    times: NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + self.times.nbytes


def places_of(run: Run) -> Places:
    """All rows of the run's slices in the order of their times."""
    mine = np.concatenate([np.arange(start, stop) for start, stop in run.slices] or [np.zeros(0, np.int64)])
    times = run.times[mine]
    order = np.argsort(times, kind="stable")
    return Places(mine[order], times[order])


class Judge(Protocol):
    """Picks the pairs out of ranges of candidates."""

    def pairs(
        self, run: Run, other: Run, places: Places | None, ranges: Ranges, at_most: int
    ) -> Iterator[tuple[Positions, Positions]]:
        """Rows of both runs that match, in chunks; ranges are rows of `other`, or its places."""


class EveryPair:
    """All candidates are pairs."""

    def pairs(
        self, run: Run, other: Run, places: Places | None, ranges: Ranges, at_most: int
    ) -> Iterator[tuple[Positions, Positions]]:
        pairs = kernel.Pairs(ranges)
        for begin in range(0, pairs.total, at_most):
            mine, theirs = pairs.chunk(begin, min(begin + at_most, pairs.total))
            yield mine, theirs if places is None else places.rows[theirs]


class BySets:
    """Pairs whose sets are similar enough."""

    def __init__(self, on: OnSets, work: JoinBatch) -> None:
        self._on, self._work = on, work
        self._probing: dict[int, SetColumn] = {}
        self._views = worker_views(work.store_url, work.layout.operator, work.pieces, work.run)

    def pairs(
        self, run: Run, other: Run, places: Places | None, ranges: Ranges, at_most: int
    ) -> Iterator[tuple[Positions, Positions]]:
        view = self._view(other, places)
        probing = self._column(run).in_terms_of(view.column).take(ranges.rows)
        for rows, found in view.prepared.find(probing, ranges.first, ranges.first + ranges.count, at_most):
            yield ranges.rows[rows], found if places is None else places.rows[found]

    def _column(self, run: Run) -> SetColumn:
        """The sets of new rows, made once for all runs that they probe."""
        if id(run) not in self._probing:
            self._probing[id(run)] = self._sets(run)
        return self._probing[id(run)]

    def _view(self, other: Run, places: Places | None) -> SetView:
        """What was prepared of stored rows: kept by the worker for the batches that follow."""
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

    def _sets(self, run: Run) -> SetColumn:
        name = (self._on.left, self._on.right)[run.side]
        return set_column(run.column(name), self._on.weighted)

    def _matcher(self, column: SetColumn) -> Matcher:
        condition = self._on.condition
        if self._on.index == "auto":
            return choose(condition, column.sets)
        if self._on.index != "none":
            return InvertedLists(condition, self._on.index)
        return Weighted(condition) if isinstance(condition, InnerProduct) else Bitsets(condition)


@dataclass(frozen=True, eq=False)
class SetView:
    """The sets of one run of stored rows, ready to be probed."""

    column: SetColumn
    prepared: Prepared

    @property
    def nbytes(self) -> int:
        return self.prepared.nbytes


class ByFunction:
    """Pairs that a user's function calls such."""

    def __init__(self, on: OnPairs, batch: int) -> None:
        self._on, self._batch = on, batch

    def pairs(
        self, run: Run, other: Run, places: Places | None, ranges: Ranges, at_most: int
    ) -> Iterator[tuple[Positions, Positions]]:
        for mine, theirs in EveryPair().pairs(run, other, places, ranges, min(at_most, CANDIDATES_PER_CALL)):
            left, right = ((run, mine), (other, theirs))[:: 1 if run.side == 0 else -1]
            good = self._asked(self._columns(*left, 0), self._columns(*right, 1), len(mine))
            if good.any():
                yield mine[good], theirs[good]

    def _columns(self, run: Run, rows: Positions, side: int) -> Any:
        """What the function is given of one side."""
        import pandas as pd

        names = [pair[side] for pair in self._on.columns]
        columns = {name: gather(run, rows, name).to_pandas() for name in names}
        return columns[names[0]] if self._on.single else pd.DataFrame(columns, columns=names)

    def _asked(self, left: Any, right: Any, count: int) -> NDArray[np.bool_]:
        try:
            answer = np.asarray(self._on.function(left, right))
        except Exception as error:
            raise self._failed(f"{type(error).__name__}: {error}") from error
        if answer.shape == (count, 1):
            answer = answer[:, 0]
        if answer.shape != (count,):
            raise self._failed(f"a result of shape {answer.shape} for {count} pairs")
        if answer.dtype == object:
            # A missing answer (None, NA) is no match, as in SQL.
            answer = np.array([one is True or (one is not None and one == True) for one in answer])  # noqa: E712
        if answer.dtype.kind not in "bui":
            raise self._failed(f"a result of type {answer.dtype}")
        return answer.astype(np.bool_)

    def _failed(self, got: str) -> BatchFailed:
        names = ", ".join(sorted({name for pair in self._on.columns for name in pair}))
        return BatchFailed(
            explain(
                f"The pairwise function {self._on.name!r} over {names} failed in batch {self._batch}",
                got=got,
                why="Nothing of the batch was committed, and nothing stored is lost",
                do="Let it return one truth value per pair; start again with the same checkpoint",
            )
        )


def judge_of(work: JoinBatch) -> Judge:
    """Who picks the pairs of this join."""
    on = work.layout.condition
    if on is None:
        return EveryPair()
    return BySets(on, work) if isinstance(on, OnSets) else ByFunction(on, work.batch)


def by_time(
    places: Places, rows: Sequence[int] | Positions | None, low: Positions, high: Positions
) -> Ranges:
    """The places between two times, per new row; rows that have none are left out."""
    first = np.searchsorted(places.times, low, side="left").astype(np.int64)
    count = np.searchsorted(places.times, high, side="right").astype(np.int64) - first
    some = np.flatnonzero(count > 0)
    named = some if rows is None else np.asarray(rows)[some]
    return Ranges(named, first[some], count[some])
