"""The handle on a running query."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery as SparkQuery

from tidegate.api.goal import AT_THE_END
from tidegate.control.balance.balancing import check
from tidegate.driver.engine.engine import Engine
from tidegate.driver.engine.settings import positive
from tidegate.errors import BatchFailed, FlowError
from tidegate.observe import receipt_tables as receipt_tables
from tidegate.observe.progress import Progress
from tidegate.route.hash_routing import first_table

_PROGRESS_KEPT = 1000
#: Spark reacts to a stop at once; this bounds the wait if it does not.
_STOP_SECONDS_MAX = 10.0


class StreamingQuery:
    """A handle on a query: running, stopped or finished."""

    def __init__(self) -> None:
        self._progress: deque[Progress] = deque(maxlen=_PROGRESS_KEPT)
        self._changed = threading.Condition()
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        self._inner: SparkQuery | None = None
        self._engine: Engine | None = None
        #: Held while a batch runs.
        self._in_batch = threading.Lock()
        self._stopping = threading.Event()
        self._read_receipts: Callable[[], list[dict[str, Any]]] = list

    @property
    def is_active(self) -> bool:
        return not self._ended.is_set()

    @property
    def last_progress(self) -> Progress | None:
        """The progress of the last batch; None before the first."""
        return self._progress[-1] if self._progress else None

    @property
    def recent_progress(self) -> list[Progress]:
        """The progress of the last batches, oldest first; at most a thousand."""
        return list(self._progress)

    def receipts(self, total: bool = False) -> Any:
        """The account of what was shed: a pandas data frame with a row per batch and stream or output.

        It covers all batches of the checkpoint, also those of earlier runs. `total`: their sums, one row per
        stream and output. `tidegate.observe.receipt_tables` explains the columns. The checkpoint has the same
        as JSON lines: `spark.read.json("<checkpoint>/receipts")`.
        """
        found = self._read_receipts()
        return receipt_tables.frame(
            receipt_tables.totals(found) if total else receipt_tables.receipt_rows(found)
        )

    @property
    def spark_query(self) -> SparkQuery | None:
        """Spark's own handle; None for a run over batch inputs."""
        return self._inner

    def status(self) -> dict[str, Any]:
        """Whether the query is active, what it is doing, and the last batch."""
        inner = self._inner.status if self._inner is not None else {}
        last = self.last_progress
        return {
            "is_active": self.is_active,
            "message": inner.get("message", "finished"),
            "batch": None if last is None else last["batch"],
            "failure": None if self._failure is None else str(self._failure),
        }

    def exception(self) -> BaseException | None:
        """Why the query failed; None if it did not."""
        return self._failure

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the query ends (True) or the timeout in seconds has passed; raises if it failed."""
        ended = self._ended.wait(timeout)
        if ended and self._failure is not None:
            raise self._failure
        return ended

    def process_all_available(self) -> None:
        """Wait until all available rows have been processed and all released rows emitted."""
        asked = time.time()

        def idle() -> bool:
            last = self.last_progress
            return self._ended.is_set() or (
                last is not None
                and not last["input_rows"]
                and last["settled"]  # behind each join, the watermark moves one batch later
                and last["started"] > asked
            )

        with self._changed:
            while not idle():
                # Each batch notifies; the timeout only guards against an end between two checks.
                self._changed.wait(0.5)
        if self._failure is not None:
            raise self._failure

    def rescale(self, instances: int) -> None:
        """Run joins on this many instances from the next batch on; their state is reassigned, not copied."""
        if self._engine is None or not self.is_active:
            raise FlowError("Only a running query can be rescaled", do="Start it with instances=… instead")
        wanted = positive(instances, "instances", 1)
        check(self._engine.settings.balance, wanted)
        first_table(self._engine.settings.partitions, wanted)
        self._engine.controllers.instances = wanted

    def stop(self) -> None:
        """Stop after the running batch; the state stays for the next start.

        With repair="at the end" one more batch repairs all debts.
        """
        if self._inner is None:
            return
        self._repair_on_stop()
        self._stopping.set()
        # Spark stops by cancelling running jobs, so a running batch stops Spark itself when it is done.
        if self._in_batch.acquire(blocking=False):
            try:
                self._inner.stop()
            finally:
                self._in_batch.release()
        self._ended.wait()

    def _repair_on_stop(self) -> None:
        """With repair="at the end", wait until a batch has repaired all debts."""
        engine = self._engine
        if engine is None or engine.settings.repair is None or engine.settings.repair.when != AT_THE_END:
            return
        asked = time.time()
        engine.controllers.closing = True
        if not engine.manifest.debts and not self._in_batch.locked():
            return

        def repaired() -> bool:
            last = self.last_progress
            return last is not None and last["started"] > asked and not last["debts"].get("count")

        with self._changed:
            while not self._ended.is_set() and not repaired():
                self._changed.wait(0.5)

    @contextmanager
    def _running(self, batch: int) -> Iterator[None]:
        """Hold the lock while a batch runs; after a stop request no batch begins."""
        taken = False
        while not taken and not self._stopping.is_set():
            # `stop` holds the lock until Spark's thread, which runs this code, has ended.
            taken = self._in_batch.acquire(timeout=0.05)
        if self._stopping.is_set():
            if taken:
                self._in_batch.release()
            # It must not return, or Spark would commit the batch.
            raise BatchFailed(f"Batch {batch} was not begun: the query stops")
        try:
            yield
        finally:
            self._in_batch.release()
            if self._stopping.is_set():
                self._stop_spark()

    def _stop_spark(self) -> None:
        """Stop Spark from within a committed batch: Spark's thread ends when this batch returns.

        Whether Spark still writes its own commit does not matter: a batch with a manifest is not run again.
        """
        inner = self._inner
        if inner is None:
            return
        threading.Thread(target=inner.stop, name="tidegate-stop", daemon=True).start()
        deadline = time.monotonic() + _STOP_SECONDS_MAX
        while inner.isActive and time.monotonic() < deadline:
            time.sleep(0.01)

    def _add_progress(self, progress: Progress) -> None:
        with self._changed:
            self._progress.append(progress)
            self._changed.notify_all()

    def _end(self, failure: BaseException | None) -> None:
        with self._changed:
            self._failure = failure
            self._ended.set()
            self._changed.notify_all()
