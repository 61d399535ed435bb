"""Positions of pairs in two runs, and Arrow batches of joined rows, gathered by position. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidegate.worker.runtime.layout import REPAIRED, REPORT, TIME, ComparedKey, JoinLayout
from tidegate.worker.runtime.runs import RowRun, one_array

Positions: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Places:
    """The rows of a run that belong to this instance, sorted by time: place → row."""

    rows: Positions
    times: NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + self.times.nbytes


@dataclass(frozen=True)
class PairReferences:
    """Row positions in two runs, left and right: `left[i]` joins with `right[i]`."""

    left_run: RowRun
    left: Positions
    right_run: RowRun
    right: Positions
    #: The part of a window in which they were found; see `cell_number`.
    cell: int = 0

    def __len__(self) -> int:
        return len(self.left)

    def only(self, keep: NDArray[np.bool_]) -> PairReferences:
        return PairReferences(self.left_run, self.left[keep], self.right_run, self.right[keep], self.cell)


class Assembler:
    """Builds output batches of one join."""

    def __init__(self, layout: JoinLayout, staged: bool = False):
        self._columns = layout.output
        self.schema = pa.ipc.read_schema(pa.py_buffer(layout.schema))
        #: Staged results do not return through Spark; the report does.
        self._made = self.schema.remove(self.schema.get_field_index(REPORT)) if staged else self.schema

    def pairs(
        self, parts: Sequence[PairReferences], extra: Iterable[pa.Array] = (), repaired: int | None = None
    ) -> pa.RecordBatch:
        """Joined rows for these pairs; `extra` fills the columns between the output and the report.

        `repaired`: the batch that skipped these pairs.
        """
        lefts = _grouped([(p.left_run, p.left) for p in parts])
        rights = _grouped([(p.right_run, p.right) for p in parts])
        arrays = []
        for column in self._columns:
            if column.name == TIME:
                arrays.append(pa.array(np.maximum(_times(lefts), _times(rights))))
            elif column.name == REPAIRED:
                arrays.append(_same(repaired, sum(map(len, parts))))
            elif column.left is not None:
                arrays.append(_gather(lefts, column.left, self._type(column.name)))
            else:
                arrays.append(_gather(rights, column.right or "", self._type(column.name)))
        return self._batch([*arrays, *extra])

    def unmatched(self, run: RowRun, rows: Positions, repaired: int | None = None) -> pa.RecordBatch:
        """Rows of one side alone, the other side's columns null."""
        groups = [(run, rows)]
        arrays = []
        for column in self._columns:
            source = column.right if run.side else column.left
            if column.name == TIME:
                arrays.append(pa.array(run.times[rows]))
            elif column.name == REPAIRED:
                arrays.append(_same(repaired, len(rows)))
            elif source is None:
                arrays.append(pa.nulls(len(rows), self._type(column.name)))
            else:
                arrays.append(_gather(groups, source, self._type(column.name)))
        return self._batch(arrays)

    def _type(self, name: str) -> pa.DataType:
        return self.schema.field(name).type

    def _batch(self, arrays: list[pa.Array]) -> pa.RecordBatch:
        if self._made is self.schema:
            arrays.append(pa.nulls(len(arrays[0]), pa.string()))
        return pa.RecordBatch.from_arrays(arrays, schema=self._made)


def _same(batch: int | None, count: int) -> pa.Array:
    return pa.array([batch], pa.int64()).take(pa.array(np.zeros(count, np.int64)))


def cells_of(parts: Sequence[PairReferences]) -> pa.Array:
    """The cell number of each pair, as a column of the result."""
    return pa.array(np.repeat([part.cell for part in parts], [len(part) for part in parts]).astype(np.int32))


def same_keys(parts: PairReferences, verify: Sequence[ComparedKey]) -> NDArray[np.bool_]:
    """Whether the real keys agree, by Spark's equality: NaN equals NaN, and -0.0 equals 0.0."""
    keep = np.ones(len(parts), dtype=np.bool_)
    for key in verify:
        left = _gather([(parts.left_run, parts.left)], key.left, None)
        right = _gather([(parts.right_run, parts.right)], key.right, None)
        equal = pc.equal(left, right)
        if pa.types.is_floating(left.type):
            equal = pc.or_(equal, pc.and_(pc.is_nan(left), pc.is_nan(right)))
        if key.null_safe:
            equal = pc.or_kleene(equal.fill_null(False), pc.and_(left.is_null(), right.is_null()))
        keep &= np.asarray(equal.fill_null(False))
    return keep


def _grouped(parts: list[tuple[RowRun, Positions]]) -> list[tuple[RowRun, Positions]]:
    """Adjacent parts of the same run concatenated, so that a column is gathered in few calls."""
    grouped: list[tuple[RowRun, list[Positions]]] = []
    for run, rows in parts:
        if grouped and grouped[-1][0] is run:
            grouped[-1][1].append(rows)
        else:
            grouped.append((run, [rows]))
    return [(run, rows[0] if len(rows) == 1 else np.concatenate(rows)) for run, rows in grouped]


def gather(run: RowRun, rows: Positions, name: str) -> pa.Array:
    """One stored column of these rows."""
    return _gather([(run, rows)], name, None)


def _times(groups: list[tuple[RowRun, Positions]]) -> NDArray[np.int64]:
    return np.concatenate([run.times[rows] for run, rows in groups])


def _gather(groups: list[tuple[RowRun, Positions]], name: str, wanted: pa.DataType | None) -> pa.Array:
    if name == TIME:
        column = pa.array(_times(groups))
        return column if wanted is None else column.view(wanted)
    taken = [pc.take(run.column(name), pa.array(rows), boundscheck=False) for run, rows in groups]
    if wanted is not None:
        # Rows that were stored before the column was added.
        taken = [one.cast(wanted) if pa.types.is_null(one.type) else one for one in taken]
    column = taken[0] if len(taken) == 1 else pa.concat_arrays([one_array(t) for t in taken])
    # Stored arrays keep the type they arrived with; the declared time zone or key type may differ.
    return column if wanted is None or column.type == wanted else column.cast(wanted)
