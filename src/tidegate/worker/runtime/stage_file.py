"""What leaves a task: results as one staged Parquet file (for `driver/io/staging.py`), and the report."""

from __future__ import annotations

import os
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.model.json_values import Json
from tidegate.model.reports import MatchReport, TaskReport, report_text
from tidegate.worker.runtime.layout import REPORT

#: Size limit of a dictionary, above which plain values are written; 100,000 names take 1 to 2 MB.
DICTIONARY_BYTES = 64 << 20


@dataclass(frozen=True)
class Kept:
    """How staged files that stay as an output are written: their compression, and the columns in order."""

    compression: str
    columns: tuple[str, ...]


class StageWriter:
    """One task's results; a task without results writes no file.

    `kept_as`: the file stays as an output. Other files are read once and deleted, so compression and
    statistics would be wasted on them.
    """

    def __init__(self, path: str, kept_as: Kept | None = None):
        self._path, self._kept_as = path, kept_as
        self._writer: pq.ParquetWriter | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Append result rows without their report column."""
        rows = batch.drop_columns([REPORT]) if REPORT in batch.schema.names else batch
        if self._kept_as is not None:
            rows = rows.select(list(self._kept_as.columns))
        if self._writer is None:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            self._writer = pq.ParquetWriter(self._path, rows.schema, **_encoding(rows.schema, self._kept_as))
        self._writer.write_batch(rows)

    def close(self) -> bool:
        """Close the file; returns whether anything was written."""
        if self._writer is None:
            return False
        self._writer.close()
        return True


def report_batch(report: TaskReport | MatchReport, schema: pa.Schema | None) -> pa.RecordBatch:
    """The row that carries the report of a task; `schema`: of the results that return with it, if any do."""
    text = pa.array([report_text(report)])
    if schema is None:
        return pa.RecordBatch.from_arrays([text], names=[REPORT])
    nulls = [pa.nulls(1, field.type) for field in schema if field.name != REPORT]
    return pa.RecordBatch.from_arrays([*nulls, text], schema=schema)


def _encoding(schema: pa.Schema, kept_as: Kept | None) -> Json:
    numbered = [path for field in schema if (path := _numbered(field)) is not None]
    # Without Arrow's schema readers see strings, even if the column was dictionary-encoded.
    always = {"store_schema": False, "dictionary_pagesize_limit": DICTIONARY_BYTES}
    if kept_as is None:
        cheap = {"compression": "none", "use_dictionary": numbered or False, "write_statistics": False}
        return always | cheap
    kinds = {field.name: field.type for field in schema}
    texts = [name for name, kind in kinds.items() if kind in (pa.string(), pa.large_string(), pa.binary())]
    whole = [n for n, kind in kinds.items() if pa.types.is_integer(kind) or pa.types.is_temporal(kind)]
    # Numbers in joined rows rarely repeat: a dictionary takes four times as long to write as packed
    # differences, which are also a third smaller, and which Spark reads.
    return {
        **always,
        "compression": kept_as.compression,
        "use_dictionary": texts + numbered,
        "column_encoding": dict.fromkeys(whole, "DELTA_BINARY_PACKED"),
    }


def _numbered(field: pa.Field) -> str | None:
    """The path of a dictionary-encoded column, plain or in lists."""
    if pa.types.is_dictionary(field.type):
        return str(field.name)
    in_lists = pa.types.is_list(field.type) and pa.types.is_dictionary(field.type.value_type)
    return f"{field.name}.list.element" if in_lists else None
