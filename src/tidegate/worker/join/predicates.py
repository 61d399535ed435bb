"""Join predicates: select the pairs from ranges of candidate rows.

Key and time give, per new row, a range of places in a stored run. The predicate selects the pairs from these
ranges:

    equality alone     every candidate is a pair (real keys are compared if codes may collide)
    sets               bitsets or inverted lists of the stored run (set_predicates.py)
    a function         all candidates, in chunks, as columns of the two sides

Without a key to sort by, the places of a run are its rows by time (`Places`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tidegate.api.joins.conditions import OnPairs
from tidegate.errors import BatchFailed
from tidegate.join.probe import probe as kernel
from tidegate.join.probe.probe import Ranges
from tidegate.worker.join.joined_rows import Places, Positions, gather
from tidegate.worker.join.work import JoinWork
from tidegate.worker.runtime.runs import RowRun

#: Candidates per call of a user's function: enough to vectorise, few enough to fit into memory.
CANDIDATES_PER_CALL = 1 << 16


def places_of(run: RowRun) -> Places:
    """All rows of the run's slices, sorted by time."""
    mine = np.concatenate([np.arange(start, stop) for start, stop in run.slices] or [np.zeros(0, np.int64)])
    times = run.times[mine]
    order = np.argsort(times, kind="stable")
    return Places(mine[order], times[order])


class Judge(Protocol):
    """A join predicate: selects the pairs from ranges of candidates."""

    def prepare(self, run: RowRun, other: RowRun, places: Places | None) -> None:
        """Prepare once what all probes between these two runs share."""

    def pairs(
        self, run: RowRun, other: RowRun, places: Places | None, ranges: Ranges, at_most: int
    ) -> Iterator[tuple[Positions, Positions]]:
        """Matching rows of both runs, in chunks; `ranges` are rows of `other`, or its places."""


class EveryPair:
    """Every candidate is a pair."""

    def prepare(self, run: RowRun, other: RowRun, places: Places | None) -> None:
        pass

    def pairs(
        self, run: RowRun, other: RowRun, places: Places | None, ranges: Ranges, at_most: int
    ) -> Iterator[tuple[Positions, Positions]]:
        pairs = kernel.ProbedPairs(ranges)
        for begin in range(0, pairs.total, at_most):
            mine, theirs = pairs.chunk(begin, min(begin + at_most, pairs.total))
            yield mine, theirs if places is None else places.rows[theirs]


class ByFunction:
    """Pairs for which a user's function returns true."""

    def __init__(self, on: OnPairs) -> None:
        self._on = on

    def prepare(self, run: RowRun, other: RowRun, places: Places | None) -> None:
        pass

    def pairs(
        self, run: RowRun, other: RowRun, places: Places | None, ranges: Ranges, at_most: int
    ) -> Iterator[tuple[Positions, Positions]]:
        for mine, theirs in EveryPair().pairs(run, other, places, ranges, min(at_most, CANDIDATES_PER_CALL)):
            left, right = ((run, mine), (other, theirs))[:: 1 if run.side == 0 else -1]
            good = self._asked(self._columns(*left, 0), self._columns(*right, 1), len(mine))
            if good.any():
                yield mine[good], theirs[good]

    def _columns(self, run: RowRun, rows: Positions, side: int) -> Any:
        """The columns of one side that the function receives."""
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
            answer = _without_missing(answer)
        if answer.dtype.kind not in "bui":
            raise self._failed(f"a result of type {answer.dtype}")
        return answer.astype(np.bool_)

    def _failed(self, got: str) -> BatchFailed:
        names = ", ".join(sorted({name for pair in self._on.columns for name in pair}))
        return BatchFailed(
            f"The pairwise function {self._on.name!r} over {names} failed",
            code="JOIN_FUNCTION_FAILED",
            got=got,
            why="Nothing of the batch was committed",
            do="Return one boolean per pair, then start the query again with the same checkpoint",
        )


def _without_missing(answer: NDArray[Any]) -> NDArray[Any]:
    """A missing result (None, NA, NaN) is no match, as in SQL; other values stay unchanged."""
    import pandas as pd

    answers = np.where(pd.isna(answer), False, answer)
    return answers.astype(np.bool_) if pd.api.types.infer_dtype(answers) == "boolean" else answers


def judge_of(work: JoinWork) -> Judge:
    """The join predicate of this join."""
    on = work.layout.condition
    if on is None:
        return EveryPair()
    if isinstance(on, OnPairs):
        return ByFunction(on)
    # Imported here: its compiled loops load slowly, and most joins do not need them.
    from tidegate.worker.join.set_predicates import BySets

    return BySets(on, work)


def by_time(
    places: Places, rows: Sequence[int] | Positions | None, low: Positions, high: Positions
) -> Ranges:
    """The places between two times, per new row; rows without any are left out."""
    stored = len(places.times)
    if stored and low.max() <= places.times[0] and places.times[-1] <= high.min():
        # Usually the whole run is a candidate of every row, and no search is needed.
        everyone = np.arange(len(low)) if rows is None else np.asarray(rows)
        return Ranges(everyone, np.zeros(len(low), np.int64), np.full(len(low), stored, np.int64))
    first = np.searchsorted(places.times, low, side="left").astype(np.int64)
    count = np.searchsorted(places.times, high, side="right").astype(np.int64) - first
    some = np.flatnonzero(count > 0)
    named = some if rows is None else np.asarray(rows)[some]
    return Ranges(named, first[some], count[some])
