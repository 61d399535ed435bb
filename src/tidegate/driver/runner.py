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

from tidegate.control.goal import goal_loop
from tidegate.driver.compile.compiled import Compiled
from tidegate.driver.engine.engine import BATCH_BYTES, CONF, Engine
from tidegate.driver.engine.settings import Settings
from tidegate.driver.io.read_limits import ReadLimits
from tidegate.driver.spark_conf import LOCAL_CONF, STREAM_CONF
from tidegate.driver.streaming_query import StreamingQuery
from tidegate.driver.worker_errors import worker_error_in
from tidegate.errors import TidegateError
from tidegate.state.checkpoint import Checkpoint
from tidegate.state.store.local import LocalStore


def run_batch(compiled: Compiled, settings: Settings) -> StreamingQuery:
    """Run over batch inputs to the end, with a temporary checkpoint."""
    query = StreamingQuery()
    wanted = _wanted(compiled.spark)
    with tempfile.TemporaryDirectory(prefix="tidegate-") as folder, _settings(compiled.spark, wanted):
        checkpoint = Checkpoint(folder)
        checkpoint.open(_owner())
        try:
            engine = Engine(compiled, checkpoint, settings, query._add_progress)
            with closing(engine):
                engine.run_batch(compiled.input_frame(), 0, flush=True)
            kept = checkpoint.receipts.read()
        except Exception as error:
            ours = worker_error_in(error, 0)
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
        configured.update(CONF)


def _wanted(spark: SparkSession) -> dict[str, str]:
    """The engine's settings. A bound on the bytes of Arrow batches that the user set is kept."""
    bounded = spark.conf.get(BATCH_BYTES, None) is not None
    return {name: value for name, value in CONF.items() if name != BATCH_BYTES or not bounded}


def run_stream(compiled: Compiled, settings: Settings, path: str, trigger: dict[str, Any]) -> StreamingQuery:
    query = StreamingQuery()
    checkpoint = Checkpoint(path)
    checkpoint.open(_owner())
    query._read_receipts = checkpoint.receipts.read
    try:
        engine = Engine(compiled, checkpoint, settings, query._add_progress)
        failure: list[BaseException] = []
        ready = threading.Event()
        #: Set when Spark has set up the query: at its first batch or its end.
        begun = threading.Event()
        configured: set[str] = set()

        def take(frame: DataFrame, batch: int) -> None:
            begun.set()
            ready.wait()
            with query._running(batch):
                _configure_once(frame.sparkSession, configured)
                try:
                    engine.run_batch(frame, batch)
                except BaseException as error:
                    failure.append(worker_error_in(error, batch))
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

        leaves = compiled.streams_by_leaf() if settings.goal is not None else []
        writer = compiled.input_frame().writeStream.foreachBatch(take)
        writer = writer.option("checkpointLocation", checkpoint.spark_path).trigger(**trigger)
        bounded = "availableNow" in trigger
        local = LOCAL_CONF if isinstance(checkpoint.store, LocalStore) else {}
        with _settings(compiled.spark, STREAM_CONF | local):
            inner = writer.start()
            engine.query = inner._jsq
            if settings.goal is not None:
                known = goal_loop.limits(engine.manifest)
                engine.sources = ReadLimits(inner._jsq, compiled.spark, leaves, known)
            query._engine = engine
            query._inner = inner
            ready.set()
            threading.Thread(target=watch, name="tidegate-watch", daemon=True).start()
            if bounded:
                # Spark reads the settings in its own thread, after `start` has returned.
                begun.wait()
    except BaseException:
        if query._inner is not None:
            query._inner.stop()
        checkpoint.close()
        raise
    return query


def _owner() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"
