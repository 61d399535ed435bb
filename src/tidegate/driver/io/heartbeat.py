"""Keeps the heartbeat of a query going when the wall clock is set back.

The heartbeat is Spark's rate source: by the wall clock, the seconds since the query was made. After a step
back it would stand still for as long as the step, and with it every batch that no row triggers: idle streams
would stay silent, and whoever waits for all that is available would wait so long. After a restart it would
count from less than Spark's log has, which Spark refuses. So the newest time that it has seen is moved on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from tidegate.driver.io.file_log import leaf_sources
from tidegate.driver.io.read_limits import sources_set_up


class Heartbeat:
    """The heartbeat of one started query; made inside `read_limits.before_the_first_batch`."""

    def __init__(
        self, query: Any, spark: SparkSession, beats: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`query`: Spark's, in Java; `beats`: how many its log has."""
        self._clock = clock
        self._asked = clock()
        self._system: Any = spark._jvm.java.lang.System  # type: ignore[union-attr]
        self._last: Any = None
        # Where Spark has another heartbeat, it stays as it is.
        with suppress(Py4JError, IndexError):
            execution = query.streamingQuery()
            if not sources_set_up(execution):
                return
            self._source = leaf_sources(execution)[-1]
            last, begun = self._field("lastTimeMs"), self._field("creationTimeMs")
            counted = begun.getLong(self._source) + 1000 * beats
            if last.getLong(self._source) < counted:
                last.setLong(self._source, counted)
            self._last = last

    def _field(self, name: str) -> Any:
        field = self._source.getClass().getDeclaredField(name)
        field.setAccessible(True)
        return field

    def keep_going(self) -> None:
        """Move on by the time since the last call, if the clock is behind."""
        before, self._asked = self._asked, self._clock()
        if self._last is None:
            return
        with suppress(Py4JError):
            last = self._last.getLong(self._source)
            if last > self._system.currentTimeMillis():
                self._last.setLong(self._source, last + int(1000 * (self._asked - before)))
