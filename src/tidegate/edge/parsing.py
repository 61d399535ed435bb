"""Turns lines into coordinates: by Arrow where possible, and one by one around a bad line.

A bad line makes Arrow refuse the whole piece. The piece is then divided into a few parts, and only those
that Arrow refuses again are read line by line. A rare bad line costs little, many bad lines cost no more
than reading every line that way, and each one gets its reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tidegate.edge.lines import Lines
from tidegate.sift.queries.axes import Axis

#: With more parts fewer lines are read one by one, but Arrow is called more often.
PARTS = 16


class LineFormat(Protocol):
    """The protocol of line formats."""

    name: str
    before_brace: bool

    def mark(self, column: str, value: bool) -> bytes: ...
    def columns(self, axes: Sequence[Axis], lines: Lines) -> list[NDArray[np.float64]] | None: ...
    def row(self, axes: Sequence[Axis], line: bytes) -> list[float]: ...
    def missing(self, axes: Sequence[Axis], lines: Lines) -> tuple[list[str], list[str]]: ...


@dataclass
class Parsed:
    """Coordinates of the lines that are rows, one array per axis; the reason of each bad line, by number."""

    columns: list[NDArray[np.float64]]
    is_row: NDArray[np.bool_]
    bad: dict[int, str] = field(default_factory=dict)

    def rows(self) -> list[NDArray[np.float64]]:
        if self.is_row.all():
            return self.columns
        return [column[self.is_row] for column in self.columns]


def parse(form: LineFormat, axes: Sequence[Axis], lines: Lines) -> Parsed:
    """Parse lines: each is a row, blank (and ignored), or bad."""
    found = form.columns(axes, lines)
    if found is not None:
        return Parsed(found, np.ones(len(lines), np.bool_))
    parsed = Parsed([np.full(len(lines), np.nan) for _ in axes], np.zeros(len(lines), np.bool_))
    step = max(1, -(-len(lines) // PARTS))
    for low in range(0, len(lines), step):
        part = slice(low, low + step)
        found = form.columns(axes, lines[part])
        if found is None:
            _read_one_by_one(form, axes, lines, part, parsed)
            continue
        parsed.is_row[part] = True
        for column, values in zip(parsed.columns, found, strict=True):
            column[part] = values
    return parsed


def _read_one_by_one(
    form: LineFormat, axes: Sequence[Axis], lines: Lines, part: slice, parsed: Parsed
) -> None:
    numbers, rows = [], []
    for i, line in enumerate(lines[part].texts(), part.start):
        if not line or line.isspace():
            continue
        try:
            rows.append(form.row(axes, line))
            numbers.append(i)
        except ValueError as error:
            parsed.bad[i] = str(error)
    parsed.is_row[numbers] = True
    for column, values in zip(parsed.columns, zip(*rows, strict=True), strict=False):
        column[numbers] = values
