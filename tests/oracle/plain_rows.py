"""Windows of so many rows, described without Spark, and what they come to by definition."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import xxhash
from tests.oracle.plain_aggregates import Row
from tests.oracle.plain_window import PlainWindow

from tidegate.model.graph import OperatorTraits
from tidegate.window.lifetime import RowsLifetime
from tidegate.window.spec import END, START, RowsSpec
from tidegate.worker.runtime.layout import PANE, ROW, TIME
from tidegate.worker.window.count_task import CountWindowInstance
from tidegate.worker.window.task import WindowInstance
from tidegate.worker.window.work import LATE, ON_TIME, REJECTED, WindowWork


def hash_of(row: Row) -> int:
    """Of all that a row says, so that only equal rows have the same."""
    word = xxhash.xxh64_intdigest(repr(sorted(row.items(), key=lambda item: item[0])).encode())
    return int(np.uint64(word).astype(np.int64))


@dataclass(frozen=True)
class PlainRows(PlainWindow):
    """Windows of rows of one input. Emitted rows are (start, end, group …, results …)."""

    spec: RowsSpec  # type: ignore[assignment]
    single: bool = True
    task: ClassVar[type[WindowInstance]] = CountWindowInstance

    def operator(self) -> OperatorTraits:
        return OperatorTraits(
            self.name, (self.source, self.source), RowsLifetime(), (True, False), (True, False)
        )

    def partials(self, rows: Sequence[Row], work: WindowWork) -> pa.Table:
        """A partial for every row, with the hash of the row in place of a pane."""
        marked = super().partials((), work)
        lines = [
            {
                **self._partial(self._cell(row, work), [row]),
                ROW: hash_of(row) if row["time"] is not None else None,
            }
            for row in rows
        ]
        return pa.concat_tables([pa.Table.from_pylist(lines, marked.schema), marked])

    def _cell(self, row: Row, work: WindowWork) -> tuple[Any, ...]:
        time = row["time"]
        fate = REJECTED if time is None else LATE if time < work.late_before_us else ON_TIME
        return (fate, None, *(row[name] if fate == ON_TIME else None for name in self.by))

    def _columns(self) -> dict[str, pa.DataType]:
        columns = super()._columns()
        del columns[PANE]
        return {**columns, ROW: pa.int64()}

    def shown(self, row: Row) -> tuple[Any, ...]:
        assert row[START] == row[TIME]
        results = (rounded(row[one.name]) for one in self.aggregates)
        return (row[START], row[END], *(row[name] for name in self.by), *results)

    def complete(self, rows: Sequence[Row], below: int) -> Counter[tuple[Any, ...]]:
        """Every window of rows that are settled: all those before this time."""
        groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for row in sorted(rows, key=lambda row: (row["time"], hash_of(row))):
            if row["time"] < below:
                groups[tuple(row[name] for name in self.by)].append(row)
        found: Counter[tuple[Any, ...]] = Counter()
        for group, settled in groups.items():
            for begin in range(0, len(settled) - self.spec.size + 1, self.spec.slide):
                some = settled[begin : begin + self.spec.size]
                results = (rounded(one.result(some, in_order=True)) for one in self.aggregates)
                found[some[0]["time"], some[-1]["time"], *group, *results] += 1
        return found


def rounded(value: Any) -> Any:
    """Floats but for what the order of additions does to them; NaN as text, which is equal to itself."""
    if not isinstance(value, float):
        return value
    return "NaN" if value != value else float(f"{value:.9g}")
