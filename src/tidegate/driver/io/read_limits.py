"""How much sources give to the next batch: told to Spark between two batches of a running query.

Spark asks a source for its limit (`maxFilesPerTrigger`, `maxOffsetsPerTrigger`) once, when a query starts,
and keeps the answers in a table from which every batch is cut. That table is written here: no restart, no
second pass, and a replay takes what Spark's offset log says, whatever the limit is by then. It costs a few
calls into Java a batch.

    files           whole files; the source also says how many are left
    Kafka           rows; what is left is the newest offsets less those that a batch ends with
    Python sources  rows, where they have a limit of rows themselves (`getDefaultReadLimit`): others might not
                    know what it means

Other sources (rate, sockets, memory) give what they have. A number of files or rows that the user allows is
never exceeded, and who limits files by bytes is left alone. The first batch of a run is held up until Spark
has been told: what the last run decided for it, or, before anything is known of a stream, what fits into
memory in any case.

The table and the file source are Spark's own affairs, and may look different in another version: where
something is not found, sources are left as they are.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any

from py4j.clientserver import ClientServer
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from tidegate.control.goal.backpressure import TakenRows
from tidegate.driver.java_collections import java_items

#: Before anything is known: bytes of files, and rows, of a batch.
_FIRST_BYTES, _FIRST_ROWS = 64 * 2**20, 200_000
#: Limits that differ by no more than this part are the same: in calm, what fits changes a little every batch.
_NEARLY = 0.1
#: Spark forgets which files it kept back where they are less than this part of the limit
#: (`discardCachedInputRatio`), and looks for them anew.
_LISTED = 0.2
#: How long Spark may take to set up the sources of a query, and how often it is asked.
_SETUP_SECONDS, _ASK_SECONDS = 60.0, 0.001


class ReadLimits:
    """Of one streaming query, which must have been started."""

    def __init__(
        self, query: Any, spark: SparkSession, streams: Sequence[str], known: Mapping[str, int] | None = None
    ) -> None:
        """`streams`: by leaf of the query's input, the stream that it belongs to; `known`: as for `set`."""
        self._sources: dict[str, _Source] = {}
        jvm: Any = spark._jvm
        with suppress(Py4JError):
            self._execution = query.streamingQuery()
            self._limits = jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit
            with self._before_the_first_batch(spark):
                self._sources = self._found(streams)
                self._write({source: source.first(self._limits) for source in self._sources.values()})
                self.set(known or {})

    def taken(self, stream: str, rows: int, newest_us: int | None) -> TakenRows:
        """What a stream gave to the batch that has just run."""
        source = self._sources.get(stream)
        if source is None:
            return TakenRows(rows, newest_us)
        try:
            units, waiting = source.gave(rows)
        except Py4JError:
            return self._left_alone(stream, rows, newest_us)
        return TakenRows(rows, newest_us, units, waiting, source.limit, source.most)

    def _left_alone(self, stream: str, rows: int, newest_us: int | None) -> TakenRows:
        """Nobody knows what this source gives: it goes on as the user wants it."""
        source = self._sources.pop(stream)
        with suppress(Py4JError):
            self._write({source: source.given})
        return TakenRows(rows, newest_us)

    def set(self, limits: Mapping[str, int]) -> None:
        """What the next batch may take, by stream."""
        changed = []
        for stream, units in limits.items():
            source = self._sources.get(stream)
            if source is not None and source.takes(units):
                changed.append(source)
        # The batch is done already: whatever Spark says to it, it must not fail now.
        with suppress(Py4JError):
            self._write({source: source.limited(self._limits) for source in changed})

    @contextmanager
    def _before_the_first_batch(self, spark: SparkSession) -> Iterator[None]:
        """Spark sets up its sources meanwhile, but cuts no batch."""
        # A lock is given back by who took it: calls of one thread here must be calls of one thread there.
        pinned = isinstance(spark.sparkContext._gateway, ClientServer)
        lock = self._execution.awaitProgressLock() if pinned else None
        if lock is not None:
            lock.lock()
        try:
            yield
        finally:
            if lock is not None:
                lock.unlock()

    def _write(self, limits: Mapping[_Source, Any]) -> None:
        """Into Spark's table of all sources, once for all of them: every call into Java costs time."""
        known = {source.java: limit for source, limit in limits.items() if limit is not None}
        if known:
            table = self._execution.uniqueSources()
            for java, limit in known.items():
                table = table.updated(java, limit)
            getattr(self._execution, "uniqueSources_$eq")(table)

    def _found(self, streams: Sequence[str]) -> dict[str, _Source]:
        """By stream: its source, where it is one that can be limited and no other stream reads it."""
        given_up = time.monotonic() + _SETUP_SECONDS
        while not self._execution.uniqueSources().size():
            if time.monotonic() > given_up or not self._execution.isActive():
                return {}
            time.sleep(_ASK_SECONDS)
        leaves = java_items(self._execution.sources())
        if len(leaves) < len(streams):
            return {}
        found: dict[str, _Source] = {}
        for pair in java_items(self._execution.uniqueSources()):
            java, both = pair._1(), zip(streams, leaves, strict=False)
            readers = {stream for stream, leaf in both if leaf.equals(java)}
            source = _source(java, pair._2(), self._execution)
            if source is not None and len(readers) == 1 and not readers & found.keys():
                found[readers.pop()] = source
        return found


