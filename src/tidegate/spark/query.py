"""`tidegate.start` and the handle on a running query."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tidegate.balance import Balance
from tidegate.control.balancing import Balanced, BalanceSettings, check
from tidegate.control.goal_keeping import KeepSettings
from tidegate.control.goal_values import GoalSettings
from tidegate.control.overload import OverloadSettings
from tidegate.control.repair import RepairSettings
from tidegate.control.sifting import SiftSettings
from tidegate.control.window_dropping import DropSettings
from tidegate.durations import duration_us
from tidegate.errors import BatchFailed, FlowError, StateError, TidegateError, explain
from tidegate.flow import Output
from tidegate.goals import AT_THE_END, Goal, Shed
from tidegate.report import receipts as receipt_tables
from tidegate.route.hash import first_table
from tidegate.spark.compile import compile_flow
from tidegate.spark.compiled import Compiled
from tidegate.spark.engine import CONF, Engine, Settings
from tidegate.spark.flow_checks import (
    joins_by_content,
    joins_that_may_repair,
    joins_that_may_skip,
    matches_that_may_sift,
)
from tidegate.spark.progress import Progress
from tidegate.spark.stream_settings import LOCAL_CONF, STREAM_CONF
from tidegate.spark.utility import check_utility
from tidegate.spark.window_network import network_of, output_name
from tidegate.spark.worker_errors import told
from tidegate.state.checkpoint import Checkpoint
from tidegate.state.local import LocalStore

AVAILABLE_NOW = "available now"
#: Partitions per unit of parallelism: enough to move load in small steps, few enough to stay cheap.
PARTITIONS_PER_CORE = 8
_PROGRESS_KEPT = 1000
#: Spark notes at once that it is to stop; should it not, the batch must still end.
_STOP_SECONDS_MAX = 10.0


def start(
    *outputs: Output,
    checkpoint: str | None = None,
    trigger: str | None = None,
    goal: Goal | None = None,
    shed: Shed | None = None,
    balance: Balance | None = None,
    seed: int = 0,
    partitions: int | None = None,
    instances: int | None = None,
) -> Query:
    """Run a flow.

    `trigger`: a duration ("1 second"), "available now" (take what is there, then stop), or None (back to
    back). `goal`: how late results may be; when there is more work than time, work is left out as `shed`
    says, and never without a goal. `balance`: how work is spread over instances; nothing is lost by it, so
    it needs no goal. `partitions` (fixed for the life of a checkpoint) default to eight per instance,
    `instances` to the parallelism of the session; it may differ from run to run. Batch inputs run at once,
    flush everything and need neither a checkpoint nor a goal.
    """
    sources_spark = _session(outputs)
    parallelism = sources_spark.sparkContext.defaultParallelism if sources_spark is not None else 1
    count = _positive(instances, "instances", parallelism)
    parts = _positive(partitions, "partitions", _stored_partitions(checkpoint) or PARTITIONS_PER_CORE * count)
    shed = shed or Shed()
    compiled = compile_flow(
        outputs,
        parts,
        cells=goal is not None and shed.utility is not None,
        sifts=goal is not None and shed.sift != "none",
        repairs=goal is not None and shed.repair is not None,
    )
    if not compiled.streaming:
        # Everything of a batch run is settled in one pass, which sees no copies of rows.
        balancing = _balancing(compiled, Balance(strategy="none"), parts, count)
        return _run_batch(compiled, Settings(parts, count, False, seed, balancing))
    if checkpoint is None:
        raise FlowError(
            explain("A streaming query needs a checkpoint", why="Its state lives there", do='checkpoint="…"')
        )
    keep = _shedding(compiled, goal, shed, trigger, seed)
    balancing = _balancing(compiled, balance or Balance(), parts, count, _batch_seconds(goal, trigger))
    repairing = None if keep is None else _repairing(shed, keep.overload)
    settings = Settings(parts, count, trigger == AVAILABLE_NOW, seed, balancing, keep, repairing)
    return _run_stream(compiled, settings, checkpoint, _trigger(trigger))


class Query:
    """A handle on a query: running, stopped or finished."""

    def __init__(self) -> None:
        self._progress: deque[Progress] = deque(maxlen=_PROGRESS_KEPT)
        self._changed = threading.Condition()
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        self._inner: StreamingQuery | None = None
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
        each stream and output. The columns are explained in `tidegate.report.receipts`; the same lies as
        JSON lines under the checkpoint: `spark.read.json("<checkpoint>/receipts")`.
        """
        found = self._read_receipts()
        return receipt_tables.frame(
            receipt_tables.totals(found) if total else receipt_tables.receipt_rows(found)
        )

    @property
    def spark_query(self) -> StreamingQuery | None:
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
            raise FlowError(
                explain("Only a running query can be rescaled", do="Start it with instances=… instead")
            )
        wanted = _positive(instances, "instances", 1)
        check(self._engine.settings.balance, wanted)
        first_table(self._engine.settings.partitions, wanted)
        self._engine.instances = wanted

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
        engine.closing = True
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
        patience = time.monotonic() + _STOP_SECONDS_MAX
        while inner.isActive and time.monotonic() < patience:
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


