"""Runs: sorted rows of one side, either new in this batch or stored by an earlier one.

Kernels work on runs: `codes` and `times` as numpy arrays sorted by (code, time), the other columns as Arrow
arrays, and one matched bit per row if the join tracks matches. Stored runs are memory-mapped and opened only
when they are needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidegate.join.probe.key_filter import KeyFilter
from tidegate.join.probe.matched_bits import no_bits, set_bits, union
from tidegate.join.probe.order import sort_by_code_time
from tidegate.join.selective.selection import row_identity
from tidegate.join.within import slots_of
from tidegate.model.pieces import Piece
from tidegate.route.places import Labelled
from tidegate.route.targets import PROBE, STORE
from tidegate.state.segments import SegmentCache, SegmentWriter
from tidegate.worker.row_hash import row_hashes
from tidegate.worker.runtime.layout import BATCH, CODE, ROW, TIME, SideLayout

if TYPE_CHECKING:
    from tidegate.worker.runtime.marks import Marks

#: Most slots per batch. A batch that spans more (a backlog of hours with a window of seconds) is cut into
#: this many spans instead, because millions of tiny pieces would result otherwise.
SLOTS_PER_BATCH_MAX = 32
#: Columns of the engine, which are not part of a row's contents.
_ADDED = {CODE, TIME, BATCH, ROW}


@dataclass
class RowRun:
    """Sorted rows of one side; see the module docstring."""

    side: int
    keyless: bool
    slot: int | None
    first_us: int
    last_us: int
    #: Row ranges that belong to this instance.
    slices: Sequence[tuple[int, int]]

    codes: NDArray[np.uint64] = field(init=False)
    times: NDArray[np.int64] = field(init=False)
    rows: pa.RecordBatch = field(init=False)

    @cached_property
    def bits(self) -> NDArray[np.uint8]:
        """Matched bits; may be changed in place."""
        return no_bits(len(self.codes))

    @property
    def touched(self) -> bool:
        """Whether the bits were loaded in this batch."""
        return "bits" in self.__dict__

    @property
    def own(self) -> Sequence[tuple[int, int]]:
        """The row ranges that this instance stores; it may probe others."""
        return self.slices

    @property
    def in_sight(self) -> int:
        """How many rows this instance probes."""
        return sum(stop - start for start, stop in self.slices)

    @property
    def names(self) -> list[str]:
        """All columns, also those that the engine adds."""
        return [*self.rows.schema.names]

    def column(self, name: str) -> pa.Array:
        return self.rows.column(name)

    def identity(self, batch: int) -> NDArray[np.uint64]:
        """The identities of its rows, all of which arrived in this batch."""
        columns = {name: self.column(name) for name in self.names if name not in _ADDED}
        return row_identity(self.codes, self.times, batch, row_hashes(columns, len(self.codes)))


@dataclass(frozen=True)
class ReceivedRows:
    """Rows of a batch as received, and the positions of the columns of a side."""

    table: pa.Table
    #: Column → its name in the table.
    lanes: Mapping[str, str]

    def column(self, name: str, positions: NDArray[np.int64]) -> pa.Array:
        """A column of these rows."""
        taken = pc.take(self.table.column(self.lanes[name]), pa.array(positions), boundscheck=False)
        return one_array(taken)


class NewRun(RowRun):
    """Rows that arrived in this batch; a column is gathered when it is needed."""

    def __init__(
        self,
        side: int,
        keyless: bool,
        slot: int | None,
        first_us: int,
        last_us: int,
        slices: Sequence[tuple[int, int]],
        role: int = STORE | PROBE,
    ):
        super().__init__(side, keyless, slot, first_us, last_us, slices)
        #: Role of this instance for these rows; see route/targets.py.
        self.role = role
        self.piece: Piece | None = None
        self._received: ReceivedRows | None = None
        #: Position of each row among the received rows.
        self._positions: NDArray[np.int64] = np.zeros(0, np.int64)
        self._columns: dict[str, pa.Array] = {}

    @classmethod
    def of(
        cls,
        received: ReceivedRows,
        positions: NDArray[np.int64],
        codes: NDArray[np.uint64],
        times: NDArray[np.int64],
        side: int,
        keyless: bool,
        role: int,
        slot: int | None = None,
    ) -> NewRun:
        """A sorted run of some received rows."""
        first_us, last_us = int(times.min()), int(times.max())
        run = cls(side, keyless, slot, first_us, last_us, [(0, len(codes))], role)
        run.codes, run.times = codes, times
        run._received, run._positions = received, positions
        return run

    @cached_property
    def rows(self) -> pa.RecordBatch:
        assert self._received is not None, "made of arrays, not of rows received"
        names = [*self._received.lanes]
        columns = [self._received.column(name, self._positions) for name in names]
        return pa.RecordBatch.from_arrays(columns, names=names)

    @property
    def names(self) -> list[str]:
        return super().names if self._received is None else [*self._received.lanes]

    def column(self, name: str) -> pa.Array:
        if self._received is None or "rows" in self.__dict__:
            return self.rows.column(name)
        if name not in self._columns:
            self._columns[name] = self._received.column(name, self._positions)
        return self._columns[name]

    def part(self, slot: int | None, chosen: slice | NDArray[np.int64]) -> NewRun:
        """Some of its rows, in the same order."""
        assert self._received is not None, "made of arrays, not of rows received"
        codes, times, positions = self.codes[chosen], self.times[chosen], self._positions[chosen]
        return NewRun.of(self._received, positions, codes, times, self.side, self.keyless, self.role, slot)

    def joined(self, others: Sequence[NewRun]) -> tuple[NewRun, NDArray[np.int64]]:
        """One run of these rows and those of other runs of the batch and side; and the origin of each row."""
        assert self._received is not None, "made of arrays, not of rows received"
        runs = [self, *others]
        ordered = sort_by_code_time(
            np.concatenate([run.codes for run in runs]), np.concatenate([run.times for run in runs])
        )
        positions = np.concatenate([run._positions for run in runs])[ordered.order]
        codes, times = ordered.codes, ordered.times
        whole = NewRun.of(self._received, positions, codes, times, self.side, self.keyless, self.role)
        return whole, ordered.order

    @cached_property
    def pairs(self) -> NDArray[np.int64]:
        """Per row: the stored rows that it was compared with, if counted."""
        return np.zeros(len(self.codes), np.int64)


class StoredRun(RowRun):
    """Rows of an earlier batch, read only when needed."""

    def __init__(
        self,
        piece: Piece,
        slices: Sequence[tuple[int, int]],
        cache: SegmentCache,
        own: Sequence[tuple[int, int]] | None = None,
        marks: Marks | None = None,
    ):
        super().__init__(piece.side, piece.keyless, piece.slot, piece.first_us, piece.last_us, slices)
        self.piece = piece
        self._cache, self._own, self._marks = cache, own, marks

    @property
    def own(self) -> Sequence[tuple[int, int]]:
        return self.slices if self._own is None else self._own

    @cached_property
    def rows(self) -> pa.RecordBatch:
        return self._cache.batch(self.piece.data)

    def column(self, name: str) -> pa.Array:
        """A column of these rows; null in those that were stored before a run added it to the flow."""
        known = name in self.rows.schema.names
        return self.rows.column(name) if known else pa.nulls(self.rows.num_rows)

    @cached_property
    def codes(self) -> NDArray[np.uint64]:  # type: ignore[override]
        return as_numpy(self.rows.column(CODE))

    @cached_property
    def times(self) -> NDArray[np.int64]:  # type: ignore[override]
        return as_numpy(self.rows.column(TIME))

    @property
    def key_filter(self) -> KeyFilter:
        """A key filter over all rows of the piece; cached from batch to batch."""
        filtered: KeyFilter = self._cache.prepared(self.piece.data, _key_filter)
        return filtered

    @cached_property
    def stored_bits(self) -> NDArray[np.uint8]:
        """The bits as the last batch left them, including marks from other instances."""
        bits = no_bits(self.piece.rows)
        for blob in self.piece.matched.values():
            bits = union(bits, np.frombuffer(self._cache.bytes(blob), dtype=np.uint8))
        for rows in self._marks.positions(self) if self._marks is not None else ():
            set_bits(bits, rows)
        return bits

    @cached_property
    def bits(self) -> NDArray[np.uint8]:
        return self.stored_bits.copy()


def _key_filter(rows: pa.RecordBatch) -> KeyFilter:
    return KeyFilter.of(as_numpy(rows.column(CODE)))


def as_numpy(array: pa.Array) -> NDArray[Any]:
    """A null-free Arrow array as numpy, without copying."""
    result: NDArray[Any] = array.to_numpy(zero_copy_only=True)
    return result


def new_runs(
    table: pa.Table,
    chosen: NDArray[np.int64],
    keys: tuple[NDArray[np.uint64], NDArray[np.int64]],
    side: int,
    layout: SideLayout,
    slot_us: int,
    keyless: bool,
    role: int = STORE | PROBE,
) -> list[NewRun]:
    """Sort the chosen rows of a batch and cut them by slot; with `slot_us` 0 they stay together."""
    if not len(chosen):
        return []
    codes, times = keys
    ordered = sort_by_code_time(codes[chosen], times[chosen])
    lanes = dict(zip(layout.columns, layout.lanes, strict=True))
    if ROW in table.column_names:
        lanes[ROW] = ROW
    rows = chosen[ordered.order]
    whole = NewRun.of(ReceivedRows(table, lanes), rows, ordered.codes, ordered.times, side, keyless, role)
    return in_slots([whole], slot_us)


def in_slots(runs: Sequence[NewRun], slot_us: int) -> list[NewRun]:
    """Runs of one batch and side, combined and cut by slot."""
    if not runs:
        return []
    whole = runs[0] if len(runs) == 1 else runs[0].joined(runs[1:])[0]
    return [whole.part(slot, rows) for slot, rows in by_slot(whole.times, slot_us)]


def one_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """The column as one array."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def by_slot(times: NDArray[np.int64], slot_us: int) -> list[tuple[int | None, slice | NDArray[np.int64]]]:
    """The rows of each slot, in their present order."""
    slots = slots_of(np.array([times.min(), times.max()]), slot_us)
    first, last = int(slots[0]), int(slots[1])
    if first == last:
        return [(first, slice(None))]
    slots = slots_of(times, slot_us)
    wide = last - first >= SLOTS_PER_BATCH_MAX
    if wide:
        slots = (slots - first) // -(-(last - first + 1) // SLOTS_PER_BATCH_MAX)
    return [(None if wide else int(slot), np.flatnonzero(slots == slot)) for slot in np.unique(slots)]


def write_run(
    run: RowRun,
    writer: SegmentWriter,
    operator: str,
    batches: NDArray[np.int32],
    level: int,
    labelled: Labelled,
    marks: bool = False,
) -> Piece:
    """Store a run as a piece; `batches`: arrival batch per row, `labelled`: where rows belong."""
    columns = [pa.array(run.codes), pa.array(run.times), pa.array(batches), *run.rows.columns]
    names = [CODE, TIME, BATCH, *run.rows.schema.names]
    data = writer.add(pa.RecordBatch.from_arrays(columns, names=names))
    return Piece(
        operator=operator,
        side=run.side,
        slot=run.slot,
        level=level,
        rows=len(run.codes),
        first_us=run.first_us,
        last_us=run.last_us,
        batches=(int(batches.min()), int(batches.max())),
        keyless=run.keyless,
        partitions=labelled.labels,
        bounds=labelled.bounds,
        data=data,
        marks=marks,
    )
