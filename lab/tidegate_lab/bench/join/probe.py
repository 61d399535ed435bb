"""Measurements while a contender runs: after each batch, and once at its end.

Pauses of the garbage collector are read from the Java process. With `watch`, each batch also records the live
heap (after a collection), the sizes of the driver and of the workers, and the bytes of the checkpoint. That
is too slow for a speed run, but without a collection an idle heap grows to its limit and shows nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from tidegate_lab.bench.join.process import resident_bytes
from tidegate_lab.bench.join.spec import EventLog, Task

#: Time that the news of a batch may take.
NEWS_SECONDS = 60.0


class Running(Protocol):
    """A started query, whichever engine runs it."""

    def wait(self) -> None:
        """Return when all input is taken; raise what the query raised."""

    def batches(self) -> list[dict[str, float]]:
        """Per batch with input, in order: `rows`, `seconds`, and where known `state_rows`, `state_bytes`."""


class Probe(StreamingQueryListener):
    """Listens to a Spark query and notes each of its batches in the event log."""

    def __init__(self, spark: SparkSession, task: Task, log: EventLog) -> None:
        self._task = task
        self._log = log
        java: Any = spark.sparkContext._jvm
        management = java.java.lang.management.ManagementFactory
        # Concurrent collection runs beside the work; only what stops it is a pause.
        beans = list(management.getGarbageCollectorMXBeans())
        self._collectors = [bean for bean in beans if "Concurrent" not in bean.getName()]
        self._memory = management.getMemoryMXBean()
        self._java_pid = int(management.getRuntimeMXBean().getPid())
        #: Rows that reached the kernels of the floor.
        self.counted = 0
        self._noted = 0

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Nothing to note."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Nothing to note."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Nothing to note."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        if event.progress.numInputRows * 2 <= self._task.rows_per_batch:
            return  # a heartbeat, or a batch that only moves Spark's watermark
        watched = self._watched() if self._task.watch else {}
        at, pause_ms = time.time(), self._pause_ms()
        self._log.write("batch", batch=event.progress.batchId, at=at, pause_ms=pause_ms, **watched)
        self._noted += 1

    def wait_for(self, batches: Sequence[Any]) -> None:
        """Until all batches are noted: Spark tells its listeners when it finds the time."""
        deadline = time.monotonic() + NEWS_SECONDS
        while self._noted < len(batches):
            if time.monotonic() > deadline:
                raise RuntimeError(f"only {self._noted} of {len(batches)} batches were reported")
            time.sleep(0.05)

    def finish(self, batches: Sequence[Mapping[str, float]], pairs: int, checksum: int) -> None:
        """Totals, and the time of every batch: one a file, or the times would not be comparable."""
        if len(batches) != self._task.batches:
            sizes = [int(batch["rows"]) for batch in batches]
            raise RuntimeError(f"{self._task.batches} files did not give as many batches, but {sizes} rows")
        self._log.write(
            "done",
            batches=batches,
            rows=self._task.rows_per_batch * self._task.batches,
            counted=self.counted,
            pairs=pairs,
            checksum=checksum,
        )

    def _pause_ms(self) -> int:
        return sum(int(bean.getCollectionTime()) for bean in self._collectors)

    def _watched(self) -> dict[str, int]:
        self._memory.gc()
        sizes = resident_bytes(os.getsid(0))
        drivers = (os.getpid(), self._java_pid)
        return {
            "heap_live_bytes": int(self._memory.getHeapMemoryUsage().getUsed()),
            "driver_python_bytes": sizes.get(os.getpid(), 0),
            "workers_bytes": sum(size for pid, size in sizes.items() if pid not in drivers),
            "disk_bytes": disk_bytes(Path(self._task.work) / "checkpoint"),
        }


def disk_bytes(folder: Path) -> int:
    """Bytes of all files below; a file that is deleted meanwhile counts for nothing."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(parent, name)).st_size
            except FileNotFoundError:
                continue
    return total
