"""CSV with a header: one row on each line, so a quoted field must not contain a newline.

This is intentional: where rows may span lines, one stray quote would swallow the rest of the input.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from tidegate.edge.coordinates import of_column, of_text
from tidegate.edge.lines import Lines
from tidegate.errors import FlowError
from tidegate.sift.queries.axes import Axis

QUOTE = ord('"')
#: Texts that mean a missing value, in every column.
NULLS = ("", "null", "NULL", "NaN", "nan")


class CsvLines:
    """Reads rows; a mark goes behind the last field."""

    name = "csv"
    before_brace = False

    def __init__(self, header: bytes) -> None:
        try:
            self.header: list[str] = next(csv.reader([header.decode("utf-8-sig")], strict=True))
        except (UnicodeDecodeError, csv.Error) as error:
            raise _no_header(header) from error
        if not self.header:
            raise _no_header(header)

    def head_mark(self, column: str) -> bytes:
        text = io.StringIO()
        csv.writer(text, lineterminator="").writerow([column])
        return f",{text.getvalue()}".encode()

    def mark(self, column: str, value: bool) -> bytes:
        return b",true" if value else b",false"

    def columns(self, axes: Sequence[Axis], lines: Lines) -> list[NDArray[np.float64]] | None:
        """Coordinates of all rows by Arrow; None if Arrow fails, or if lines and rows may not coincide."""
        if not _quotes_closed(lines):
            return None
        data = lines.bytes()
        wanted = {
            axis.column: pa.string() if axis.kind == "category" else pa.float64()
            for axis in axes
            if axis.column in self.header
        }
        if not wanted:
            return [np.full(len(lines), np.nan) for _ in axes]
        try:
            table = pa.csv.read_csv(
                pa.BufferReader(data),
                read_options=pa.csv.ReadOptions(
                    use_threads=False, block_size=len(data) + 1, column_names=self.header
                ),
                convert_options=pa.csv.ConvertOptions(
                    include_columns=list(wanted),
                    column_types=wanted,
                    null_values=list(NULLS),
                    strings_can_be_null=True,
                ),
            )
            if table.num_rows != len(lines):
                return None
            return [
                of_column(axis, table.column(axis.column))
                if axis.column in wanted
                else np.full(len(lines), np.nan)
                for axis in axes
            ]
        except pa.ArrowInvalid:
            return None

    def row(self, axes: Sequence[Axis], line: bytes) -> list[float]:
        """Coordinates of one row; ValueError with the reason if it is invalid."""
        try:
            fields = next(csv.reader([line.decode()], strict=True))
        except csv.Error as error:
            raise ValueError(f"invalid CSV: {error}") from None
        if len(fields) != len(self.header):
            raise ValueError(f"{len(fields)} fields where the header has {len(self.header)}")
        row = dict(zip(self.header, fields, strict=True))
        return [
            np.nan if row.get(axis.column, "") in NULLS else of_text(axis, row[axis.column]) for axis in axes
        ]

    def missing(self, axes: Sequence[Axis], lines: Lines) -> tuple[list[str], list[str]]:
        """The columns that the header lacks, and the columns that it has."""
        return [axis.column for axis in axes if axis.column not in self.header], self.header


def _quotes_closed(lines: Lines) -> bool:
    """True if every line has an even number of quotes; otherwise Arrow would continue on the next line."""
    if not len(lines):
        return True
    quotes = lines.data[lines.starts[0] : lines.stops[-1]] == QUOTE
    if not quotes.any():
        return True
    counts = np.add.reduceat(quotes, lines.starts - lines.starts[0], dtype=np.int64)
    return not (counts & 1).any()


def _no_header(line: bytes) -> FlowError:
    return FlowError(
        "The first line is not a CSV header",
        code="SIFT_CSV_HEADER_INVALID",
        got=repr(line[:80]),
        do="Write the column names on the first line, or pass the right --format",
    )
