"""The Arrow half of staging (see staging.py): one Parquet file of results per task."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.model.json_values import Json
from tidegate.worker.runtime.layout import REPORT

#: Longer dictionaries are given up, and every value written; a hundred thousand names take a megabyte or two.
DICTIONARY_BYTES = 64 << 20


class StageWriter:
    """One task's results; a task without results writes no file.

    `kept_as`: the compression of a file that stays as an output. Any other is read once and deleted:
    whatever makes a file small or searchable would be wasted on it.
    """

    def __init__(self, path: str, kept_as: str | None = None):
        self._path, self._kept_as = path, kept_as
        self._writer: pq.ParquetWriter | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Append result rows; a column of reports is left out."""
        rows = batch.drop_columns([REPORT]) if REPORT in batch.schema.names else batch
        if self._writer is None:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            self._writer = pq.ParquetWriter(self._path, rows.schema, **_encoding(rows.schema, self._kept_as))
        self._writer.write_batch(rows)

    def close(self) -> bool:
        """Was anything written?"""
        if self._writer is None:
            return False
        self._writer.close()
        return True


def _encoding(schema: pa.Schema, kept_as: str | None) -> Json:
    numbered = [path for field in schema if (path := _numbered(field)) is not None]
    # Without Arrow's schema readers see texts, whether or not they stood as numbers here.
    always = {"store_schema": False, "dictionary_pagesize_limit": DICTIONARY_BYTES}
    if kept_as is None:
        cheap = {"compression": "none", "use_dictionary": numbered or False, "write_statistics": False}
        return always | cheap
    kinds = {field.name: field.type for field in schema}
    texts = [name for name, kind in kinds.items() if kind in (pa.string(), pa.large_string(), pa.binary())]
    whole = [n for n, kind in kinds.items() if pa.types.is_integer(kind) or pa.types.is_temporal(kind)]
    # Of joined rows few numbers repeat: a dictionary of them takes four times as long to write as packed
    # differences, which are also a third smaller, and which Spark reads.
    return {
        **always,
        "compression": kept_as,
        "use_dictionary": texts + numbered,
        "column_encoding": dict.fromkeys(whole, "DELTA_BINARY_PACKED"),
    }


def _numbered(field: pa.Field) -> str | None:
    """The path of a column that stands as numbers beside a dictionary, by itself or in lists."""
    if pa.types.is_dictionary(field.type):
        return str(field.name)
    in_lists = pa.types.is_list(field.type) and pa.types.is_dictionary(field.type.value_type)
    return f"{field.name}.list.element" if in_lists else None
