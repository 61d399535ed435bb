"""Backpressure on sources under a goal: sets the read limits of the next batch in a running Spark query.

Spark asks a source for its limit (`maxFilesPerTrigger`, `maxOffsetsPerTrigger`) once, when a query starts,
and keeps the answers in a table that it uses for every batch. This module writes that table between two
batches, for a few calls into Java, without a restart. A replay takes the rows of Spark's offset log, whatever
the limit.

    files           whole files; the source also reports how many are left
    Kafka           rows; those left are the newest offsets minus the end offsets of the batch
    Python sources  rows, if they declare a row limit themselves (`getDefaultReadLimit`)

Other sources (rate, sockets, memory) are not limited. A limit of the user in files or rows is never exceeded,
and sources with a limit in bytes are not changed. The first batch of a run waits until its limit is set: the
one that the last run decided, or, for a new stream, an amount that fits into memory.

Without a goal `default_limits.py` sets the limits. The table and the file source are internals of Spark and
may change between versions. If something is not found, sources are left unchanged.
"""

from __future__ import annotations

import json
import logging
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
from tidegate.driver.io.file_log import FILE_SOURCE, FileLog, leaf_sources
from tidegate.driver.java_collections import java_items

_log = logging.getLogger(__name__)
#: Limits of the first batch of a new stream: bytes of files, and rows. A cold process handles so many within
#: about a second; while batches are short, the next ones have up to four times as many.
_FIRST_BYTES, _FIRST_ROWS = 4 * 2**20, 20_000
#: Limits that differ by less than this share are not updated: under steady load they vary a little.
_NEARLY = 0.1
#: Spark discards its list of unread files if it is shorter than this share of the limit
#: (`discardCachedInputRatio`), and lists files again.
_LISTED = 0.2
#: How long Spark may take to set up the sources of a query, and the polling interval.
_SETUP_SECONDS, _ASK_SECONDS = 60.0, 0.001


@contextmanager
def before_the_first_batch(query: Any, spark: SparkSession) -> Iterator[None]:
    """Let Spark set up the sources of a query that has just been started, but plan no batch.

    Enter at once: Spark needs only a few milliseconds to its first batch once Java is warm.
    """
    # The thread that took the Java lock must release it, so calls here are pinned to one Java thread.
    lock = None
    if isinstance(spark.sparkContext._gateway, ClientServer):
        with suppress(Py4JError):
            lock = query.streamingQuery().awaitProgressLock()
            lock.lock()
    try:
        yield
    finally:
        if lock is not None:
            lock.unlock()


class ReadLimits:
    """The read limits of one started streaming query; made inside `before_the_first_batch`."""

    def __init__(self, query: Any, spark: SparkSession, streams: Sequence[str]) -> None:
        """`streams`: the stream of each leaf of the query's input. Nothing is limited before `begin`."""
        self._sources: dict[str, _Source] = {}
        self._begun = False
        jvm: Any = spark._jvm
        self._jvm = jvm
        with suppress(Py4JError):
            self._execution = query.streamingQuery()
            self._limits = jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit
            self._sources = self._found(streams)

    def begin(self, known: Mapping[str, int]) -> None:
        """Limit all sources; `known`: limits as for `set`."""
        self._begun = True
        with suppress(Py4JError):
            self._write({source: source.first(self._limits) for source in self._sources.values()})
            self.set(known)

    def withdraw(self) -> None:
        """Leave all sources as Spark found them."""
        self._begun = False
        for source in self._sources.values():
            source.limit = None
        with suppress(Py4JError):
            self._write({source: source.given for source in self._sources.values()})

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
        """The counts of a source that cannot be limited."""
        _log.debug("The source of stream %s does not say what waits, so it is not limited", stream)
        source = self._sources.pop(stream)
        with suppress(Py4JError):
            self._write({source: source.given} if self._begun else {})
        return TakenRows(rows, newest_us)

    def set(self, limits: Mapping[str, int]) -> None:
        """Set what the next batch may take, by stream."""
        changed = []
        for stream, units in limits.items():
            source = self._sources.get(stream)
            if source is not None and source.takes(units):
                changed.append(source)
        # The batch is already committed, so an error of Spark must not fail it.
        with suppress(Py4JError):
            self._write({source: source.limited(self._limits) for source in changed})

    def _write(self, limits: Mapping[_Source, Any]) -> None:
        """Write limits into Spark's table, all at once because every call into Java costs time."""
        known = {source.java: limit for source, limit in limits.items() if limit is not None}
        if known:
            write_limits(self._execution, known)

    def _found(self, streams: Sequence[str]) -> dict[str, _Source]:
        """The source of each stream, if it can be limited and no other stream reads it."""
        if not sources_set_up(self._execution):
            return {}
        leaves = leaf_sources(self._execution)
        if len(leaves) < len(streams):
            return {}
        found: dict[str, _Source] = {}
        for pair in java_items(self._execution.uniqueSources()):
            java, both = pair._1(), zip(streams, leaves, strict=False)
            readers = {stream for stream, leaf in both if leaf.equals(java)}
            source = _source(java, pair._2(), self._execution, self._jvm)
            if source is not None and len(readers) == 1 and not readers & found.keys():
                found[readers.pop()] = source
        return found


