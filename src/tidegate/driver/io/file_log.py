"""The log of Spark's file source: which files a batch took, and when they were modified.

Spark writes an entry per batch with new files to `sources/N/` of its checkpoint. The offset of a file source
is the number of an entry. Every tenth entry is compacted: its file lists all files so far, older entries are
deleted, and the log still answers for each entry alone.

The log is an internal of Spark. Callers expect `Py4JError` and do without it then.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tidegate.driver.java_collections import java_items

#: The simple name of Spark's class.
FILE_SOURCE = "FileStreamSource"


@dataclass(frozen=True)
class LoggedFile:
    """A file as Spark found it: its encoded path and its modification time."""

    path: str
    modified_us: int


@dataclass(eq=False)
class FileLog:
    """The log of one file source, given as Spark's Java object."""

    java: Any
    jvm: Any

    @property
    def last(self) -> int:
        """The number of the last entry; -1 if there is none."""
        return int(self._last.get(self.java))

    def count(self, after: int, until: int) -> int:
        """The number of files in the entries behind `after`, up to `until`."""
        return sum(len(entry._2()) for entry in self._entries(after, until))

    def files(self, after: int, until: int) -> list[LoggedFile]:
        """The files of these entries."""
        found = []
        for entry in self._entries(after, until):
            # All files of an entry at once, because every call into Java costs time.
            text = self._buffer()
            self._log.serialize(entry._2(), text)
            # The first line is the version of the format.
            for line in text.toString("UTF-8").splitlines()[1:]:
                raw = json.loads(line)
                found.append(LoggedFile(raw["path"], raw["timestamp"] * 1000))
        return found

    def taken(self, execution: Any) -> list[LoggedFile]:
        """The files of the batch that a Java streaming query is running."""
        until = _entry(execution.availableOffsets().get(self.java))
        after = _entry(execution.committedOffsets().get(self.java))
        return self.files(after, until)

    def field(self, name: str) -> Any:
        """A private field of the source, as Java's reflection gives it."""
        found = self.java.getClass().getDeclaredField(name)
        found.setAccessible(True)
        return found

    def _entries(self, after: int, until: int) -> list[Any]:
        if after >= until:
            return []
        # Scala wants options of longs, and Python's small numbers arrive in Java as ints.
        first, last = (self._option.toScala(self._long.of(number)) for number in (after + 1, until))
        return list(self._log.get(first, last))

    # Looked up once, because every call into Java costs time.
    @cached_property
    def _last(self) -> Any:
        return self.field("metadataLogCurrentOffset")

    @cached_property
    def _log(self) -> Any:
        return self.field("metadataLog").get(self.java)

    @cached_property
    def _option(self) -> Any:
        return self.jvm.scala.jdk.javaapi.OptionConverters

    @cached_property
    def _long(self) -> Any:
        return self.jvm.java.util.OptionalLong

    @cached_property
    def _buffer(self) -> Any:
        return self.jvm.java.io.ByteArrayOutputStream


def _entry(offset: Any) -> int:
    """The entry that an optional offset of a file source names; -1 without one."""
    return int(json.loads(offset.get().json())["logOffset"]) if offset.isDefined() else -1


def is_file_source(java: Any) -> bool:
    return bool(java.getClass().getSimpleName() == FILE_SOURCE)


def leaf_sources(execution: Any) -> list[Any]:
    """The source of each leaf of a Java streaming query, in Spark's order."""
    return java_items(execution.sources())