def _balancing(
    compiled: Compiled,
    balance: Balance,
    partitions: int,
    instances: int,
    batch_seconds: float | None = None,
) -> BalanceSettings:
    joins = {
        join.layout.operator: Balanced(keyed=bool(join.node.keys), scatters=join.candidates is None)
        for join in compiled.joins
    }
    # A group's panes lie together: whole partitions move, and no key is split.
    joins.update(
        {window.layout.operator: Balanced(keyed=True, scatters=False) for window in compiled.windows}
    )
    settings = BalanceSettings(balance, partitions, joins, batch_seconds)
    check(settings, instances)
    return settings


def _batch_seconds(goal: Goal | None, trigger: str | None) -> float | None:
    """Time there is for a batch; None where nobody says."""
    timed = trigger is not None and trigger != AVAILABLE_NOW
    trigger_us = duration_us(trigger, "trigger") if timed and trigger is not None else 0
    if goal is not None:
        return goal.batch_seconds(trigger_us)
    return trigger_us / 1e6 if timed else None


def _run_batch(compiled: Compiled, settings: Settings) -> Query:
    """One finished run over batch inputs, with a throw-away checkpoint."""
    query = Query()
    with tempfile.TemporaryDirectory(prefix="tidegate-") as folder, _settings(compiled.spark, CONF):
        checkpoint = Checkpoint(folder)
        checkpoint.open(_owner())
        try:
            engine = Engine(compiled, checkpoint, settings, query._add_progress)
            with closing(engine):
                engine.run_batch(compiled.input_frame(), 0, flush=True)
            kept = checkpoint.receipts.read()
        except Exception as error:
            ours = told(error, 0)
            if ours is error:
                raise
            raise ours from error
        finally:
            checkpoint.close()
    query._read_receipts = lambda: kept
    query._end(None)
    return query


@contextmanager
def _settings(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """The session with these settings, its own ones back afterwards."""
    kept = {name: spark.conf.get(name, None) for name in wanted}
    try:
        for name, value in wanted.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, before in kept.items():
            if before is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, before)


def _configure_once(spark: SparkSession, configured: set[str]) -> None:
    """Settings on the clone of the session that Spark made for this query: the user's keeps its own."""
    for name, value in CONF.items():
        if name not in configured:
            spark.conf.set(name, value)
            configured.add(name)


def _run_stream(compiled: Compiled, settings: Settings, path: str, trigger: dict[str, Any]) -> Query:
    query = Query()
    checkpoint = Checkpoint(path)
    checkpoint.open(_owner())
    query._read_receipts = checkpoint.receipts.read
    try:
        engine = Engine(compiled, checkpoint, settings, query._add_progress)
        failure: list[BaseException] = []
        ready = threading.Event()
        #: Spark has set up the query: its first batch has come, or its end.
        begun = threading.Event()
        configured: set[str] = set()

        def run_batch(frame: DataFrame, batch: int) -> None:
            begun.set()
            ready.wait()
            with query._running(batch):
                _configure_once(frame.sparkSession, configured)
                try:
                    engine.run_batch(frame, batch)
                except BaseException as error:
                    failure.append(told(error, batch))
                    raise

        def watch() -> None:
            ended: BaseException | None = None
            try:
                inner.awaitTermination()
            except Exception as error:
                if failure:
                    ended = failure[0] if isinstance(failure[0], TidegateError) else error
                elif not query._stopping.is_set():
                    ended = error
            begun.set()
            engine.close()
            checkpoint.close()
            query._end(ended)

        writer = compiled.input_frame().writeStream.foreachBatch(run_batch)
        writer = writer.option("checkpointLocation", checkpoint.spark_path).trigger(**trigger)
        bounded = "availableNow" in trigger
        local = LOCAL_CONF if isinstance(checkpoint.store, LocalStore) else {}
        with _settings(compiled.spark, STREAM_CONF | local):
            inner = writer.start()
            engine.query = inner._jsq
            query._engine = engine
            query._inner = inner
            ready.set()
            threading.Thread(target=watch, name="tidegate-watch", daemon=True).start()
            if bounded:
                # Spark reads the settings in a thread of its own, after `start` has returned.
                begun.wait()
    except BaseException:
        if query._inner is not None:
            query._inner.stop()
        checkpoint.close()
        raise
    return query


