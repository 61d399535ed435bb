"""The Arrow half of staging (see staging.py): one Parquet file of results per task."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.spark.layout import REPORT


class StageWriter:
    """One task's results; a task without results writes no file."""

    def __init__(self, path: str):
        self._path = path
        self._writer: pq.ParquetWriter | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Append result rows; the column of reports is left out."""
        rows = batch.drop_columns([REPORT])
        if self._writer is None:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            # Read once and deleted: whatever makes a file small or searchable would be wasted.
            self._writer = pq.ParquetWriter(
                self._path, rows.schema, compression="none", use_dictionary=False, write_statistics=False
            )
        self._writer.write_batch(rows)

    def close(self) -> bool:
        """Was anything written?"""
        if self._writer is None:
            return False
        self._writer.close()
        return True
