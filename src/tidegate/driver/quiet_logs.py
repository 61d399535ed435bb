"""Keeps the stack traces of a failed batch off the console, without changing the user's log settings.

A failed batch raises one `TidegateError`; Java's traces are behind its `__cause__`. Spark would print the
same traces up to four times. Filters on exactly the loggers that do so drop these lines while a query runs:

    logger                    what is dropped
    MicroBatchExecution       "… terminated with error" of our query, known by its run id
    Executor, BlockManager,   lines of our own tasks, which carry the local property `mdc.tidegate`
    Utils, FileFormatWriter
    AvailableNow…Wrapper      that the heartbeat of our query has no trigger of this kind
    Shell                     "Interrupted …": Spark stops a query by interrupting its thread
    TaskSetManager            "Lost task …" with a trace, of our query by its id; lost executors stay
    py4j (Python's logging)   the trace of our callback
    PySpark's query context   the trace of an expression that Spark rejects, in a thread that runs a batch
    (Python's logging)

Levels and appenders stay as they are. Where Spark logs through anything but Log4j 2, nothing is filtered.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, ClassVar
from weakref import WeakSet

from py4j.protocol import Py4JError
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from tidegate.driver.java_process import unless_lost
from tidegate.errors import TidegateError

#: The local property that marks our jobs; Spark passes what begins with `mdc.` on to the threads of tasks.
JOB_MARK = "mdc.tidegate"
_MARK = "yes"
_STREAM_LOGGER = "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution"
_TASK_LOGGERS = (
    "org.apache.spark.executor.Executor",
    "org.apache.spark.storage.BlockManager",
    "org.apache.spark.util.Utils",
    "org.apache.spark.sql.execution.datasources.FileFormatWriter",
)
#: Spark warns of a source without the trigger AvailableNow: of our heartbeat, which has no rows to lose.
_WRAPPER_LOGGER = "org.apache.spark.sql.execution.streaming.runtime.AvailableNowMicroBatchStreamWrapper"
_HEARTBEAT = r"(?s).*RateStreamV2\[rowsPerSecond=1, .*"
_SHELL_LOGGER = "org.apache.hadoop.util.Shell"
_LOST_LOGGER = "org.apache.spark.scheduler.TaskSetManager"
#: Behind the id of the query, which Spark shortens.
_LOST = r"(?s)%s.*(Lost task .*(\n|TaskKilled).*|aborting job.*)"
_QUERY_ID = r"\[queryId = {}\] "
_ID_LETTERS = 5
_PY4J_LOGGERS = ("py4j.clientserver", "py4j.java_gateway")


#: PySpark writes the Java trace of an error of an expression to these, as JSON.
_CONTEXT_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
_thread = threading.local()


class OwnThreads(logging.Filter):
    """Drops records of threads in `own_thread`; what they raise becomes a `TidegateError`."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not getattr(_thread, "own", False)


@contextmanager
def own_thread() -> Iterator[None]:
    """While this thread runs a batch or waits for a query of ours."""
    before = getattr(_thread, "own", False)
    _thread.own = True
    try:
        yield
    finally:
        _thread.own = before


class OwnErrors(logging.Filter):
    """Drops records about an exception of Tidegate; the query's handle raises it."""

    def filter(self, record: logging.LogRecord) -> bool:
        raised = record.exc_info[1] if record.exc_info else None
        return not isinstance(raised, TidegateError)


