"""What the tasks of a window aggregate are sent: partials that Spark added up, or single rows.

A partial says how many rows it is of, when the newest came, and its pane. Of a single row all that is known:
it is one, its pane follows from its time, and what is the same in every row, or is another partial over
again, is not sent at all. So a row of `count(*)`, `sum(v)` and `max(v)` carries v once, and nothing else
beside its time and its key: a row costs what its columns do, on the way through the shuffle and into Python.
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
    """The partials or rows of one task, in the order in which they came."""

    def __init__(self, batches: Sequence[pa.RecordBatch], layout: WindowLayout):
        # In one piece: fetching rows out of many is twice the work.
        self._table = pa.Table.from_batches(batches).combine_chunks()
        self._layout = layout
        self.single = ROWS not in self._table.column_names
        #: What became of the rows behind each; markers are none of these.
        self.fates = self.numbers(TAG)

    def rows(self, fate: int) -> int:
        """How many rows this became of."""
        mine = self.fates == fate
        return int(np.count_nonzero(mine) if self.single else self.numbers(ROWS)[mine].sum())

    def numbers(self, name: str) -> NDArray[np.int64]:
        """A column of whole numbers, with 0 for null: markers have nothing else."""
        column = one_array(self._table.column(name))
        numbers: NDArray[np.int64] = (pc.fill_null(column, 0) if column.null_count else column).to_numpy()
        return numbers

    def words(self, name: str) -> NDArray[np.uint64]:
        return self.numbers(name).view(np.uint64)

    def starts(self, panes: Panes) -> NDArray[np.int64]:
        """Where the pane of each begins."""
        return panes.start(panes.of(self.numbers(SEEN)) if self.single else self.numbers(PANE))

    def counts(self) -> NDArray[np.int64]:
        """How many rows are behind each."""
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
