"""The input of window tasks: partials that Spark aggregated, or single rows.

A partial carries its number of rows, their newest time and its pane. A single row needs none of these: it
counts as one, and its pane follows from its time. Partials that are constant, or equal to another one, are
not sent either. So a row of `count(*)`, `sum(v)` and `max(v)` carries v once besides its time and key, which
keeps the shuffle and the transfer to Python small.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidegate.window.panes import Panes
from tidegate.worker.runtime.layout import PANE, ROWS, SEEN, TAG, WindowLayout
from tidegate.worker.runtime.runs import one_array


class ReceivedPartials:
    """The partials or rows of one task, in order of arrival."""

    def __init__(self, batches: Sequence[pa.RecordBatch], layout: WindowLayout):
        # Combined: gathering rows from many chunks takes twice as long.
        self._table = pa.Table.from_batches(batches).combine_chunks()
        self._layout = layout
        self.single: bool = ROWS not in self._table.column_names
        #: The fate of the rows of each; marker rows have none.
        self.fates: NDArray[np.int64] = self.numbers(TAG)

    def rows(self, fate: int) -> int:
        """How many rows had this fate."""
        mine = self.fates == fate
        return int(np.count_nonzero(mine) if self.single else self.numbers(ROWS)[mine].sum())

    def numbers(self, name: str) -> NDArray[np.int64]:
        """A column of integers, with 0 for null (marker rows have nulls)."""
        column = one_array(self._table.column(name))
        numbers: NDArray[np.int64] = (pc.fill_null(column, 0) if column.null_count else column).to_numpy()
        return numbers

    def words(self, name: str) -> NDArray[np.uint64]:
        return self.numbers(name).view(np.uint64)

    def starts(self, panes: Panes) -> NDArray[np.int64]:
        """The start of the pane of each."""
        return panes.start(panes.of(self.numbers(SEEN)) if self.single else self.numbers(PANE))

    def counts(self) -> NDArray[np.int64]:
        """The number of rows of each."""
        return np.ones(len(self.fates), np.int64) if self.single else self.numbers(ROWS)

    def taken(self, names: Sequence[str], chosen: NDArray[np.int64]) -> pa.Table:
        """These columns and all partials of the chosen ones, in their order."""
        carried = self._layout.carried if self.single else {}
        carriers = {name: carried.get(name, name) for name in self._layout.partials}
        sent = [name for name in carriers.values() if isinstance(name, str)]
        fetched = self._table.select(list(dict.fromkeys([*names, *sent]))).take(pa.array(chosen))
        columns = [fetched.column(name) for name in names]
        for carrier in carriers.values():
            alike = isinstance(carrier, int)
            columns.append(pa.array(np.full(len(chosen), carrier)) if alike else fetched.column(carrier))
        return pa.Table.from_arrays(columns, names=[*names, *carriers])
