"""Marks: rows that matched on an instance that does not store them.

If a key is split, or the two sides are stored on separate instances, a new row also probes on instances that
only borrow it, and stored rows of a grid are lent to other instances. If such a row matches there and the
join tracks matches, the borrowing instance writes the identity of the row:

    code, time, row (a hash of all its columns)

From the next batch on the instance that stores the row treats it as matched. That is early enough: no row is
settled in a batch in which it can still match (worker/join/settle.py). Rows that agree in all columns have
the same matches, so they may share an identity. Marks are stored as pieces, by base partition and slot, and
expire with their rows.

Rows stored before their key was split have no identity. If they are lent, the borrowing instance writes
matched bits instead, which refer to the position of a row in its piece, so such a piece is not merged while
it is lent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.join.probe import probe as kernel
from tidegate.join.probe.matched_bits import positions
from tidegate.worker.runtime.layout import ROW, JoinLayout
from tidegate.worker.runtime.runs import NewRun, RowRun, StoredRun, by_slot

#: Candidates per comparison.
_CHUNK = 1 << 18


class Marks:
    """All marks that concern an instance."""

    def __init__(self, runs: Sequence[StoredRun]) -> None:
        self._runs = runs

    def positions(self, run: StoredRun) -> Iterator[NDArray[np.int64]]:
        """Rows of a stored run that are marked."""
        if ROW not in run.rows.schema.names:
            return
        identities = run.rows.column(ROW)
        for marks in self._runs:
            if marks.side == run.side and marks.first_us <= run.last_us and marks.last_us >= run.first_us:
                yield from _same_rows(marks, run, identities)


def _same_rows(marks: StoredRun, run: StoredRun, identities: pa.Array) -> Iterator[NDArray[np.int64]]:
    wanted = marks.rows.column(ROW)
    for from_mark, to_mark in marks.slices:
        codes, times = marks.codes[from_mark:to_mark], marks.times[from_mark:to_mark]
        for start, stop in run.slices:
            ranges = kernel.probe(codes, times, times, run.codes, run.times, start, stop)
            pairs = kernel.ProbedPairs(ranges)
            for begin in range(0, ranges.total, _CHUNK):
                mark, row = pairs.chunk(begin, begin + _CHUNK)
                # A row stored before its key was split has no identity, and no mark.
                mine = identities.take(pa.array(row)).fill_null(0).to_numpy(zero_copy_only=False)
                theirs = wanted.take(pa.array(mark + from_mark)).to_numpy(zero_copy_only=False)
                yield row[mine == theirs]


def marks_of(run: RowRun, matched: NDArray[np.int64], slot_us: int) -> Iterator[RowRun]:
    """The identities of a run's rows that matched, slot by slot."""
    for slot, part in by_slot(run.times[matched], slot_us) if len(matched) else ():
        rows = matched[part]
        marks = NewRun(run.side, False, slot, 0, 0, ())
        marks.codes, marks.times = run.codes[rows], run.times[rows]
        marks.first_us, marks.last_us = int(marks.times.min()), int(marks.times.max())
        marks.rows = run.rows.select([ROW]).take(pa.array(rows))
        yield marks


def borrowed(runs: Sequence[NewRun], layout: JoinLayout) -> Iterator[RowRun]:
    """Marks to write for new rows that this instance only borrowed."""
    for run in runs:
        if layout.tracked[run.side] and run.touched:
            yield from marks_of(run, positions(run.bits), layout.within.slot_us(run.side))


def lent(runs: Sequence[StoredRun], layout: JoinLayout) -> Iterator[RowRun]:
    """Marks to write for stored rows that were lent to this instance."""
    for run in runs:
        if layout.tracked[run.side] and run.touched and ROW in run.rows.schema.names:
            rows = lent_rows(run)
            known = run.rows.column(ROW).take(pa.array(rows)).is_valid().to_numpy(zero_copy_only=False)
            yield from marks_of(run, rows[known], layout.within.slot_us(run.side))


def lent_rows(run: StoredRun) -> NDArray[np.int64]:
    """Rows that other instances store and that had their first match here."""
    if run.own == run.slices:
        return np.zeros(0, np.int64)
    fresh = positions(run.bits & ~run.stored_bits)
    own = np.zeros(len(run.codes), np.bool_)
    for start, stop in run.own:
        own[start:stop] = True
    return fresh[~own[fresh]]


def all_known(run: StoredRun) -> bool:
    """Whether every row has an identity."""
    return ROW in run.rows.schema.names and run.rows.column(ROW).null_count == 0
