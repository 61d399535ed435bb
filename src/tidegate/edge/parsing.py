"""Lines to coordinates: by Arrow as long as all is well, and around a bad line by halves and one by one.

A bad line makes Arrow refuse the whole piece. The piece is halved until the bad lines stand in small parts,
which are read line by line, so that a few bad lines cost little and each one gets its reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tidegate.edge.lines import Lines
from tidegate.sift.axes import Axis

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Reading so many lines one by one takes about as long as asking Arrow once more.
FEW_LINES = 64


class LineFormat(Protocol):
    """What a format of lines must know."""

    name: str
    before_brace: bool

    def mark(self, column: str, value: bool) -> bytes: ...
    def columns(self, axes: Sequence[Axis], lines: Lines) -> list[NDArray[np.float64]] | None: ...
    def row(self, axes: Sequence[Axis], line: bytes) -> list[float]: ...
    def missing(self, axes: Sequence[Axis], lines: Lines) -> tuple[list[str], list[str]]: ...


@dataclass
class Parsed:
    """Coordinates, one array per axis, of the lines that are rows; for bad lines the reason, by number."""

    columns: list[NDArray[np.float64]]
    is_row: NDArray[np.bool_]
    bad: dict[int, str] = field(default_factory=dict)

    def rows(self) -> list[NDArray[np.float64]]:
        if self.is_row.all():
            return self.columns
        return [column[self.is_row] for column in self.columns]


def parse(form: LineFormat, axes: Sequence[Axis], lines: Lines) -> Parsed:
    """Every line is a row, blank (then it is nothing), or bad."""
    found = form.columns(axes, lines)
    if found is not None:
        return Parsed(found, np.ones(len(lines), np.bool_))
    parsed = Parsed([np.full(len(lines), np.nan) for _ in axes], np.zeros(len(lines), np.bool_))
    waiting = [(0, len(lines))]
    while waiting:
        low, high = waiting.pop()
        if high - low <= FEW_LINES:
            for i in range(low, high):
                _read_one(form, axes, lines, i, parsed)
            continue
        middle = (low + high) // 2
        for part in ((low, middle), (middle, high)):
            found = form.columns(axes, lines[slice(*part)])
            if found is None:
                waiting.append(part)
                continue
            parsed.is_row[slice(*part)] = True
            for column, values in zip(parsed.columns, found, strict=True):
                column[slice(*part)] = values
    return parsed


def _read_one(form: LineFormat, axes: Sequence[Axis], lines: Lines, i: int, parsed: Parsed) -> None:
    line = lines.line(i)
    if not line.strip():
        return
    try:
        values = form.row(axes, line)
    except ValueError as error:
        parsed.bad[i] = str(error)
        return
    parsed.is_row[i] = True
    for column, value in zip(parsed.columns, values, strict=True):
        column[i] = value