def _session(outputs: tuple[Output, ...]) -> Any:
    for output in outputs:
        node = getattr(output, "node", None)
        while node is not None and not hasattr(node, "frame"):
            node = getattr(node, "parent", None) or getattr(node, "left", None)
        if node is not None:
            return node.frame.sparkSession
    return None


def _stored_partitions(checkpoint: str | None) -> int | None:
    """What a checkpoint was begun with: a machine with other cores must be able to go on from it."""
    if checkpoint is None:
        return None
    try:
        found = Checkpoint(checkpoint).manifests.load_latest()
    except StateError:
        return None  # It is said, with all it has to say, when the state is recovered.
    return None if found is None else int(found.flow["partitions"])


def _positive(given: int | None, what: str, default: int) -> int:
    if given is None:
        return default
    if not isinstance(given, int) or given < 1:
        raise FlowError(explain(f"{what} must be a whole number of at least 1", got=repr(given)))
    return given


def _shedding(
    compiled: Compiled, goal: Goal | None, shed: Shed, trigger: str | None, seed: int
) -> KeepSettings | None:
    """What may be left out to meet the goal; checked before anything starts."""
    network = network_of(compiled)
    if goal is None:
        return None
    names = [output.name for output in compiled.outputs]
    weights, loss_max = goal.weights(names), goal.bounds(names)
    may_skip, may_sift = joins_that_may_skip(compiled.outputs), matches_that_may_sift(compiled.outputs)
    if shed.repair is not None and may_skip and shed.join != "none":
        may_skip = _that_may_repair(compiled)
    joins = tuple(join.layout.operator for join in compiled.joins if id(join.node) in may_skip)
    matches = {m.layout.operator: m.queries for m in compiled.matches if id(m.node) in may_sift}
    at_sources = frozenset(m.layout.operator for m in compiled.matches if m.node.sources is not None)
    windows = any(output.max_gap is not None for output in compiled.outputs)
    if not joins and not matches and not windows:
        raise FlowError(
            explain(
                "This goal could not be kept: nothing in the flow may be left out",
                got=", ".join(f"a {join.node.how} join" for join in compiled.joins) or "no join and no match",
                why="A row that comes out alone because its partner was skipped would be wrong, not missing; "
                "so would the window of a skipped row",
                do="Use inner or left_semi joins, or match the rows of a source, or let windows be missing: "
                "write_to(…, max_gap=10), or goal=None",
            )
        )
    if shed.utility is not None:
        check_utility(compiled, shed.utility)
    each_us = 0 if trigger is None or trigger == AVAILABLE_NOW else duration_us(trigger, "trigger")
    seconds = goal.batch_seconds(each_us), each_us / 1e6
    cores = compiled.spark.sparkContext.defaultParallelism
    skips, sifts = joins and shed.join != "none", matches and shed.sift != "none"
    drops = windows and shed.window != "none"
    by_content = joins_by_content([join.layout for join in compiled.joins], shed)
    return KeepSettings(
        GoalSettings(
            seconds[0],
            goal.latency_us / 1e6,
            {output_name(name): weight for name, weight in weights.items()},
            {output_name(name): most for name, most in loss_max.items()},
            trigger_seconds=seconds[1],
        ),
        seconds[1],
        network,
        cores,
        OverloadSettings(shed, joins, *seconds, cores, goal.state_bytes, by_content) if skips else None,
        SiftSettings(shed, matches, *seconds, at_sources) if sifts else None,
        DropSettings(shed, network, *seconds, seed) if drops else None,
    )


def _that_may_repair(compiled: Compiled) -> set[int]:
    """With repair only joins leave out work that can make up for it; there must be one."""
    may_repair = joins_that_may_repair(compiled.outputs)
    if not may_repair:
        raise FlowError(
            explain(
                "Nothing that may be left out here could be repaired",
                got=", ".join(f"a {join.node.how} join" for join in compiled.joins),
                why="Results that come later may feed no join or window, where they would be late; and the "
                "`where` of a left semi join is judged too late to say which batch a row belongs to",
                do="Use repair=None, or write the results of an inner join to an output",
            )
        )
    return may_repair


def _repairing(shed: Shed, overload: OverloadSettings | None) -> RepairSettings | None:
    if shed.repair is None or overload is None:
        return None
    return RepairSettings(shed.repair, shed.repair_bytes, overload.batch_seconds, overload.parallelism)


def _trigger(given: str | None) -> dict[str, Any]:
    if given is None:
        return {"processingTime": "0 seconds"}
    if given == AVAILABLE_NOW:
        return {"availableNow": True}
    return {"processingTime": f"{duration_us(given, 'trigger') // 1000} milliseconds"}


def _owner() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"
