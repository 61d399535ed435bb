"""A window aggregate described without Spark, and the pane partials that Spark would hand to its tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import xxhash
from tests.oracle.plain_aggregates import KINDS, USERS, PlainAggregate, Row

from tidegate.model.graph import OperatorTraits
from tidegate.window.aggregate.aggregates import CONSTANTS
from tidegate.window.lifetime import Lifetime
from tidegate.window.panes import Panes
from tidegate.window.spec import END, START, WindowSpec
from tidegate.worker.runtime.layout import (
    CHECK,
    CODE,
    MARKER,
    PANE,
    REPORT,
    ROWS,
    SEEN,
    TAG,
    TIME,
    WindowLayout,
    WindowResult,
)
from tidegate.worker.window.task import WindowInstance
from tidegate.worker.window.work import LATE, ON_TIME, REJECTED, WindowWork

Codes = tuple[int, int]


def well_mixed(group: tuple[Any, ...]) -> Codes:
    """Code and check code of a group."""
    text = repr(group).encode()
    return xxhash.xxh64_intdigest(text), xxhash.xxh64_intdigest(text, seed=977)


def colliding(group: tuple[Any, ...]) -> Codes:
    """Two codes for all groups: most are told apart by their check codes alone."""
    code, check = well_mixed(group)
    return (0, 2**64 - 1)[code % 2], check


@dataclass(frozen=True)
class PlainWindow:
    """Windows of one input: a stream, or another PlainWindow's name."""

    name: str
    source: str
    spec: WindowSpec
    by: tuple[str, ...]
    aggregates: tuple[PlainAggregate, ...]
    codes: Any = well_mixed
    #: Rows go one by one: nobody adds them up on the way.
    single: bool = False
    #: What runs it.
    task: ClassVar[type[WindowInstance]] = WindowInstance

    def operator(self) -> OperatorTraits:
        both = (self.source, self.source)
        return OperatorTraits(self.name, both, Lifetime(self.spec), (True, False), (True, False))

    def layout(self, partitions: int, streams: Mapping[str, int]) -> WindowLayout:
        stream = self.source if self.source in streams else None
        parts, results, number = [], [], 0
        for one in self.aggregates:
            first = number
            for part in one.parts:
                parts.append((part, tuple(f"part_{number + i}" for i in range(len(part.pane)))))
                number += len(part.pane)
            columns = tuple(f"part_{i}" for i in range(first, number))
            results.append(WindowResult(one.name, one.final, columns))
        return WindowLayout(
            self.name,
            stream,
            self.spec,
            self.by,
            tuple(parts),
            tuple(results),
            partitions,
            self._schema().serialize().to_pybytes(),
            {one.name: USERS[one.function] for one in self.aggregates if one.function in USERS},
            carried=self._carried(),
        )

    def _carried(self) -> dict[str, str | int]:
        """Of single rows: partials of one text and type travel once, and constants not at all."""
        known = {"time": "time", "tie": "tie", "check": "check"}
        texts = [
            text.format(*one.columns, **known)
            for one in self.aggregates
            for part in one.parts
            for text in part.row
        ]
        kinds = [kind for one in self.aggregates for kind in one.partial_kinds()]
        carried: dict[str, str | int] = {}
        first: dict[tuple[str, str], str] = {}
        for i, (text, kind) in enumerate(zip(texts, kinds, strict=True)):
            name = f"part_{i}"
            same = first.setdefault((text, str(kind)), name)
            carried[name] = CONSTANTS.get(text, same)
        return carried

    def _schema(self) -> pa.Schema:
        moment = pa.timestamp("us", "UTC")
        fields = [(START, moment), (END, moment), *((name, KINDS[name]) for name in self.by)]
        fields += [(one.name, one.result_kind) for one in self.aggregates]
        return pa.schema([*fields, (TIME, pa.int64()), (REPORT, pa.string())])

    def partials(self, rows: Sequence[Row], work: WindowWork) -> pa.Table:
        """What `window_frames.partials` makes of rows, with a marker for every instance."""
        together: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for number, row in enumerate(rows):
            together[*self._cell(row, work), number * self.single].append(row)
        lines = [self._partial(cell, some) for (*cell, _), some in together.items()]
        blank = dict.fromkeys(self._columns(), None)
        lines += [
            {**blank, TAG: MARKER, CODE: instance, ROWS: 0, CHECK: 0}
            for instance in range(work.state.routing.instances)
        ]
        table = pa.Table.from_pylist(lines, pa.schema(list(self._columns().items())))
        if not self.single:
            return table
        carried = self._carried()
        known = [name for name in (ROWS, PANE) if name in table.column_names]
        return table.drop_columns([*known, *(name for name, carrier in carried.items() if carrier != name)])

    def _cell(self, row: Row, work: WindowWork) -> tuple[Any, ...]:
        """Fate, pane and group of a row."""
        time = row["time"]
        if time is None:
            return (REJECTED, None, *(None for _ in self.by))
        if time < work.late_before_us:
            return (LATE, None, *(None for _ in self.by))
        pane = int(Panes(self.spec).of(np.array([time]))[0])
        return (ON_TIME, pane, *(row[name] for name in self.by))

    def _partial(self, cell: Sequence[Any], rows: Sequence[Row]) -> dict[str, Any]:
        fate, pane, *group = cell
        code, check = (np.uint64(word).astype(np.int64).item() for word in self.codes(tuple(group)))
        values = [value for one in self.aggregates for value in one.partials(rows)]
        seen = max((row["time"] for row in rows if row["time"] is not None), default=None)
        known = {TAG: fate, PANE: pane, CODE: code, CHECK: check, ROWS: len(rows), SEEN: seen}
        partials = {f"part_{i}": value for i, value in enumerate(values)}
        return {**known, **dict(zip(self.by, group, strict=True)), **partials}

    def _columns(self) -> dict[str, pa.DataType]:
        kinds = [kind for one in self.aggregates for kind in one.partial_kinds()]
        whole = dict.fromkeys((PANE, CODE, CHECK, ROWS, SEEN), pa.int64())
        return {
            TAG: pa.int16(),
            **whole,
            **{name: KINDS[name] for name in self.by},
            **{f"part_{i}": kind for i, kind in enumerate(kinds)},
        }

    def shown(self, row: Row) -> tuple[Any, ...]:
        """A row that came out, as (start, group …, results …)."""
        assert row[END] - row[START] == self.spec.size_us
        assert row[START] == row[TIME]
        return (row[START], *(row[name] for name in (*self.by, *(one.name for one in self.aggregates))))

    def expected(self, rows: Sequence[Row]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
        """(start, group …) → results, of every window that holds one of the rows."""
        held: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        size, slide, offset = self.spec.size_us, self.spec.slide_us, self.spec.offset_us
        for row in rows:
            # The last window that contains the row, then earlier ones while they still reach it.
            start = row["time"] - (row["time"] - offset) % slide
            while row["time"] < start + size:
                held[start, *(row[name] for name in self.by)].append(row)
                start -= slide
        return {key: tuple(one.result(some) for one in self.aggregates) for key, some in held.items()}
