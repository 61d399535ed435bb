"""Counts the keys of the first batch, in the tasks (the initial skew scan)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.model.times import BEGINNING_US
from tidegate.route.key_counts import SideCount
from tidegate.worker.runtime.layout import REPORT

#: Rows per chunk. Chunks bound the memory of a task, even with a backlog of days.
CHUNK_ROWS = 250_000


class KeyScan:
    """Runs in the tasks: one report of the rows of each port."""

    def __init__(self, tags: frozenset[int], partitions: int):
        self._tags, self._partitions = tags, partitions

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        counts = {tag: SideCount(self._partitions) for tag in self._tags}
        for tag, time_us, code in _chunks(batches):
            for one, count in counts.items():
                mine = np.flatnonzero((tag == one) & (time_us != BEGINNING_US))
                count.add(code[mine].view(np.uint64), time_us[mine])
        counted = {tag: count.to_json() for tag, count in counts.items() if count.rows}
        yield pa.RecordBatch.from_pydict({REPORT: [json.dumps(counted)]})


def _chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[list[NDArray[np.int64]]]:
    """Tags, times and codes of a task's rows, in bounded chunks."""
    taken: list[list[NDArray[np.int64]]] = []
    for batch in batches:
        taken.append([np.asarray(batch.column(i)) for i in range(3)])
        if sum(len(tags) for tags, _, _ in taken) >= CHUNK_ROWS:
            yield [np.concatenate(parts) for parts in zip(*taken, strict=True)]
            taken = []
    if taken:
        yield [np.concatenate(parts) for parts in zip(*taken, strict=True)]
