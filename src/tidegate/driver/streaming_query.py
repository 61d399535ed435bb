"""The handle on a running query."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.query import StreamingQuery as SparkQuery

from tidegate.api.goal import ON_STOP, Goal
from tidegate.api.listeners import notify
from tidegate.control.balance.balancing import check
from tidegate.driver.engine.engine import Engine
from tidegate.driver.engine.settings import Settings, positive
from tidegate.driver.java_process import is_lost, unless_lost
from tidegate.errors import BatchFailed, FlowError
from tidegate.model.json_values import Json
from tidegate.model.progress import Progress
from tidegate.model.receipts import ReceiptPeriod, ReceiptRange, kept_lines
from tidegate.observe.progress import QueryIdentity, progress_of
from tidegate.observe.receipts import receipt_tables
from tidegate.observe.shed_summary import explained
from tidegate.observe.telemetry import Telemetry
from tidegate.route.hash_routing import first_table

if TYPE_CHECKING:
    import pandas

_PROGRESS_KEPT = 1000
#: Spark reacts to a stop at once; this bounds the wait if it does not.
_STOP_SECONDS_MAX = 10.0


class StreamingQuery:
    """A handle on a query, made by `tidegate.start`: running, stopped or finished.

    It has every public name of Spark's class of the same name, in both spellings, and works in a `with`
    block, which stops the query at its end.

    >>> with tg.start(orders.write_to("noop"), name="dispatch") as query:
    ...     _ = query.await_termination()
    >>> query
    <tidegate.StreamingQuery dispatch: ended, batch 0>
    """

    def __init__(self, name: str | None = None) -> None:
        self._name = name
        self._progress: deque[Progress] = deque(maxlen=_PROGRESS_KEPT)
        self._telemetry: deque[Telemetry] = deque(maxlen=_PROGRESS_KEPT)
        self._changed = threading.Condition()
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        self._inner: SparkQuery | None = None
        self._engine: Engine | None = None
        #: Kept, because Spark's answers are calls into Java.
        self._identity = QueryIdentity(name)
        #: Held while a batch runs.
        self._in_batch = threading.Lock()
        self._stopping = threading.Event()
        #: Cleared while the query is paused.
        self._resumed = threading.Event()
        self._resumed.set()
        #: Batches of Spark: how many began, how many ended, and the last that found no row and left none due.
        self._begun, self._finished, self._rested = 0, 0, 0
        self._at_end: list[Callable[[], object]] = []
        self._read_receipts: Callable[[ReceiptRange], list[Json]] = kept_lines([])
        #: The settings of the query with another goal; None for a run over batch inputs.
        self._another: Callable[[Goal | None], Settings] | None = None

    @property
    def id(self) -> str | None:
        """Identifies the query across restarts on its checkpoint; None for a run over batch inputs.

        >>> len(query.id)
        36
        """
        return self._identity.query_id

    @property
    def run_id(self) -> str | None:
        """Identifies this run; None for a run over batch inputs.

        >>> query.run_id == query.id
        False
        """
        return self._identity.run_id

    @property
    def name(self) -> str | None:
        """The name that was given to `tidegate.start`.

        >>> query.name
        'dispatch'
        """
        return self._name

    @property
    def is_active(self) -> bool:
        """Whether the query is running.

        >>> query.is_active
        True
        """
        return not self._ended.is_set()

    def __enter__(self) -> StreamingQuery:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        last = self.last_progress
        running = "running" if self._resumed.is_set() else "paused"
        state = running if self.is_active else "failed" if self._failure is not None else "ended"
        batch = "" if last is None else f", batch {last.batch_id}"
        return f"<tidegate.StreamingQuery {self._name or 'unnamed'}: {state}{batch}>"

    @property
    def last_progress(self) -> Progress | None:
        """The progress of the last batch; None before the first.

        >>> query.last_progress.warnings
        ()
        """
        return self._progress[-1] if self._progress else None

    @property
    def recent_progress(self) -> list[Progress]:
        """The progress of the last batches, oldest first; at most a thousand.

        >>> sum(progress.inputs["orders"].rows_offered for progress in query.recent_progress)
        3
        """
        return list(self._progress)

    @property
    def telemetry(self) -> list[Telemetry]:
        """Detailed records of the last batches, oldest first; at most a thousand.

        They are internal: names and values change without notice. `recent_progress` is stable.

        >>> len(query.telemetry) > 0
        True
        """
        return list(self._telemetry)

    def receipts(
        self,
        since: int | str | datetime | None = None,
        last: int | str | timedelta | None = None,
        *,
        by: ReceiptPeriod = "batch",
    ) -> pandas.DataFrame:
        """What became of every row: a pandas data frame with a row per period, kind and name.

        `kind` is "stream" or "output". `by`: "batch", "hour" (UTC, by the start of a batch) or "total".
        `since`: a batch_id, or a time (without a zone: UTC) at which batches began at the earliest. `last`: a
        number of batches, or a duration before the start of the newest one ("1 hour"). By default all batches
        of the checkpoint count, also those of earlier runs. Single batches are kept for a day, sums by minute
        for a week, and sums by hour as long as `tg.start(…, retention=…)` says: what is asked for "hour" and
        "total" is made of whatever is left, each batch once; of a minute or hour at the edge of `since` that
        is kept as a sum only, all batches must lie within. `tidegate.model.receipts.Receipt` explains the
        columns. The checkpoint has the same as JSON lines: `spark.read.json("<checkpoint>/receipts")`.

        >>> query.receipts(by="total")[["kind", "name", "rows_offered", "complete"]].values.tolist()
        [['stream', 'orders', 3, True], ['output', 'orders', 3, True]]
        """
        lines = self._read_receipts(receipt_tables.range_of(by, since, last))
        return receipt_tables.frame(receipt_tables.receipts_of(lines, by), by)

    @property
    def spark_query(self) -> SparkQuery | None:
        """Spark's own handle; None for a run over batch inputs.

        >>> str(query.spark_query.id) == query.id
        True
        """
        return self._inner

    @property
    def status(self) -> dict[str, Any]:
        """What the query is doing: `message`, `isDataAvailable`, `isTriggerActive`, as in Spark.

        >>> sorted(query.status)
        ['isDataAvailable', 'isTriggerActive', 'message']
        """
        if self._inner is not None and self.is_active:
            paused = {} if self._resumed.is_set() else {"message": "Paused"}
            with unless_lost():
                return {**self._inner.status, **paused}
        message = "Stopped" if self._failure is None else f"Terminated with exception: {self._failure}"
        return {"message": message, "isDataAvailable": False, "isTriggerActive": False}

    def explain(self, extended: bool = False) -> None:
        """Print the physical plan of the last batch as Spark has it; `extended`: all plans.

        >>> query.explain()
        == Physical Plan ==
        ...
        """
        if self._inner is None:
            print("A run over batch inputs has no streaming plan.")
        else:
            try:
                self._inner.explain(extended)
            except Exception as error:
                if not is_lost(error):
                    raise
                print("Spark's Java process has ended, and the plan with it.")

    def exception(self) -> BaseException | None:
        """Why the query failed; None if it did not.

        >>> print(query.exception())
        None
        """
        return self._failure

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the query ends (True) or the timeout in seconds has passed; raises if it failed.

        >>> query.await_termination(timeout=0.1)
        False
        """
        ended = self._ended.wait(timeout)
        if ended and self._failure is not None:
            raise self._failure
        return ended

    def process_all_available(self) -> None:
        """Wait until all rows that are at the sources now are processed, and all released rows emitted.

        As in Spark it waits longer while more rows come.

        >>> query.process_all_available()
        >>> query.last_progress.inputs["orders"].backlog_rows in (0, None)
        True
        """
        # 1. While no trigger is active, sources are asked again before the next batch begins. 2. So they are
        # behind a batch that runs now. 3. Otherwise they may just have been asked, and count one batch later.
        active = bool(self.status["isTriggerActive"])
        with self._changed:
            asked_between = active and self._begun == self._finished
            wanted = self._begun + (2 if asked_between else 1)
            while not self._ended.is_set() and self._rested < wanted:
                self._refuse_paused()
                # Each batch notifies; the timeout only guards against an end between two checks.
                self._changed.wait(0.5)
        if self._failure is not None:
            raise self._failure

    def _refuse_paused(self) -> None:
        if not self._resumed.is_set():
            raise FlowError(
                "A paused query processes no rows",
                code="QUERY_PAUSED",
                got="process_all_available()",
                why="It would wait until another thread calls resume()",
                do="Call resume() first",
            )

    def rescale(self, instances: int) -> None:
        """Run joins on this many instances from the next batch on; their state is reassigned, not copied.

        >>> query.rescale(2)
        """
        if self._engine is None or not self.is_active:
            raise FlowError(
                "Only a running query can be rescaled",
                code="RESCALE_NOT_RUNNING",
                got=repr(self),
                do="Start it with instances=… instead",
            )
        wanted = positive(instances, "instances", 1)
        check(self._engine.settings.balance, wanted)
        first_table(self._engine.settings.partitions, wanted)
        self._engine.controllers.instances = wanted

    def set_goal(self, goal: Goal | None) -> None:
        """Another goal, or none, from the next plan on; a batch that runs keeps its own.

        It is checked as in `tg.start`, and the other settings of the query stay: trigger, `shed` and the
        `max_loss` of outputs. What was decided under the goal before stays decided, as after a restart with
        another goal. A restart uses the goal that it is given.

        >>> query.set_goal(None)
        >>> query.set_goal(tg.Goal("2 seconds", observe=True))  # its rows are only written
        Traceback (most recent call last):
        tidegate.errors.FlowError: [GOAL_NOTHING_TO_SHED] ...
        """
        if self._engine is None or self._another is None or not self.is_active:
            raise FlowError(
                "Only the goal of a running query can be changed",
                code="SET_GOAL_NOT_RUNNING",
                got=repr(self),
                do="Start it again with goal=…: it continues from its checkpoint",
            )
        # Made here, so that a goal that cannot be kept is an error of this call. Whichever was set last when
        # the next batch is planned holds.
        self._engine.wanted = self._another(goal)

    def pause(self) -> None:
        """Take no rows from the next batch on, until `resume`; a running batch ends first.

        State, checkpoint and lock stay; `status` says so. A query that is stopped meanwhile, or whose process
        dies, continues with the next start. What the next batch reads may be fixed already, so sources must
        keep it.

        >>> query.pause()
        >>> query.status["message"]
        'Paused'
        >>> query.resume()
        """
        if not self.is_active:
            raise FlowError(
                "Only a running query can be paused",
                code="PAUSE_NOT_RUNNING",
                got=repr(self),
                do="Start it again: it continues from its checkpoint",
            )
        with self._changed:
            self._resumed.clear()
            self._changed.notify_all()

    def resume(self) -> None:
        """Continue after `pause`; without one, nothing changes.

        >>> query.resume()
        >>> query.status["message"] == "Paused"
        False
        """
        self._resumed.set()

    def explain_shedding(self) -> str:
        """What the last batch shed and why, operator by operator, in words.

        >>> print(query.explain_shedding())
        Batch ...: everything is processed.
        """
        found = self._telemetry
        return explained(found[-1]) if found else "No batch has run yet."

    def stop(self, timeout: float | None = None, repair: bool = True) -> None:
        """Stop after the running batch; the state stays for the next start.

        `timeout`: seconds to wait for the end; a query that is still running then raises an error and goes on
        stopping. `repair`: with `tg.Shed(repair="on_stop")`, one more batch repairs all debts; False leaves
        them for the next run.

        >>> query.stop()
        >>> query.is_active
        False
        """
        if self._inner is None or not self.is_active:
            return
        deadline = None if timeout is None else time.monotonic() + timeout
        if repair:
            self._repair_on_stop(deadline)
        self._stopping.set()
        # Spark stops by cancelling running jobs, so a running batch stops Spark itself when it is done.
        if self._in_batch.acquire(blocking=False):
            try:
                self._stop_inner()
            finally:
                self._in_batch.release()
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not self._ended.wait(left):
            raise BatchFailed(
                f"The query did not stop within {timeout:g} seconds",
                code="STOP_TIMEOUT",
                why="A stop waits for the running batch",
                do="Wait with await_termination(), or give a longer timeout",
            )

    def _repair_on_stop(self, deadline: float | None) -> None:
        """With repair="on_stop", wait until a batch has repaired all debts, or the deadline has passed. A
        paused query leaves them for the next run."""
        engine = self._engine
        if engine is None or engine.settings.repair is None or engine.settings.repair.when != ON_STOP:
            return
        engine.controllers.closing = True
        if not engine.manifest.debts and not self._in_batch.locked():
            return
        with self._changed:
            # A batch that has begun may have been planned before.
            wanted = self._begun + 1
            while not self._ended.is_set() and (self._finished < wanted or engine.manifest.debts):
                if not self._resumed.is_set():
                    return
                if deadline is not None and time.monotonic() > deadline:
                    return
                self._changed.wait(0.5)

    @contextmanager
    def _running(self, batch: int) -> Iterator[None]:
        """Hold the lock while a batch runs; after a stop request no batch begins."""
        taken = False
        while not taken and not self._stopping.is_set():
            # `stop` holds the lock until Spark's thread, which runs this code, has ended.
            taken = self._resumed.wait(0.05) and self._in_batch.acquire(timeout=0.05)
        if self._stopping.is_set():
            if taken:
                self._in_batch.release()
            # It must not return, or Spark would commit the batch.
            raise BatchFailed(
                f"Batch {batch} was not started", code="STOPPING", why="The query is being stopped"
            )
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
        threading.Thread(target=self._stop_inner, name="tidegate-stop", daemon=True).start()
        deadline = time.monotonic() + _STOP_SECONDS_MAX
        with unless_lost():
            while inner.isActive and time.monotonic() < deadline:
                time.sleep(0.01)

    def _stop_inner(self) -> None:
        if self._inner is not None:
            with unless_lost():
                self._inner.stop()

    def _let_batch_end(self) -> None:
        """After the end of Spark's query: no batch begins. One still runs if Java was lost under it; it gets
        a while to notice, because another run may follow."""
        self._stopping.set()
        if self._in_batch.acquire(timeout=_STOP_SECONDS_MAX):
            self._in_batch.release()

    def _runs(self, engine: Engine, inner: SparkQuery) -> None:
        """Spark's query has begun."""
        self._engine, self._inner = engine, inner
        self._identity = QueryIdentity(self._name, str(inner.id), str(inner.runId))

    def _batch_began(self) -> None:
        """Spark has asked the sources and brings a batch."""
        with self._changed:
            self._begun += 1

    def _batch_ended(self, at_rest: bool) -> None:
        """A batch of Spark is done, whether or not anything was committed; `at_rest`: it took no row, and
        none is due."""
        with self._changed:
            self._finished += 1
            self._rested = self._finished if at_rest else self._rested
            self._changed.notify_all()

    def _add_batch(self, telemetry: Telemetry, receipt: Mapping[str, Any]) -> None:
        progress = progress_of(telemetry, receipt, self._identity)
        with self._changed:
            if self._telemetry and self._telemetry[-1].get("idle"):
                # The newest report of an idle time is enough, or it would push those of batches out.
                self._telemetry.pop()
                self._progress.pop()
            self._telemetry.append(telemetry)
            self._progress.append(progress)
            self._changed.notify_all()
        notify("progress", self, progress)

    def _on_end(self, call: Callable[[], object]) -> None:
        """Call this once the query has ended; at once if it has."""
        with self._changed:
            if not self._ended.is_set():
                self._at_end.append(call)
                return
        call()

    def _end(self, failure: BaseException | None) -> None:
        with self._changed:
            self._failure = failure
            self._ended.set()
            waiting, self._at_end = self._at_end, []
            self._changed.notify_all()
        for call in waiting:
            call()
        notify("stop", self, failure)

    # The names of Spark's StreamingQuery.
    runId = run_id  # noqa: N815
    isActive = is_active  # noqa: N815
    lastProgress = last_progress  # noqa: N815
    recentProgress = recent_progress  # noqa: N815
    awaitTermination = await_termination  # noqa: N815
    processAllAvailable = process_all_available  # noqa: N815