@dataclass(eq=False)
class _Source:
    """A source that can be limited."""

    java: Any
    #: What the user allows; None: all there is.
    most: int | None
    #: The limit that Spark was told first, and the last one of ours.
    given: Any
    #: The streaming query, where the source alone does not know what a batch takes.
    execution: Any = None
    limit: int | None = None

    def first(self, limits: Any) -> Any:
        """The limit before anything is known; None: that of the user."""
        if self.most is not None:
            return None
        self.limit = _FIRST_ROWS
        return self.limited(limits)

    def takes(self, units: int) -> bool:
        """Take this limit, unless it is nearly the one in force; whether it was taken."""
        units = units if self.most is None else min(units, self.most)
        if self.limit is not None and abs(units - self.limit) <= _NEARLY * self.limit:
            return False
        self.limit = units
        return True

    def limited(self, limits: Any) -> Any:
        return limits.maxRows(self.limit)

    def gave(self, rows: int) -> tuple[int, int | None]:
        """Units that a batch of so many rows took, and those that wait; None: it does not say."""
        return rows, None


class _Files(_Source):
    """Files: their source has a log of those that it gave, and a list of those that it kept back."""

    _logged = -1

    def first(self, limits: Any) -> Any:
        return limits.maxBytes(_FIRST_BYTES) if self.most is None else None

    def limited(self, limits: Any) -> Any:
        return limits.maxFiles(self.limit)

    def gave(self, rows: int) -> tuple[int, int | None]:
        at, kept_back = self._entry.get(self.java), self._unread.get(self.java)
        taken = self._files(at) if at != self._logged else 0
        self._logged = at
        if kept_back is not None:
            # It would not look for new files before these are read, and nobody would know that more came.
            self._unread.set(self.java, None)
        return taken, self.unlisted(taken) if kept_back is None else kept_back.size()

    def _files(self, at: int) -> int:
        """Files of one entry of the log, which is the last one."""
        if (at + 1) % self._compacted:
            files = self._log.get(at)
            return len(files.get()) if files.isDefined() else 0
        # Every so many entries one lists all files so far; a range of entries leaves out those of others.
        last = self._log.getLatestBatchId()
        return sum(len(entry._2()) for entry in self._log.get(last, last))

    def unlisted(self, taken: int) -> int:
        """Files that wait, where none are listed: half of those that may, if all were taken that might be."""
        limit = self.most if self.limit is None else self.limit
        if limit is None or taken < limit:
            return 0
        return ceil(_LISTED * limit) // 2

    # Looked up once: every call into Java costs time, and there is a batch a second.
    @cached_property
    def _entry(self) -> Any:
        return self._field("metadataLogCurrentOffset")

    @cached_property
    def _unread(self) -> Any:
        return self._field("unreadFiles")

    @cached_property
    def _log(self) -> Any:
        return self._field("metadataLog").get(self.java)

    @cached_property
    def _compacted(self) -> int:
        return int(self._log.compactInterval())

    def _field(self, name: str) -> Any:
        found = self.java.getClass().getDeclaredField(name)
        found.setAccessible(True)
        return found


class _Kafka(_Source):
    """Topics: rows are counted by offsets."""

    def gave(self, rows: int) -> tuple[int, int | None]:
        newest, ends = self.java.reportLatestOffset(), self.execution.availableOffsets().get(self.java)
        if newest is None or not ends.isDefined():
            return rows, None
        return rows, max(0, _offsets(newest) - _offsets(ends.get()))


def _offsets(kafka: Any) -> int:
    """All offsets of all partitions of all topics, added up."""
    topics: dict[str, dict[str, int]] = json.loads(kafka.json())
    return sum(sum(partitions.values()) for partitions in topics.values())


class _Python(_Source):
    """A source in Python: its limits travel as JSON."""

    def limited(self, limits: Any) -> Any:
        del limits
        return self.given.copy(json.dumps({"_type": "ReadMaxRows", "max_rows": self.limit}))


def _source(java: Any, limit: Any, execution: Any) -> _Source | None:
    kind, said = java.getClass().getSimpleName(), limit.getClass().getSimpleName()
    if kind == "FileStreamSource" and said in ("ReadAllAvailable", "ReadMaxFiles"):
        return _Files(java, limit.maxFiles() if said == "ReadMaxFiles" else None, limit)
    if kind == "KafkaMicroBatchStream" and said in ("ReadAllAvailable", "ReadMaxRows"):
        return _Kafka(java, limit.maxRows() if said == "ReadMaxRows" else None, limit, execution)
    if kind == "PythonMicroBatchStreamWithAdmissionControl":
        given = json.loads(limit.json())
        return _Python(java, given["max_rows"], limit) if given["_type"] == "ReadMaxRows" else None
    return None
