"""The files of a run, in the order in which they are to be read.

The last file ends with the closing events, which close all windows (`rows.closing`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.errors import FlowError
from tidegate_lab.workloads.nexmark.events import CLOSING_MS, MARGIN_MS, START_MS, Events
from tidegate_lab.workloads.nexmark.rows import closing, table

#: Row groups of a file: engines that read a file with several tasks cut it between them.
ROW_GROUPS = 4


def write(events: Events, folder: Path, files: int) -> Iterator[Path]:
    """Write so many files, the last one with the closing events; each is yielded when it is there."""
    seconds = files * events.per_file / events.per_second
    if START_MS + seconds * 1000 > CLOSING_MS - MARGIN_MS:
        raise FlowError(
            "The events last until after the closing events",
            code="LAB_WORKLOAD_INVALID",
            got=f"{seconds:,.0f} s of event time",
            do=f"Give fewer, or more a second: {(CLOSING_MS - MARGIN_MS - START_MS) // 1000:,} s at most",
        )
    folder.mkdir(parents=True, exist_ok=True)
    for file in range(files):
        rows = table(events, file)
        if file == files - 1:
            rows = pa.concat_tables([rows, closing()])
        yield write_file(rows, folder, file)


def write_file(rows: pa.Table, folder: Path, file: int) -> Path:
    """File sources order files by the time of their last change, which has gaps of its own; so it is set."""
    path = folder / file_name(file)
    pq.write_table(rows, path, compression="snappy", row_group_size=-(-len(rows) // ROW_GROUPS))
    os.utime(path, (START_MS // 1000 + file, START_MS // 1000 + file))
    return path


def file_name(file: int) -> str:
    return f"{file:06d}.parquet"
