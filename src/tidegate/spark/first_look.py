"""Counts the keys of a query's first rows before any of them is stored (`control/first_look.py` says why).

One small job without a shuffle: each task tells how many rows of each port every partition gets, and which
keys are heavy. The batch is kept for the pass that follows, so that sources are read once and what Spark
observes of them is counted once. Only in a query that goes on, and only until there were rows: where there
is one batch, reading it twice costs more than it can save.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import StorageLevel
from pyspark.sql import DataFrame

from tidegate.control import balancing
from tidegate.control.balancing import BalanceSettings
from tidegate.control.first_look import SideSeen, heavy_keys, rows_of_others
from tidegate.route.hash import partition_of
from tidegate.spark.compiled import Compiled
from tidegate.spark.layout import CODE, REPORT, TAG, TIME
from tidegate.values import BEGINNING_US, Manifest

#: Of a task's rows, so many are enough to know its keys by: a backlog of days must fit into its memory.
ROWS_MAX = 4_000_000
#: The time that rows cover, without the few whose clocks are wrong: the middle part of them, in per cent.
_MIDDLE = (5.0, 95.0)


class FirstLook:
    """At the first batch that has rows, for the joins that sources feed on both sides."""

    def __init__(self, compiled: Compiled, settings: BalanceSettings):
        self._settings = settings
        #: By join: the tags of its two ports.
        self._ports = {
            join.layout.operator: tuple(side.port.tag for side in join.inputs)
            for join in compiled.joins
            if compiled.streaming and all(side.from_source for side in join.inputs)
        }
        self._kept: DataFrame | None = None

    def at(self, given: DataFrame, manifest: Manifest) -> dict[str, tuple[SideSeen, SideSeen]]:
        """What the batch has for joins that hold nothing yet and could place its rows better."""
        ports = {
            name: self._ports[name]
            for name in balancing.looks_first(self._settings, manifest)
            if name in self._ports
        }
        tags = {tag for both in ports.values() for tag in both}
        if not tags:
            return {}
        self._kept = given.persist(StorageLevel.MEMORY_AND_DISK)
        counting = _Counting(frozenset(tags), self._settings.partitions)
        told = given.select(TAG, TIME, CODE).mapInArrow(counting, f"{REPORT} string").collect()
        seen = _added_up([json.loads(row[REPORT]) for row in told], tags, self._settings.partitions)
        if any(side.partitions.any() for side in seen.values()):
            self._ports = {}
        sides = {name: (seen[left], seen[right]) for name, (left, right) in ports.items()}
        return {name: both for name, both in sides.items() if any(side.partitions.any() for side in both)}

    def release(self) -> None:
        """The batch is over."""
        if self._kept is not None:
            self._kept.unpersist()
            self._kept = None


class _Counting:
    """Runs in the tasks: one report of the rows of each port."""

    def __init__(self, tags: frozenset[int], partitions: int):
        self._tags, self._partitions = tags, partitions

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        taken, rows = [], 0
        # All are read, so that Spark keeps all.
        for batch in batches:
            if batch.num_rows and rows < ROWS_MAX:
                taken.append([np.asarray(batch.column(i)) for i in range(3)])
                rows += batch.num_rows
        told = {}
        if taken:
            tag, time_us, code = (np.concatenate(parts) for parts in zip(*taken, strict=True))
            told = {
                one: _counted(code[mine].view(np.uint64), time_us[mine], self._partitions)
                for one in self._tags
                if (mine := np.flatnonzero((tag == one) & (time_us != BEGINNING_US))).size
            }
        yield pa.RecordBatch.from_pydict({REPORT: [json.dumps(told)]})


def _counted(codes: NDArray[np.uint64], times_us: NDArray[np.int64], partitions: int) -> dict[str, Any]:
    """The rows of one port that a task has."""
    keys, rows = np.unique(codes, return_counts=True)
    heavy = heavy_keys(rows)
    return {
        "partitions": np.bincount(partition_of(keys, partitions), rows, partitions).astype(int).tolist(),
        "keys": dict(zip(keys[heavy].tolist(), rows[heavy].tolist(), strict=True)),
        "usual": rows_of_others(rows, heavy),
        "span_us": np.percentile(times_us, _MIDDLE, method="nearest").tolist(),
    }


def _added_up(
    told: Sequence[Mapping[str, Mapping[str, Any]]], tags: set[int], partitions: int
) -> dict[int, SideSeen]:
    """Over all tasks."""
    seen = {}
    for tag in tags:
        mine = [one[str(tag)] for one in told if str(tag) in one]
        rows = np.zeros(partitions, np.int64)
        keys: dict[int, int] = {}
        for one in mine:
            rows += np.array(one["partitions"], np.int64)
            for code, count in one["keys"].items():
                keys[int(code)] = keys.get(int(code), 0) + count
        spans = [one["span_us"] for one in mine]
        span = (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None
        seen[tag] = SideSeen(rows, keys, span, sum(one["usual"] for one in mine))
    return seen
