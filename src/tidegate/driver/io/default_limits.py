"""Default limits of sources without a goal: sets what the next batch takes in a running Spark query.

    files   whole files of so many bytes
    Kafka   so many rows

A source for which the user gave a limit keeps that limit, and so does one that declares its own (sources in
Python, tables). Other sources (rate, sockets, memory) cannot be limited: their batch holds what arrived since
the last one. All limited sources share one factor (`control/batch_size.py`). Spark's table of limits is
written as in `read_limits.py`, also where Spark has fixed the end of the input first (`available_now`).

If something of Spark is not found, sources are left unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from tidegate.driver.io.file_log import FILE_SOURCE, leaf_sources
from tidegate.driver.io.read_limits import sources_set_up, write_limits
from tidegate.driver.java_collections import java_items

#: What the first batch of a new query takes of a source: bytes of files, and rows.
FIRST_BYTES, FIRST_ROWS = 64 * 2**20, 500_000
_KAFKA = "KafkaMicroBatchStream"
#: Factors that differ by less than this share are not written: under steady load they vary a little.
_NEARLY = 0.1


@dataclass(frozen=True, eq=False)
class _Limited:
    """A source that gets a default limit."""

    java: Any
    in_bytes: bool
    #: The places of its leaves in the input of the query, and their streams.
    leaves: tuple[tuple[int, str], ...]

    def limit(self, limits: Any, factor: float) -> Any:
        if self.in_bytes:
            return limits.maxBytes(max(1, round(factor * FIRST_BYTES)))
        return limits.maxRows(max(1, round(factor * FIRST_ROWS)))


class DefaultLimits:
    """The default limits of one started streaming query; made inside `before_the_first_batch`."""

    def __init__(self, query: Any, spark: SparkSession, streams: Sequence[str]) -> None:
        """`streams`: the stream of each leaf of the query's input. Nothing is limited before `begin`."""
        self._sources: list[_Limited] = []
        self._factor = 1.0
        jvm: Any = spark._jvm
        with suppress(Py4JError):
            self._execution = query.streamingQuery()
            self._limits = jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit
            self._sources = self._found(streams)

    def begin(self, factor: float) -> None:
        """Limit all sources; `factor`: of the next batch."""
        self._factor = factor
        with suppress(Py4JError):
            self._write()

    def withdraw(self) -> None:
        """Leave all sources as Spark found them: without a limit."""
        with suppress(Py4JError):
            write_limits(self._execution, {one.java: self._limits.allAvailable() for one in self._sources})

    def set(self, factor: float) -> None:
        """Set what the next batch may take."""
        if abs(factor - self._factor) <= _NEARLY * self._factor:
            return
        self._factor = factor
        # The batch is already committed, so an error of Spark must not fail it.
        with suppress(Py4JError):
            self._write()

    def taken(self, rows: Mapping[str, int]) -> float:
        """The part of its limits that the batch took, a mean over the limited sources; `rows`: by stream."""
        if not self._sources or not any(rows.values()):
            return 0.0
        try:
            in_bytes = self._bytes() if any(one.in_bytes for one in self._sources) else {}
        except Py4JError:
            return 0.0
        parts = [
            sum(in_bytes.get(place, 0) for place, _ in one.leaves) / FIRST_BYTES
            if one.in_bytes
            else sum(rows.get(stream, 0) for stream in {stream for _, stream in one.leaves}) / FIRST_ROWS
            for one in self._sources
        ]
        return sum(parts) / len(parts) / self._factor

    def _write(self) -> None:
        limits = {one.java: one.limit(self._limits, self._factor) for one in self._sources}
        if limits:
            write_limits(self._execution, limits)

    def _bytes(self) -> dict[int, int]:
        """By place of a leaf: the bytes of the files that it gave to the batch."""
        leaves = java_items(self._execution.lastExecution().analyzed().collectLeaves())
        streaming = [leaf for leaf in leaves if leaf.isStreaming()]
        return {
            place: int(leaf.relation().location().sizeInBytes())
            for place, leaf in enumerate(streaming)
            if leaf.getClass().getSimpleName() == "LogicalRelation"
        }

    def _found(self, streams: Sequence[str]) -> list[_Limited]:
        if not sources_set_up(self._execution):
            return []
        places = list(zip(range(len(streams)), streams, leaf_sources(self._execution), strict=False))
        found = []
        for pair in java_items(self._execution.uniqueSources()):
            java, given = pair._1(), pair._2().getClass().getSimpleName()
            kind = java.getClass().getSimpleName()
            leaves = tuple((place, stream) for place, stream, leaf in places if leaf.equals(java))
            if leaves and given == "ReadAllAvailable" and kind in (FILE_SOURCE, _KAFKA):
                found.append(_Limited(java, kind == FILE_SOURCE, leaves))
        return found