def sources_set_up(execution: Any) -> bool:
    """Wait until Spark has set up the sources of a Java streaming query; False if it does not."""
    given_up = time.monotonic() + _SETUP_SECONDS
    while not execution.uniqueSources().size():
        if time.monotonic() > given_up or not execution.isActive():
            return False
        time.sleep(_ASK_SECONDS)
    return True


def write_limits(execution: Any, limits: Mapping[Any, Any]) -> None:
    """Write the limits of some sources, as Java objects both, into Spark's table."""
    table = execution.uniqueSources()
    for java, limit in limits.items():
        table = table.updated(java, limit)
    getattr(execution, "uniqueSources_$eq")(table)


@dataclass(eq=False)
class _Source:
    """A source that can be limited."""

    java: Any
    #: The limit of the user; None: none.
    most: int | None
    #: The limit that Spark started with, and the last one that was set here.
    given: Any
    #: The streaming query, if the source alone cannot report what a batch took.
    execution: Any = None
    limit: int | None = None
    #: Spark's Java, for the log of a file source.
    jvm: Any = None

    def first(self, limits: Any) -> Any:
        """The limit of the first batch of a new stream; None: that of the user."""
        if self.most is not None:
            return None
        self.limit = _FIRST_ROWS
        return self.limited(limits)

    def takes(self, units: int) -> bool:
        """Set this limit unless it is close to the current one; returns whether it was set."""
        units = units if self.most is None else min(units, self.most)
        if self.limit is not None and abs(units - self.limit) <= _NEARLY * self.limit:
            return False
        self.limit = units
        return True

    def limited(self, limits: Any) -> Any:
        return limits.maxRows(self.limit)

    def gave(self, rows: int) -> tuple[int, int | None]:
        """Units that a batch of this many rows took, and those that wait; None if unknown."""
        return rows, None


class _Files(_Source):
    """Files: their source has a log of processed files and a list of unread ones."""

    _logged = -1

    def first(self, limits: Any) -> Any:
        return limits.maxBytes(_FIRST_BYTES) if self.most is None else None

    def limited(self, limits: Any) -> Any:
        return limits.maxFiles(self.limit)

    def gave(self, rows: int) -> tuple[int, int | None]:
        at, kept_back = self._log.last, self._unread.get(self.java)
        taken = self._log.count(at - 1, at) if at != self._logged else 0
        self._logged = at
        if kept_back is not None:
            # The source lists new files only after these are read, so their number would stay unknown.
            self._unread.set(self.java, None)
        return taken, self.unlisted(taken) if kept_back is None else kept_back.size()

    def unlisted(self, taken: int) -> int:
        """Waiting files if none are listed: after a full batch an estimate, half of the most there can be."""
        limit = self.most if self.limit is None else self.limit
        if limit is None or taken < limit:
            return 0
        return ceil(_LISTED * limit) // 2

    @cached_property
    def _log(self) -> FileLog:
        return FileLog(self.java, self.jvm)

    # Looked up once, because every call into Java costs time.
    @cached_property
    def _unread(self) -> Any:
        return self._log.field("unreadFiles")


class _Kafka(_Source):
    """Topics: rows are counted by offsets."""

    def gave(self, rows: int) -> tuple[int, int | None]:
        newest, ends = self.java.reportLatestOffset(), self.execution.availableOffsets().get(self.java)
        if newest is None or not ends.isDefined():
            return rows, None
        return rows, max(0, _offsets(newest) - _offsets(ends.get()))


def _offsets(kafka: Any) -> int:
    """The sum of all offsets."""
    topics: dict[str, dict[str, int]] = json.loads(kafka.json())
    return sum(sum(partitions.values()) for partitions in topics.values())


class _Python(_Source):
    """A source in Python: its limits are JSON."""

    def limited(self, limits: Any) -> Any:
        del limits
        return self.given.copy(json.dumps({"_type": "ReadMaxRows", "max_rows": self.limit}))


def _source(java: Any, limit: Any, execution: Any, jvm: Any) -> _Source | None:
    kind, said = java.getClass().getSimpleName(), limit.getClass().getSimpleName()
    if kind == FILE_SOURCE and said in ("ReadAllAvailable", "ReadMaxFiles"):
        return _Files(java, limit.maxFiles() if said == "ReadMaxFiles" else None, limit, jvm=jvm)
    if kind == "KafkaMicroBatchStream" and said in ("ReadAllAvailable", "ReadMaxRows"):
        return _Kafka(java, limit.maxRows() if said == "ReadMaxRows" else None, limit, execution)
    if kind == "PythonMicroBatchStreamWithAdmissionControl":
        given = json.loads(limit.json())
        return _Python(java, given["max_rows"], limit) if given["_type"] == "ReadMaxRows" else None
    return None
