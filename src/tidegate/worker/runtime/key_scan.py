"""Counts the keys of the first batch, in the tasks (the initial skew scan)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tidegate.model.times import BEGINNING_US
from tidegate.route.key_counts import SideCount
from tidegate.worker.runtime.layout import REPORT


class KeyScan:
    """Runs in the tasks: one report of the rows of each port."""

    def __init__(self, tags: frozenset[int], partitions: int):
        self._tags, self._partitions = tags, partitions

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        counts = {tag: SideCount(self._partitions) for tag in self._tags}
        # Together: the time that rows cover is that of the largest chunk.
        if received := list(batches):
            table = pa.Table.from_batches(received)
            tag, time_us, code = (table.column(i).to_numpy() for i in range(3))
            for one, count in counts.items():
                mine = np.flatnonzero((tag == one) & (time_us != BEGINNING_US))
                count.add(code[mine].view(np.uint64), time_us[mine])
        counted = {tag: count.to_json() for tag, count in counts.items() if count.rows}
        yield pa.RecordBatch.from_pydict({REPORT: [json.dumps(counted)]})
