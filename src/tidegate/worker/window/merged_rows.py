"""Merges rows of several runs into one order, cut into stretches: cells to store, or windows that close."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.window.aggregate.closing import Stretches
from tidegate.window.aggregate.merge_runs import Merged
from tidegate.window.panes import Panes
from tidegate.window.spec import RowsSpec, WindowSpec
from tidegate.worker.runtime.runs import one_array

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class MergedRows:
    """Row k is row `merged.order[k]` of the table."""

    table: pa.Table
    merged: Merged
    stretches: Stretches
    #: Each partial is one row and already in order: count windows.
    single: bool = False

    @property
    def listed(self) -> NDArray[np.int64]:
        """Group number per row; lists are sorted by time within a number, or within each row alone."""
        return np.arange(self.merged.order.size) if self.single else self.merged.group

    def column(self, name: str) -> pa.Array:
        column = self.table.column(name)
        return one_array(column if self._in_order else column.take(pa.array(self.merged.order)))

    def keys(self, names: Sequence[str]) -> pa.Table:
        """These columns, taken from the first row of each stretch."""
        return self.table.select(list(names)).take(pa.array(self._first))

    @cached_property
    def _in_order(self) -> bool:
        """Whether the table is already in order, as with a single run."""
        order = self.merged.order
        return order.size == self.table.num_rows and bool((order == np.arange(order.size)).all())

    @cached_property
    def _first(self) -> NDArray[np.int64]:
        return self.merged.order[self.stretches.begin]

    # -- for messages ---------------------------------------------------------------------------------

    def group(self, by: Sequence[str], k: int) -> str:
        """The group of stretch k."""
        row = int(self._first[k])
        values = (f"{name}={self.table.column(name)[row].as_py()!r}" for name in by)
        return f"the group {', '.join(values)} and " if by else ""

    def window(self, spec: WindowSpec | RowsSpec, k: int) -> str:
        """The window of stretch k."""
        if isinstance(spec, RowsSpec):
            return f"the window of {spec.size} rows from {moment(int(self.stretches.at[k]))}"
        return f"the window from {moment(spec.start(int(self.stretches.at[k])))}"

    def windows(self, spec: WindowSpec | RowsSpec, k: int) -> str:
        """The windows that contain stretch k, a pane."""
        if isinstance(spec, RowsSpec):
            return f"the windows of {spec.size} rows with the one at {moment(int(self.stretches.at[k]))}"
        first, last = (int(one[0]) for one in Panes(spec).windows(self.stretches.at[k : k + 1]))
        until = (
            "" if first == last else f" and those that follow, up to the one from {moment(spec.start(last))}"
        )
        return f"the window from {moment(spec.start(first))}{until}"


def moment(time_us: int) -> str:
    """A time in readable form; the plain number if it is outside the calendar."""
    try:
        return f"{(_EPOCH + timedelta(microseconds=time_us)).replace(tzinfo=None)} UTC"
    except OverflowError:
        return f"{time_us} microseconds after 1970"
