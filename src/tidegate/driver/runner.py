"""Runs a compiled flow: batch inputs in one batch, streams as micro-batches of a Spark streaming query."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidegate import __version__
from tidegate.api.goal import Goal
from tidegate.api.listeners import notify
from tidegate.driver.compile.compiled import Compiled
from tidegate.driver.engine.engine import BATCH_BYTES, CONF, EXCLUDED_RULES, Engine
from tidegate.driver.engine.settings import Settings
from tidegate.driver.failures import failure_of, log_failure
from tidegate.driver.io.heartbeat import Heartbeat
from tidegate.driver.io.read_limits import before_the_first_batch
from tidegate.driver.io.source_limits import SourceLimits
from tidegate.driver.java_process import is_lost, unless_lost
from tidegate.driver.quiet_logs import QuietLogs, mark_jobs, own_thread
from tidegate.driver.session import LOCAL_CONF, STREAM_CONF
from tidegate.driver.streaming_query import StreamingQuery
from tidegate.errors import StateError, TidegateError
from tidegate.model.json_values import Metrics
from tidegate.model.receipts import kept_lines
from tidegate.observe.query_log import QueryLog
from tidegate.observe.telemetry import Telemetry
from tidegate.state.checkpoint import Checkpoint
from tidegate.state.store.local import LocalStore

#: Seconds between two looks at the heartbeat.
_BEAT_SECONDS = 1
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"


def run_batch(compiled: Compiled, settings: Settings, name: str | None = None) -> StreamingQuery:
    """Run over batch inputs to the end, with a temporary checkpoint."""
    query = StreamingQuery(name)
    wanted = _wanted(compiled.spark)
    with (
        tempfile.TemporaryDirectory(prefix="tidegate-") as folder,
        _settings(compiled.spark, wanted),
        QuietLogs(compiled.spark),
    ):
        checkpoint = Checkpoint(folder)
        checkpoint.open(_owner())
        try:
            engine = Engine(compiled, checkpoint, settings, query._add_batch)
            engine.jobs.query = name or engine.jobs.query
            with closing(engine):
                engine.run_batch(None, 0, flush=True)
            kept = checkpoint.receipts.read()
        except Exception as error:
            ours = failure_of(error, 0, stream_of=compiled.stream_of)
            if ours is error:
                raise
            raise ours from error
        finally:
            checkpoint.close()
    query._read_receipts = kept_lines(kept)
    query._end(None)
    return query


@contextmanager
def _settings(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """Set these settings on the session, and restore them afterwards."""
    kept = {name: spark.conf.get(name, None) for name in wanted}
    try:
        for name, value in wanted.items():
            spark.conf.set(name, value)
        yield
    finally:
        with unless_lost():
            for name, before in kept.items():
                if before is None:
                    spark.conf.unset(name)
                else:
                    spark.conf.set(name, before)


def _configure_once(spark: SparkSession, configured: set[str], keeps_state: bool) -> None:
    """Set the engine's settings on the clone of the session that Spark made for this query.

    `keeps_state`: Spark itself keeps state for a stream, whose partitions must stay as they are.
    """
    if not configured:
        for name, value in _wanted(spark).items():
            spark.conf.set(name, value)
        if not keeps_state:
            # Spark's own rules shuffle only partial aggregates, for which two hundred tasks are too many.
            spark.conf.set(SHUFFLE_PARTITIONS, str(spark.sparkContext.defaultParallelism))
        mark_jobs(spark)
        configured.update(CONF)


def _wanted(spark: SparkSession) -> dict[str, str]:
    """The engine's settings. The user's bound on the bytes of Arrow batches and excluded rules are kept."""
    bounded = spark.conf.get(BATCH_BYTES, None) is not None
    wanted = {name: value for name, value in CONF.items() if name != BATCH_BYTES or not bounded}
    excluded = spark.conf.get(EXCLUDED_RULES, None)
    return {**wanted, EXCLUDED_RULES: f"{excluded},{CONF[EXCLUDED_RULES]}"} if excluded else wanted


def run_stream(
    compiled: Compiled,
    settings: Settings,
    path: str,
    trigger: dict[str, Any],
    name: str | None,
    another: Callable[[Goal | None], Settings],
) -> StreamingQuery:
    """Start a streaming query on a checkpoint; `another`: the settings with another goal."""
    query = StreamingQuery(name)
    query._another = another
    checkpoint = Checkpoint(path)
    checkpoint.open(_owner())
    query._read_receipts = lambda wanted: checkpoint.receipts.read(wanted, checkpoint.current)
    bounded = "availableNow" in trigger
    run = _Run(compiled, checkpoint, query, QuietLogs(compiled.spark), bounded)
    try:
        run.log = _log_of(compiled, settings, path, name)
        engine = run.engine = Engine(compiled, checkpoint, settings, run.report)
        engine.on_settings = lambda changed: run.log.goal_changed(
            _goal_text(changed), changed.latency_seconds
        )
        engine.jobs.query = name or engine.jobs.query
        begun = checkpoint.plans.read(engine.manifest.batch + 1)
        run.log.recovered(engine.manifest.batch, replays=begun is not None)
        if engine.settles_first:
            wanted = _settings(compiled.spark, _wanted(compiled.spark))
            with wanted, QuietLogs(compiled.spark), run.failing():
                engine.finish_settling()
        leaves = compiled.query_input.leaves
        writer = _named(compiled.query_input.frame().writeStream.foreachBatch(run.take), name)
        writer = writer.option("checkpointLocation", checkpoint.spark_path).trigger(**trigger)
        local = LOCAL_CONF if isinstance(checkpoint.store, LocalStore) else {}
        with _settings(compiled.spark, STREAM_CONF | local):
            run.quiet.open()
            inner = writer.start()
            query._runs(engine, inner)
            with before_the_first_batch(inner._jsq, compiled.spark):
                run.quiet.hide_run(inner.id, inner.runId)
                run.heartbeat = Heartbeat(inner._jsq, compiled.spark, checkpoint.spark_log.beats())
                engine.query = inner._jsq
                engine.limits = SourceLimits(inner._jsq, compiled.spark, leaves)
                engine.limits.follow(settings.goal, engine.manifest)
            notify("start", query)
            run.report_early()
            run.ready.set()
            threading.Thread(target=run.watch, name="tidegate-watch", daemon=True).start()
            if bounded:
                # Spark reads the settings in its own thread, after `start` has returned.
                run.begun.wait()
    except BaseException as error:
        with ExitStack() as end:
            end.callback(checkpoint.close)
            end.callback(run.quiet.close)
            end.callback(query._stop_inner)
        if isinstance(error, Exception) and not isinstance(error, TidegateError):
            damaged = log_failure(error, checkpoint.spark_path)
            if damaged is not None:
                raise damaged from error
            if is_lost(error):
                raise failure_of(error, 0) from error
        raise
    return query


class _Run:
    """One run of a streaming query: what Spark's thread calls, and the thread that watches it."""

    engine: Engine
    log: QueryLog
    heartbeat: Heartbeat

    def __init__(
        self,
        compiled: Compiled,
        checkpoint: Checkpoint,
        query: StreamingQuery,
        quiet: QuietLogs,
        bounded: bool,
    ):
        self.compiled, self.checkpoint, self.query, self.quiet = compiled, checkpoint, query, quiet
        #: The input ends, so after it no batch will come.
        self.bounded = bounded
        self.ready = threading.Event()
        #: Set when Spark has set up the query: at its first batch or its end.
        self.begun = threading.Event()
        self._failure: list[BaseException] = []
        self._configured: set[str] = set()
        #: Reports of commits before Spark's query began; progress names that query.
        self._early: list[tuple[Telemetry, Metrics]] = []

    def report(self, telemetry: Telemetry, receipt: Metrics) -> None:
        """Tell of a commit."""
        if self.query._inner is None:
            self._early.append((telemetry, receipt))
            return
        self.query._add_batch(telemetry, receipt)
        if not telemetry.get("idle"):
            self.log.batch(telemetry)

    def report_early(self) -> None:
        """Tell of the commits before Spark's query began."""
        for telemetry, receipt in self._early:
            self.report(telemetry, receipt)

    def take(self, frame: DataFrame, spark_batch: int) -> None:
        """One batch of Spark."""
        self.begun.set()
        self.ready.wait()
        self.query._batch_began()
        with self._running(), own_thread():
            keeps_state = bool(self.compiled.query_input.run_by_spark)
            _configure_once(frame.sparkSession, self._configured, keeps_state)
            self.engine.run_batch(frame, spark_batch)
            self.query._batch_ended(self.engine.at_rest)

    def watch(self) -> None:
        """Wait for the end of Spark's query, settle if its input has ended, and close everything."""
        ended: BaseException | None = None
        try:
            assert self.query._inner is not None
            with own_thread():
                while not self.query._inner.awaitTermination(_BEAT_SECONDS):
                    self.heartbeat.keep_going()
        except Exception as error:
            ended = self._ended_by(error)
        self.begun.set()
        try:
            if ended is None:
                with QuietLogs(self.compiled.spark):
                    self._finish()
        except Exception as error:
            ended = self._ended_by(error)
        self.query._let_batch_end()
        # In reverse order; each of them whatever becomes of the others, or the lock would stay taken.
        with ExitStack() as end:
            end.callback(self.query._end, ended)
            end.callback(self.log.ended, ended)
            end.callback(self.checkpoint.close)
            end.callback(self.engine.close)
            end.callback(self.quiet.close, linger=True)

    def _ended_by(self, error: Exception) -> BaseException | None:
        """Why the query failed; None if it was stopped."""
        if self._failure:
            return self._failure[0]
        if self.query._stopping.is_set() and not is_lost(error):
            return None
        # Outside of our part: a source that cannot be listed, an offset log that is damaged.
        batch = self.engine.manifest.batch + 1
        damaged = log_failure(error, self.checkpoint.spark_path)
        return damaged or failure_of(error, batch, stream_of=self.compiled.stream_of)

    def _finish(self) -> None:
        """Settle if the input has ended, and publish files that wait for their time."""
        if self.bounded and not self.query._stopping.is_set():
            with self._running():
                self.engine.settle()
        try:
            self.engine.publisher.publish_all()
        except Exception as error:
            self._failure.append(failure_of(error, self.engine.manifest.batch))
            raise

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Around a commit; its error is that of the query."""
        with self.query._running(self.engine.manifest.batch + 1):
            try:
                with self.failing():
                    yield
            except BaseException as error:
                self._failure.append(error)
                raise

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Around a commit: its errors become those that users get."""
        batch = self.engine.manifest.batch + 1
        try:
            yield
        except Exception as error:
            # A run that has taken the checkpoint over removes files under this one: that is the reason then.
            ours = self._taken_over() or failure_of(error, batch, stream_of=self.compiled.stream_of)
            raise ours from ours.__cause__

    def _taken_over(self) -> StateError | None:
        """The error that another run has the checkpoint; None if it has not."""
        try:
            self.checkpoint.check()
        except StateError as lost:
            return lost
        return None


def _named(writer: DataStreamWriter, name: str | None) -> DataStreamWriter:
    return writer if name is None else writer.queryName(name)


def _log_of(compiled: Compiled, settings: Settings, path: str, name: str | None) -> QueryLog:
    """The log of a run, with the line of its start."""
    log = QueryLog(name, settings.latency_seconds)
    inputs, outputs = list(compiled.sources), [one.name for one in compiled.outputs]
    log.started(__version__, path, inputs, outputs, _goal_text(settings))
    return log


def _goal_text(settings: Settings) -> str:
    """The latency goal, for the log."""
    if settings.goal is None:
        return "none"
    only = " (only observed: nothing is shed)" if settings.goal.observes else ""
    return f"{settings.latency_seconds:g} seconds{only}"


def _owner() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"
