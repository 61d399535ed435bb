"""Settles rows once their pairs are known: matched bits, unmatched rows, merged pieces.

    row of a tracked side ──▶ a pair sets its bit ──▶ the watermark passes its last possible match
                                                       ├─ bit set:   nothing to emit (semi: emitted before)
                                                       └─ bit clear: emitted as an unmatched row, once

A row is settled in exactly one batch: the first whose `settle_us` lies above the time of its last possible
match, which is the batch with  dead_before(settled_us) <= time < dead_before(settle_us).  Its pairs with rows
of that batch are found before, and rows of later batches lie above `settle_us` (`control/planning.py`).

Where partners lie before a row, all of them may be stored when it arrives. Then it is settled on arrival
(`completes`), and an unmatched row gets its bit as well, so that it is not emitted again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.join.probe.matched_bits import count, positions, set_bits, unset_positions
from tidegate.join.probe.order import sort_by_code_time
from tidegate.model.pieces import ByteRange, Piece
from tidegate.model.times import END_US, LEFT
from tidegate.route.places import Labelled, by_base, stored_in
from tidegate.state.segments import SegmentWriter
from tidegate.worker.join.joined_rows import PairReferences
from tidegate.worker.runtime.layout import BATCH, CODE, TIME, JoinLayout
from tidegate.worker.runtime.marks import all_known, borrowed, lent
from tidegate.worker.runtime.runs import NewRun, RowRun, StoredRun, as_numpy, one_array, write_run

if TYPE_CHECKING:
    from tidegate.worker.join.work import JoinWork
    from tidegate.worker.runtime.owned_state import OwnedState


class SettlingTask(Protocol):
    """The step that settles: what it knows of the batch, and the runs it holds."""

    work: JoinWork
    layout: JoinLayout
    instance: int
    writer: SegmentWriter

    @property
    def keeps_state(self) -> bool: ...
    @property
    def held(self) -> OwnedState: ...
    @property
    def stored(self) -> Sequence[StoredRun]: ...
    @property
    def new(self) -> Sequence[NewRun | StoredRun]: ...
    @property
    def written(self) -> Sequence[Piece]: ...
    @property
    def borrowed(self) -> Sequence[NewRun]: ...


class Settling:
    """The bookkeeping of one instance in one batch; see the module docstring."""

    def __init__(self, task: SettlingTask):
        self.task, self.layout = task, task.layout
        #: Piece name → this instance's new matched bits.
        self.matched: dict[str, ByteRange] = {}
        #: Names of stored pieces whose rows were rewritten.
        self.merged: list[str] = []
        self._rewritten: list[Piece] = []

    def mark(self, pairs: PairReferences) -> None:
        """Record that these rows have matched."""
        for side, run, rows in (
            (0, pairs.left_run, pairs.left),
            (1, pairs.right_run, pairs.right),
        ):
            if self.layout.tracked[side]:
                self.set(run, rows)

    def set(self, run: RowRun, rows: NDArray[np.int64]) -> None:
        """Set the matched bits of these rows."""
        set_bits(run.bits, rows)

    def leaving(self) -> Iterator[tuple[RowRun, NDArray[np.int64]]]:
        """Rows to emit alone: unmatched ones that are settled now, and semi-join rows just matched."""
        semi = self.layout.how == "left_semi"
        stored: Sequence[RowRun] = self.task.stored
        new: Sequence[RowRun] = self.task.new
        # First: these get their bits, so that they do not leave a second time as rows that are settled now.
        for run in new if completes(self.task.work) else ():
            if self.layout.preserved[run.side]:
                rows = self._complete(run)
                if len(rows):
                    yield run, rows
        for run in [*stored, *new, *(self.task.borrowed if semi else ())]:
            if semi and run.side == LEFT:
                rows = _newly_set(run)
            elif self.layout.preserved[run.side]:
                rows = self._unmatched(run)
            else:
                continue
            if len(rows):
                yield run, rows

    def newly_matched(self, pairs: PairReferences) -> NDArray[np.int64]:
        """Left rows of these pairs that had not matched before; sets their bits."""
        run, rows = pairs.left_run, np.unique(pairs.left)
        fresh: NDArray[np.int64] = rows[np.unpackbits(run.bits, bitorder="little")[rows] == 0]
        self.set(run, fresh)
        return fresh

    def _unmatched(self, run: RowRun) -> NDArray[np.int64]:
        work, within = self.task.work, self.layout.within
        until = END_US if work.state.flush else within.dead_before(run.side, work.state.settle_us)
        since = within.dead_before(run.side, work.state.settled_us)
        if run.first_us >= until or run.last_us < since:
            return np.zeros(0, np.int64)
        rows = _unset(run)
        times = run.times[rows]
        due: NDArray[np.int64] = rows[(times >= since) & ((times < until) | work.state.flush)]
        return due

    def _complete(self, run: RowRun) -> NDArray[np.int64]:
        """Unmatched new rows whose last possible match lies below the watermark; sets their bits."""
        until = self.layout.within.complete_before(run.side, self.task.work.state.settle_us)
        if run.first_us >= until:
            return np.zeros(0, np.int64)
        rows = _unset(run)
        due: NDArray[np.int64] = rows[run.times[rows] < until]
        self.set(run, due)
        return due

    def write(self) -> None:
        """Write the matched bits that changed, and merge the pieces that the plan names."""
        if not self.task.keeps_state or self.task.work.state.flush:
            return
        merging = self._merge_groups()
        for run in [*self.task.stored, *self.task.new]:
            gone = isinstance(run, StoredRun) and run.piece.name in self.merged
            if self.layout.tracked[run.side] and run.touched and not gone and not _marked_instead(run):
                self._write_bits(run)
        self._rewritten = [piece for group in merging if (piece := self._merge(group)) is not None]
        marks = chain(borrowed(self.task.borrowed, self.layout), lent(self.task.stored, self.layout))
        self._rewritten += [self._write_marks(run) for run in marks]

    def _write_marks(self, run: RowRun) -> Piece:
        """Store marks for rows that matched here and are stored elsewhere."""
        batches = np.full(len(run.codes), self.task.work.state.batch, np.int32)
        labelled = by_base(run.codes, self.layout.partitions)
        return write_run(run, self.task.writer, self.layout.operator, batches, 0, labelled, marks=True)

    def _write_bits(self, run: RowRun) -> None:
        changed = (
            not np.array_equal(run.bits, run.stored_bits) if isinstance(run, StoredRun) else count(run.bits)
        )
        if changed and isinstance(run, (StoredRun, NewRun)) and run.piece is not None:
            self.matched[run.piece.name] = self.task.writer.add_bytes(run.bits.tobytes())

    def added(self) -> list[Piece]:
        """The pieces that stay. A flushed batch leaves none, but its second step must find them."""
        stays = self.layout.residual or not self.task.work.state.flush
        return [*(self.task.written if stays else ()), *self._rewritten]

    def _merge_groups(self) -> list[list[StoredRun]]:
        by_name = {run.piece.name: run for run in [*self.task.stored, *self.task.held.marks] if run.own}
        wanted = dict(self.task.work.state.merges).get(str(self.task.instance), ())
        groups = [
            [by_name[name] for name in names if name in by_name and not self._must_stay(by_name[name])]
            for names in wanted
        ]
        self.merged = [run.piece.name for group in groups for run in group]
        return [group for group in groups if group]

    def _must_stay(self, run: StoredRun) -> bool:
        """Whether other instances may be writing bits of this piece."""
        if not self.layout.tracked[run.side] or run.piece.marks:
            return False
        lending = self.task.held.lending[run.side]
        return not lending.isdisjoint(run.piece.partitions) and not all_known(run)

    def _merge(self, group: Sequence[StoredRun]) -> Piece | None:
        """Write several pieces as one, without the rows that are no longer needed."""
        side = group[0].side
        alive = self.task.work.alive_from_us(side)
        rows = [_alive(run, alive) for run in group]
        if not sum(map(len, rows)):
            return None
        codes = np.concatenate([run.codes[r] for run, r in zip(group, rows, strict=True)])
        times = np.concatenate([run.times[r] for run, r in zip(group, rows, strict=True)])
        ordered = sort_by_code_time(codes, times)
        columns = _concat_sorted(group, rows, ordered.order)
        merged = NewRun(side, group[0].keyless, group[0].slot, int(times.min()), int(times.max()), ())
        merged.codes, merged.times = ordered.codes, ordered.times
        batches = as_numpy(columns.column(BATCH))
        merged.rows = columns.drop_columns([CODE, TIME, BATCH])
        level = 1 + max(run.piece.level for run in group)
        marks = group[0].piece.marks
        labelled = self._labelled(merged, marks)
        piece = write_run(merged, self.task.writer, self.layout.operator, batches, level, labelled, marks)
        if self.layout.tracked[side] and not marks:
            was_set = [_bit_values(run, r) for run, r in zip(group, rows, strict=True)]
            set_bits(merged.bits, np.flatnonzero(np.concatenate(was_set)[ordered.order]))
            if count(merged.bits):
                self.matched[piece.name] = self.task.writer.add_bytes(merged.bits.tobytes())
        return piece

    def _labelled(self, run: RowRun, marks: bool) -> Labelled:
        if marks:
            return by_base(run.codes, self.layout.partitions)
        placement = self.task.work.state.routing.sides[run.side]
        return stored_in(run.codes, placement, self.layout.partitions, self.task.instance, run.keyless)


def completes(work: JoinWork) -> bool:
    """Whether an instance finds all pairs of the rows that it stores, so that it may settle them at once."""
    return not (work.layout.spread or work.state.routing.scattered or work.state.flush)


def _unset(run: RowRun) -> NDArray[np.int64]:
    """The own rows of a run whose bit is not set."""
    nothing = np.zeros(0, np.int64)
    return np.concatenate([unset_positions(run.bits, *piece) for piece in run.own] or [nothing])


def _marked_instead(run: StoredRun | NewRun) -> bool:
    """Whether all of a run is lent, so that marks record which of its rows have matched."""
    return isinstance(run, StoredRun) and not run.own and all_known(run)


def _newly_set(run: RowRun) -> NDArray[np.int64]:
    if not run.touched:
        return np.zeros(0, np.int64)
    fresh = run.bits & ~run.stored_bits if isinstance(run, StoredRun) else run.bits
    return positions(fresh)


def _alive(run: StoredRun, alive_us: int) -> NDArray[np.int64]:
    mine = np.concatenate([np.arange(start, stop) for start, stop in run.own])
    alive: NDArray[np.int64] = mine[run.times[mine] >= alive_us]
    return alive


def _bit_values(run: StoredRun, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
    values: NDArray[np.uint8] = np.unpackbits(run.bits, bitorder="little")[rows]
    return values


def _concat_sorted(
    group: Sequence[StoredRun], rows: Sequence[NDArray[np.int64]], order: NDArray[np.int64]
) -> pa.RecordBatch:
    parts = [run.rows.take(pa.array(r)) for run, r in zip(group, rows, strict=True)]
    # Rows stored before the key was split lack the identity that later rows have.
    table = pa.concat_tables([pa.Table.from_batches([part]) for part in parts], promote_options="default")
    taken = table.take(pa.array(order))
    arrays = [one_array(column) for column in taken.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)