class QuietLogs:
    """The filters of one run. Those of our own tasks stay in place: they concern no other job."""

    _lock = threading.Lock()
    _own_errors = OwnErrors()
    _own_threads = OwnThreads()
    #: Java processes that filter the lines of our tasks.
    _filtering: ClassVar[WeakSet[Any]] = WeakSet()
    #: Of ended runs: tasks that are still being killed report after the end. The next run removes them.
    _ended: ClassVar[list[Callable[[], None]]] = []

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._mine: list[Callable[[], None]] = []
        self._own = ExitStack()

    def open(self) -> None:
        """Drop what our own tasks log about their failure."""
        with self._lock:
            _remove(self._ended)
            for name in _PY4J_LOGGERS:
                logging.getLogger(name).addFilter(self._own_errors)
            for name in _CONTEXT_LOGGERS:
                PySparkLogger.getLogger(name).addFilter(self._own_threads)
            gateway = self._spark.sparkContext._gateway
            if gateway in self._filtering:
                return
            with suppress(Py4JError, TypeError):
                log4j = _Log4j(self._spark)
                for name in _TASK_LOGGERS:
                    log4j.add(name, log4j.by_mark())
                log4j.add(_WRAPPER_LOGGER, log4j.by_text(_HEARTBEAT))
                self._filtering.add(gateway)

    def hide_run(self, query_id: str, run_id: str) -> None:
        """Drop Spark's traces about lost tasks and the end of a streaming query."""
        lost = _LOST % _QUERY_ID.format(query_id[:_ID_LETTERS])
        self._hide(_LOST_LOGGER, lost)
        self._hide(_STREAM_LOGGER, f"(?s).*{run_id}.*terminated with error.*")
        self._hide(_SHELL_LOGGER, "(?s)Interrupted .*")

    def hide_lost_tasks(self) -> None:
        """Drop Spark's traces about lost tasks of any job, until `close`."""
        self._hide(_LOST_LOGGER, _LOST % "")

    def _hide(self, logger: str, pattern: str) -> None:
        with self._lock, suppress(Py4JError, TypeError):
            log4j = _Log4j(self._spark)
            self._mine.append(log4j.add(logger, log4j.by_text(pattern)))

    def close(self, *, linger: bool = False) -> None:
        """Remove the filters of this run; `linger`: only when the next run begins."""
        with self._lock:
            if linger:
                self._ended.extend(self._mine)
                self._mine = []
            else:
                _remove(self._mine)

    def __enter__(self) -> QuietLogs:
        self.open()
        self.hide_lost_tasks()
        mark_jobs(self._spark)
        self._own.enter_context(own_thread())
        return self

    def __exit__(self, *_: object) -> None:
        self._own.close()
        with unless_lost():
            mark_jobs(self._spark, None)
        self.close()


def mark_jobs(spark: SparkSession, mark: str | None = _MARK) -> None:
    """Mark the jobs that this thread starts from now on as ours; None: no longer."""
    spark.sparkContext.setLocalProperty(JOB_MARK, mark)  # type: ignore[arg-type]


def _remove(filters: list[Callable[[], None]]) -> None:
    while filters:
        # If Spark itself has stopped, there is nothing to remove.
        with suppress(Py4JError, ConnectionError):
            filters.pop()()


class _Log4j:
    """Log4j's configuration in the Java process of a session; `TypeError` if Spark logs elsewhere."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        self._gateway: Any = spark.sparkContext._gateway
        self._context = jvm.org.apache.logging.log4j.LogManager.getContext(False)
        if self._context.getClass().getName() != "org.apache.logging.log4j.core.LoggerContext":
            raise TypeError("Spark does not log through Log4j 2")
        self._core = jvm.org.apache.logging.log4j.core
        result = self._core.Filter.Result
        self._deny, self._neutral = result.valueOf("DENY"), result.valueOf("NEUTRAL")

    def by_text(self, pattern: str) -> Any:
        """Denies messages that match as a whole."""
        create = self._core.filter.RegexFilter.createFilter
        return create(pattern, None, False, self._deny, self._neutral)

    def by_mark(self) -> Any:
        """Denies what tasks of our jobs log."""
        kind = self._core.util.KeyValuePair
        pairs = self._gateway.new_array(kind, 1)
        pairs[0] = kind(JOB_MARK, _MARK)
        create = self._core.filter.ThreadContextMapFilter.createFilter
        return create(pairs, "or", self._deny, self._neutral)

    def add(self, name: str, denied: Any) -> Callable[[], None]:
        """Add a filter to the logger of this name; the result removes it."""
        config = self._context.getConfiguration()
        own = config.getLoggerConfig(name).getName() == name
        self._context.getLogger(name).addFilter(denied)
        if not own:
            # Log4j made a configuration for this logger; its level stays that of its parent.
            config.getLoggerConfig(name).setLevel(None)
            self._context.updateLoggers()

        def remove() -> None:
            logger = config.getLoggerConfig(name)
            logger.removeFilter(denied)
            if not own and logger.getFilter() is None:
                config.removeLogger(name)
            self._context.updateLoggers()

        return remove
