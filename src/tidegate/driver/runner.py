"""Runs a compiled flow: batch inputs in one batch, streams as micro-batches of a Spark streaming query."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidegate import __version__
from tidegate.api.listeners import notify
from tidegate.control.goal import goal_loop
from tidegate.driver.compile.compiled import Compiled
from tidegate.driver.engine.engine import BATCH_BYTES, CONF, Engine
from tidegate.driver.engine.settings import Settings
from tidegate.driver.failures import failure_of
from tidegate.driver.io.read_limits import ReadLimits, before_the_first_batch
from tidegate.driver.quiet_logs import QuietLogs, mark_jobs, own_thread
from tidegate.driver.spark_conf import LOCAL_CONF, STREAM_CONF
from tidegate.driver.streaming_query import StreamingQuery
from tidegate.model.json_values import Metrics
from tidegate.observe.logs.query_log import QueryLog
from tidegate.observe.telemetry import Telemetry
from tidegate.state.checkpoint import Checkpoint
from tidegate.state.store.local import LocalStore


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
                engine.run_batch(compiled.input_frame(), 0, flush=True)
            kept = checkpoint.receipts.read()
        except Exception as error:
            ours = failure_of(error, 0, stream_of=compiled.stream_of)
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
    """Set these settings on the session, and restore them afterwards."""
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
    """Set the engine's settings on the clone of the session that Spark made for this query."""
    if not configured:
        for name, value in _wanted(spark).items():
            spark.conf.set(name, value)
        mark_jobs(spark)
        configured.update(CONF)


def _wanted(spark: SparkSession) -> dict[str, str]:
    """The engine's settings. A bound on the bytes of Arrow batches that the user set is kept."""
    bounded = spark.conf.get(BATCH_BYTES, None) is not None
    return {name: value for name, value in CONF.items() if name != BATCH_BYTES or not bounded}


def run_stream(
    compiled: Compiled, settings: Settings, path: str, trigger: dict[str, Any], name: str | None = None
) -> StreamingQuery:
    """Start a streaming query on a checkpoint."""
    query = StreamingQuery(name)
    quiet = QuietLogs(compiled.spark)
    checkpoint = Checkpoint(path)
    checkpoint.open(_owner())
    query._read_receipts = checkpoint.receipts.read
    try:
        log = _log_of(compiled, settings, path, name)

        def report(telemetry: Telemetry, receipt: Metrics) -> None:
            query._add_batch(telemetry, receipt)
            log.batch(telemetry)

        engine = Engine(compiled, checkpoint, settings, report)
        engine.jobs.query = name or engine.jobs.query
        begun_batch = engine.manifest.batch + 1
        log.recovered(begun_batch - 1, replays=checkpoint.plans.read(begun_batch) is not None)
        failure: list[BaseException] = []
        ready = threading.Event()
        #: Set when Spark has set up the query: at its first batch or its end.
        begun = threading.Event()
        configured: set[str] = set()

        def take(frame: DataFrame, batch: int) -> None:
            begun.set()
            ready.wait()
            with query._running(batch), own_thread():
                _configure_once(frame.sparkSession, configured)
                try:
                    engine.run_batch(frame, batch)
                except Exception as error:
                    ours = failure_of(error, batch, stream_of=compiled.stream_of)
                    failure.append(ours)
                    raise ours from ours.__cause__
                except BaseException as error:
                    failure.append(error)
                    raise

        def watch() -> None:
            ended: BaseException | None = None
            try:
                with own_thread():
                    inner.awaitTermination()
            except Exception as error:
                if failure:
                    ended = failure[0]
                elif not query._stopping.is_set():
                    # Outside of our part: a source that cannot be listed, an offset log that is damaged.
                    batch = engine.manifest.batch + 1
                    ended = failure_of(error, batch, stream_of=compiled.stream_of)
            begun.set()
            quiet.close(linger=True)
            engine.close()
            checkpoint.close()
            log.ended(ended)
            query._end(ended)

        leaves = compiled.streams_by_leaf() if settings.goal is not None else []
        writer = _named(compiled.input_frame().writeStream.foreachBatch(take), name)
        writer = writer.option("checkpointLocation", checkpoint.spark_path).trigger(**trigger)
        bounded = "availableNow" in trigger
        local = LOCAL_CONF if isinstance(checkpoint.store, LocalStore) else {}
        with _settings(compiled.spark, STREAM_CONF | local):
            quiet.open()
            inner = writer.start()
            with before_the_first_batch(inner._jsq, compiled.spark):
                quiet.hide_run(inner.id, inner.runId)
                engine.query = inner._jsq
                if settings.goal is not None:
                    known = goal_loop.limits(engine.manifest)
                    engine.sources = ReadLimits(inner._jsq, compiled.spark, leaves, known)
            query._engine = engine
            query._inner = inner
            ready.set()
            notify("start", query)
            threading.Thread(target=watch, name="tidegate-watch", daemon=True).start()
            if bounded:
                # Spark reads the settings in its own thread, after `start` has returned.
                begun.wait()
    except BaseException:
        if query._inner is not None:
            query._inner.stop()
        quiet.close()
        checkpoint.close()
        raise
    return query


def _named(writer: DataStreamWriter, name: str | None) -> DataStreamWriter:
    return writer if name is None else writer.queryName(name)


def _log_of(compiled: Compiled, settings: Settings, path: str, name: str | None) -> QueryLog:
    """The log of a run, with the line of its start."""
    log = QueryLog(name, None if settings.goal is None else settings.goal.goal.latency_seconds)
    log.started(__version__, path, list(compiled.sources), [one.name for one in compiled.outputs])
    return log


def _owner() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"
