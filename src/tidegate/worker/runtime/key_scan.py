"""Counts the keys of the first batch, in the tasks (the initial skew scan).

A task stops after `MOST_ROWS` rows, so that the scan of a backlog costs no more than that of a small batch.
What follows in a partition usually has later times, so counts and their time span shrink alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.model.times import BEGINNING_US
from tidegate.route.key_counts import SideCount
from tidegate.worker.runtime.layout import REPORT

#: The most rows that a task reads.
MOST_ROWS = 250_000


class KeyScan:
    """Runs in the tasks: one report of the rows of each port."""

    def __init__(self, tags: frozenset[int], partitions: int):
        self._tags, self._partitions = tags, partitions

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        counts = {tag: SideCount(self._partitions) for tag in self._tags}
        for tag, time_us, code in _first(batches):
            for one, count in counts.items():
                mine = np.flatnonzero((tag == one) & (time_us != BEGINNING_US))
                count.add(code[mine].view(np.uint64), time_us[mine])
        counted = {tag: count.to_json() for tag, count in counts.items() if count.rows}
        yield pa.RecordBatch.from_pydict({REPORT: [json.dumps(counted)]})


def _first(batches: Iterable[pa.RecordBatch]) -> Iterator[list[NDArray[np.int64]]]:
    """Tags, times and codes of the first rows of a task, together."""
    taken: list[list[NDArray[np.int64]]] = []
    rows = 0
    for batch in batches:
        taken.append([np.asarray(batch.column(i)) for i in range(3)])
        rows += batch.num_rows
        if rows >= MOST_ROWS:
            break
    if taken:
        yield [np.concatenate(parts) for parts in zip(*taken, strict=True)]
