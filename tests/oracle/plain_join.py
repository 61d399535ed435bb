"""A join described without Spark: the layout that compiling a flow would give, for rows of one plain shape.

Every stream `s` has rows (time, k, s_n, s_v): a key that may be null, a number that tells rows apart, a value
for residual conditions. A joined row has k, the columns of the left side, those of the right side, and the
hidden time, so that what leaves one join can enter another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import xxhash

from tidegate.api.joins.conditions import Condition as OnCondition
from tidegate.join.within import Tumbling, Unbounded, Within
from tidegate.model.graph import OperatorTraits
from tidegate.model.times import BEGINNING_US
from tidegate.worker.runtime.layout import (
    CODE,
    LEFT_ROW,
    LEFT_RUN,
    REPAIRED,
    REPORT,
    RIGHT_ROW,
    RIGHT_RUN,
    TAG,
    TIME,
    ComparedKey,
    JoinLayout,
    OutputColumn,
    SideLayout,
)

Condition = Within | Tumbling | Unbounded
#: The column of sets that every row carries unseen.
ITEMS = "items"
Key = int | str
Cell = int | str | None
#: The code of a key; the default tells integer keys apart by itself, as XXH64 of one long does.
Coder = Callable[[Key], int]
Where = Callable[[dict[str, Cell]], bool]


def items_of(value: Cell) -> list[int]:
    """The set that goes with a value: small values share items, and one of them has none."""
    return [[0, 1, 2, 1], [], [1, 2], [2, 3, 9]][value % 4] if isinstance(value, int) else []


def well_mixed(key: Key) -> int:
    data = key.to_bytes(8, "little", signed=True) if isinstance(key, int) else key.encode()
    return xxhash.xxh64_intdigest(data)


def colliding(key: Key) -> int:
    """Three codes for all keys: most candidate pairs are wrong ones."""
    return (0, 1 << 62, (1 << 64) - 1)[well_mixed(key) % 3]


@dataclass(frozen=True)
class PlainJoin:
    """One join between two named inputs, each a stream or another PlainJoin's name."""

    name: str
    left: str
    right: str
    how: str
    within: Condition
    #: Columns of each side, without the key.
    left_columns: tuple[str, ...]
    right_columns: tuple[str, ...]
    where: Where | None = None
    #: Keys are text, and codes may collide, so real keys are compared.
    text_keys: bool = False
    coder: Coder = well_mixed
    #: Compares the hidden column ITEMS, made of a row's value, or (a function) visible columns.
    condition: OnCondition | None = None
    #: There is no key: rows lie anywhere, by their number.
    spread: bool = False
    #: Rows say which batch they should have come in, between the columns and the time.
    repaired: bool = False

    @property
    def shown_columns(self) -> tuple[str, ...]:
        """Columns of the joined row, without key and time."""
        return self.left_columns + (() if self.how in ("left_semi", "left_anti") else self.right_columns)

    def operator(self) -> OperatorTraits:
        return OperatorTraits(
            self.name, (self.left, self.right), self.within, self.layout(1).tracked, self.layout(1).preserved
        )

    def layout(self, partitions: int, streams: Iterable[str] = ()) -> JoinLayout:
        """The layout of the join; with a residual condition, of its second step."""
        known = set(streams)
        sides = []
        for tag, name, columns in ((0, self.left, self.left_columns), (2, self.right, self.right_columns)):
            lanes = ("l_key", *(f"l{i}" for i in range(len(columns))), "l_items")
            stored = ("k", *columns, ITEMS)
            sides.append(SideLayout(tag, name if name in known else None, stored, lanes))
        output = [
            OutputColumn("k", "k", "k"),
            *(OutputColumn(c, c, None) for c in self.left_columns),
            *(OutputColumn(c, None, c) for c in self.right_columns if c in self.shown_columns),
            *([OutputColumn(REPAIRED, None, None)] if self.repaired else []),
            OutputColumn(TIME, TIME, TIME),
        ]
        return JoinLayout(
            operator=self.name,
            how=self.how,
            within=self.within,
            partitions=partitions,
            left=sides[0],
            right=sides[1],
            verify=(ComparedKey("k", "k"),) if self.text_keys else (),
            output=tuple(output),
            schema=self._schema([column.name for column in output], ()),
            condition=self.condition,
            spread=self.spread,
        )

    def candidates(self, layout: JoinLayout) -> JoinLayout:
        """The layout of the first step of a join with a residual condition."""
        output = [
            *layout.output[:-1],
            *(OutputColumn(c, None, c) for c in self.right_columns if c not in self.shown_columns),
            layout.output[-1],
        ]
        references = (LEFT_RUN, LEFT_ROW, RIGHT_RUN, RIGHT_ROW)
        schema = self._schema([column.name for column in output], references)
        return replace(layout, output=tuple(output), schema=schema, residual=True)

    def rows(self, side: int, columns: dict[str, list[Cell]], times: list[int | None]) -> pa.RecordBatch:
        """Rows of one side as they reach the join: tag, time, code, lanes."""
        keys = columns["k"]
        names = self.left_columns if side == 0 else self.right_columns
        arrays = {
            TAG: pa.array([2 * side + (key is None) for key in keys], pa.int16()),
            TIME: pa.array([BEGINNING_US if t is None else t for t in times], pa.int64()),
            CODE: pa.array(_signed([self._code(k, t) for k, t in zip(keys, times, strict=True)])),
            "l_key": pa.array(keys, self._key_type),
            "l_items": pa.array([items_of(v) for v in columns[names[-1]]], pa.list_(pa.int64())),
        }
        if self.spread:
            arrays[CODE] = pa.array(_signed([well_mixed(n or 0) for n in columns[names[0]]]))
        for lane in range(max(len(self.left_columns), len(self.right_columns))):
            values = columns[names[lane]] if lane < len(names) else [None] * len(keys)
            arrays[f"l{lane}"] = pa.array(values, pa.int64())
        return pa.RecordBatch.from_pydict(arrays)

    @property
    def _key_type(self) -> pa.DataType:
        return pa.string() if self.text_keys else pa.int64()

    def _code(self, key: Cell, time: int | None) -> int:
        return well_mixed(time or 0) if key is None else self.coder(key)

    def _schema(self, names: list[str], references: tuple[str, ...]) -> bytes:
        fields = [pa.field(n, self._key_type if n == "k" else pa.int64()) for n in (*names, *references)]
        serialised: bytes = pa.schema([*fields, pa.field(REPORT, pa.string())]).serialize().to_pybytes()
        return serialised


def _signed(codes: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(codes, np.uint64).view(np.int64)
