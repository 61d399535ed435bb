"""The Arrow half of staging (see staging.py): one Parquet file of results per task."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.spark.layout import REPORT


class StageWriter:
    """One task's results; a task without results writes no file.

    `kept_as`: the compression of a file that stays as an output. Any other is read once and deleted:
    whatever makes a file small or searchable would be wasted on it.
    """

    def __init__(self, path: str, kept_as: str | None = None):
        self._path, self._kept_as = path, kept_as
        self._writer: pq.ParquetWriter | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Append result rows; the column of reports is left out."""
        rows = batch.drop_columns([REPORT])
        if self._writer is None:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            kept = self._kept_as is not None
            self._writer = pq.ParquetWriter(
                self._path,
                rows.schema,
                compression=self._kept_as or "none",
                use_dictionary=kept,
                write_statistics=kept,
            )
        self._writer.write_batch(rows)

    def close(self) -> bool:
        """Was anything written?"""
        if self._writer is None:
            return False
        self._writer.close()
        return True
