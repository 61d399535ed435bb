"""Newline JSON: one object on each line."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.json
from numpy.typing import NDArray

from tidegate.edge.coordinates import is_boolean, of_column, of_value
from tidegate.edge.lines import Lines
from tidegate.sift.queries.axes import Axis

OPEN, CLOSE = ord("{"), ord("}")
#: Rows of the first piece that are checked before a column counts as missing.
SAMPLED_LINES = 1000


class JsonLines:
    """Reads rows; a mark goes before the last brace, as one more member."""

    name = "json"
    before_brace = True

    def mark(self, column: str, value: bool) -> bytes:
        return f",{json.dumps(column)}:{json.dumps(value)}".encode()

    def columns(self, axes: Sequence[Axis], lines: Lines) -> list[NDArray[np.float64]] | None:
        """Coordinates of all rows by Arrow; None if Arrow fails, or if lines and rows may not coincide."""
        # Require one object per line: not one over two lines and two on another.
        first, last = lines.data[lines.starts], lines.data[np.maximum(lines.ends, 1) - 1]
        if not ((first == OPEN) & (last == CLOSE)).all():
            return None
        data = lines.bytes()
        schema = pa.schema([(axis.column, _type(axis)) for axis in axes])
        try:
            table = pa.json.read_json(
                pa.BufferReader(data),
                read_options=pa.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
                parse_options=pa.json.ParseOptions(
                    explicit_schema=schema, unexpected_field_behavior="ignore"
                ),
            )
            if table.num_rows != len(lines):
                return None
            return [of_column(axis, table.column(axis.column)) for axis in axes]
        except pa.ArrowInvalid:
            return None

    def row(self, axes: Sequence[Axis], line: bytes) -> list[float]:
        """Coordinates of one row; ValueError with the reason if it is invalid."""
        try:
            found = json.loads(line)
        except (RecursionError, ValueError) as error:
            raise ValueError(f"invalid JSON: {error}") from None
        if not isinstance(found, dict):
            raise ValueError("JSON, but not an object")
        return [of_value(axis, found.get(axis.column)) for axis in axes]

    def missing(self, axes: Sequence[Axis], lines: Lines) -> tuple[list[str], list[str]]:
        """The columns that no row of the first piece has, and the columns that were found."""
        known: dict[str, None] = {}
        for i in range(min(len(lines), SAMPLED_LINES)):
            try:
                row = json.loads(lines.line(i))
            except (RecursionError, ValueError):
                continue
            known.update(dict.fromkeys(row if isinstance(row, dict) else ()))
        # A piece of bad lines only gives no information about columns.
        return [axis.column for axis in axes if known and axis.column not in known], list(known)


def _type(axis: Axis) -> pa.DataType:
    if axis.kind != "category":
        return pa.float64()
    return pa.bool_() if is_boolean(axis) else pa.string()
