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
#: Spark notes at once that it is to stop; should it not, the batch must still end.
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
        """What the last batch did; None before the first."""
        return self._progress[-1] if self._progress else None

    @property
    def recent_progress(self) -> list[Progress]:
        """The last batches, oldest first; at most a thousand."""
        return list(self._progress)

    def receipts(self, total: bool = False) -> Any:
        """Exactly what was lost: a pandas data frame with a row a batch and stream or output.

        All batches of the checkpoint, also those of earlier runs. `total`: their sums instead, a row for
        each stream and output. The columns are explained in `tidegate.observe.receipt_tables`; the same lies
        as JSON lines under the checkpoint: `spark.read.json("<checkpoint>/receipts")`.
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
        """Whether it runs, what it does right now, and the last batch."""
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
        """Wait until everything that is there now has been processed and settled."""
        asked = time.time()

        def idle() -> bool:
            last = self.last_progress
            return self._ended.is_set() or (
                last is not None
                and not last["input_rows"]
                and last["settled"]  # behind each join, time moves on one batch later
                and last["started"] > asked
            )

        with self._changed:
            while not idle():
                # Woken by each batch; the timeout only guards against an end between two looks.
                self._changed.wait(0.5)
        if self._failure is not None:
            raise self._failure

    def rescale(self, instances: int) -> None:
        """From the next batch on, joins run on so many instances; what they store goes along by name."""
        if self._engine is None or not self.is_active:
            raise FlowError("Only a running query can be rescaled", do="Start it with instances=… instead")
        wanted = positive(instances, "instances", 1)
        check(self._engine.settings.balance, wanted)
        first_table(self._engine.settings.partitions, wanted)
        self._engine.controllers.instances = wanted

    def stop(self) -> None:
        """Stop after the running batch; the state stays for the next start.

        With repair="at the end" there is one more batch, which makes up for all that was left out.
        """
        if self._inner is None:
            return
        self._pay_at_the_end()
        self._stopping.set()
        # Spark stops by cancelling whatever runs. A batch that runs tells Spark to stop when it is done.
        if self._in_batch.acquire(blocking=False):
            try:
                self._inner.stop()
            finally:
                self._in_batch.release()
        self._ended.wait()

    def _pay_at_the_end(self) -> None:
        """Wait until a batch has paid what is owed, where that was left for the end."""
        engine = self._engine
        if engine is None or engine.settings.repair is None or engine.settings.repair.when != AT_THE_END:
            return
        asked = time.time()
        engine.controllers.closing = True
        if not engine.manifest.debts and not self._in_batch.locked():
            return

        def paid() -> bool:
            last = self.last_progress
            return last is not None and last["started"] > asked and not last["debts"].get("count")

        with self._changed:
            while not self._ended.is_set() and not paid():
                self._changed.wait(0.5)

    @contextmanager
    def _running(self, batch: int) -> Iterator[None]:
        """While a batch runs; one that has not begun when the query is told to stop does not begin."""
        taken = False
        while not taken and not self._stopping.is_set():
            # Whoever stops the query holds the lock until Spark's thread, which is ours, has ended.
            taken = self._in_batch.acquire(timeout=0.05)
        if self._stopping.is_set():
            if taken:
                self._in_batch.release()
            # It must not return: Spark would take the batch for done.
            raise BatchFailed(f"Batch {batch} was not begun: the query stops")
        try:
            yield
        finally:
            self._in_batch.release()
            if self._stopping.is_set():
                self._stop_spark()

    def _stop_spark(self) -> None:
        """From within a batch that is done: Spark's thread, which waits for us, ends when we return.

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
