"""When the rows of a batch became available, for the latency (`control/latency.py`).

    `available_at` of a stream   quantiles of the column, which Spark observes while the batch runs
    files                        their modification times in the log of Spark's source, weighted by bytes
    anything else                the start of the trigger

A stream whose column is null in every row of a batch falls back to its files or the trigger, as does one for
which Spark does not answer. Latency is telemetry: it never fails a batch.

Everything is read after the action of a batch, without a job. An observation is shared out evenly over the
rows of its stream, so it does not matter if Spark has read some rows twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JError

from tidegate.control.latency import Availability
from tidegate.driver.compile.compiled import Compiled
from tidegate.driver.frames import observed
from tidegate.driver.frames.stream_rows import StreamRows
from tidegate.driver.io.file_log import FileLog, LoggedFile, is_file_source, leaf_sources
from tidegate.driver.java_collections import java_items

#: A file in the text of Hadoop's list of files.
_LISTED = re.compile(r"path=(.*?); isDirectory=false; length=(\d+);")


class Availabilities:
    """Reads when the rows of the batches of one query became available."""

    def __init__(self, compiled: Compiled) -> None:
        self._compiled = compiled
        #: By stream that only file sources feed: their logs; None before the first batch.
        self._logs: dict[str, list[FileLog]] | None = None

    def of(
        self, offered: Mapping[str, int], rows: StreamRows, query: Any, started_us: int
    ) -> list[Availability]:
        """For every stream with its rows; `query`: the Java streaming query, None in a batch run.

        `started_us`: when the batch began, in case Spark does not say when its trigger did.
        """
        records = observed.read_available(offered, rows)
        batch = None if query is None else _RunningBatch(query, started_us)
        logs = {} if batch is None else self._known_logs(batch)
        found = []
        for name, number in offered.items():
            if records.get(name):
                found.append(Availability.of_quantiles(number, records[name]))
            elif batch is None:
                found.append(Availability.at("trigger", number, started_us))
            else:
                found.append(_by_source(number, batch, logs.get(name)))
        return found

    def _known_logs(self, batch: _RunningBatch) -> dict[str, list[FileLog]]:
        if self._logs is None:
            try:
                self._logs = self._found_logs(batch)
            except Py4JError:
                self._logs = {}
        return self._logs

    def _found_logs(self, batch: _RunningBatch) -> dict[str, list[FileLog]]:
        streams, leaves = self._compiled.query_input.leaves, leaf_sources(batch.execution)
        if len(leaves) < len(streams):
            return {}
        sources: dict[str, list[Any]] = {}
        for stream, leaf in zip(streams, leaves, strict=False):
            known = sources.setdefault(stream, [])
            if not any(leaf.equals(one) for one in known):
                known.append(leaf)
        jvm = self._compiled.spark._jvm
        return {
            stream: [FileLog(java, jvm) for java in some]
            for stream, some in sources.items()
            if all(map(is_file_source, some))
        }


def _by_source(rows: int, batch: _RunningBatch, logs: list[FileLog] | None) -> Availability:
    """From the files of a stream, or else from the trigger."""
    if logs is not None:
        try:
            files = [file for log in logs for file in log.taken(batch.execution)] if rows else []
            if files or not rows:
                return _of_files(rows, files, batch)
        except Py4JError:
            pass
    return Availability.at("trigger", rows, batch.triggered_us if rows else 0)


def _of_files(rows: int, files: list[LoggedFile], batch: _RunningBatch) -> Availability:
    moments = tuple(file.modified_us for file in files)
    if len(set(moments)) < 2:
        return Availability("file", rows, moments[:1], (1.0,) * len(moments[:1]))
    return Availability("file", rows, moments, weights_of(files, batch.sizes))


def weights_of(files: Iterable[LoggedFile], sizes: Mapping[str, int]) -> tuple[float, ...]:
    """The bytes of each file; a file of unknown size counts as the mean of the others."""
    known = [sizes.get(plain_path(unquote(file.path))) for file in files]
    counted = [size for size in known if size is not None]
    mean = sum(counted) / len(counted) if counted else 1.0
    return tuple(mean if size is None else float(size) for size in known)


def plain_path(path: str) -> str:
    """Local paths are written with one slash or three."""
    return re.sub("^file:/+", "file:/", path)


def sizes_in(listed: str) -> dict[str, int]:
    """Bytes by path, from the text of Hadoop's list of files."""
    return {plain_path(path): int(size) for path, size in _LISTED.findall(listed)}


class _RunningBatch:
    """What Spark knows of the batch that it is running; each answer is asked for once."""

    def __init__(self, query: Any, started_us: int) -> None:
        self.execution = query.streamingQuery()
        self._started_us = started_us

    @cached_property
    def triggered_us(self) -> int:
        """When the trigger of the batch started; of its first attempt, if this is a replay."""
        try:
            metadata = self.execution.lastExecution().offsetSeqMetadata()
            return int(metadata.batchTimestampMs()) * 1000
        except Py4JError:
            return self._started_us

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The bytes of all files of the batch, which Spark listed to read them; empty if it does not say."""
        found: dict[str, int] = {}
        try:
            for leaf in java_items(self.execution.lastExecution().analyzed().collectLeaves()):
                if leaf.isStreaming() and leaf.getClass().getSimpleName() == "LogicalRelation":
                    found |= sizes_in(leaf.relation().location().allFiles().mkString("\n"))
        except Py4JError:
            return {}
        return found
